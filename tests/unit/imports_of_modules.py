"""What the project's modules import, read from their source."""

import ast
import pathlib
from typing import NamedTuple

import model_zoo

ROOT = pathlib.Path(model_zoo.__file__).parent.parent


class Import(NamedTuple):
    """What a module imports: a module of the project, or the first name of another library."""

    name: str
    lazy: bool  # inside of a function


def parse(path):
    return ast.parse(path.read_text('utf-8'), str(path))


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix('').parts
    return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


def modules(*rooms):
    """The modules of the rooms -> what they import."""
    paths = {module_name(path): path for room in rooms for path in (ROOT / room).rglob('*.py')}
    return {name: set(_imports(path, set(paths))) for name, path in sorted(paths.items())}


def _imports(path, ours):
    """Imports anywhere; 'import_module' stands for those by names that aren't written there."""
    package, known = path.relative_to(ROOT).parent.parts, set()
    for node, is_lazy in _walk(parse(path)):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            known.add(id(node.func))  # which comes after it
        if _is_import_module(node) and id(node) not in known:
            yield Import('import_module', is_lazy)
        for name in _names(node, package, ours):
            yield Import(name if name in ours else name.split('.')[0], is_lazy)


def _walk(tree):
    """The nodes of a module, parents first, and whether each is inside of a function."""
    waiting = [(tree, False)]
    while waiting:
        node, is_lazy = waiting.pop()
        yield node, is_lazy
        if getattr(getattr(node, 'test', None), 'id', None) == 'TYPE_CHECKING':
            continue  # which is never run
        is_lazy = is_lazy or isinstance(node, (ast.FunctionDef, ast.Lambda))
        waiting += [(child, is_lazy) for child in ast.iter_child_nodes(node)]


def _names(node, package, ours):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level <= len(package), f'{package} imports from outside of its room'
        above = package[: len(package) - node.level + 1] if node.level else ()
        base = '.'.join([*above, *filter(None, [node.module])])
        names = [f'{base}.{alias.name}' for alias in node.names]
        return [name if name in ours else base for name in names]
    if isinstance(node, ast.Call) and _is_import_module(node.func):
        return [node.args[0].value] if isinstance(node.args[0], ast.Constant) else []
    return []


def _is_import_module(node):
    return getattr(node, 'attr', None) in ('import_module', 'resolve_name')


def children(graph, folder):
    """The files and folders of a folder (a dotted name, or '') -> those that they import."""
    prefix = f'{folder}.' if folder else ''

    def child(name):
        rest = name[len(prefix) :] if name.startswith(prefix) else ''
        return prefix + rest.split('.')[0] if rest else None

    result = {}
    for name, imports in graph.items():
        if child(name):
            result.setdefault(child(name), set()).update(child(each.name) for each in imports)
    return {name: found & result.keys() - {name} for name, found in result.items()}


def circles(graph):
    """The groups of nodes that reach one another, of a graph of name -> names."""
    reached = {}
    for start in graph:
        found, waiting = set(), [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        reached[start] = found
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached.get(other, ())))
        for name in graph
    }
    return sorted(group for group in groups if group)
