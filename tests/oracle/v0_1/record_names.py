"""Write public_names.json: the public names of all modules, and those that the documents show.

    python record_names.py CHECKOUT OUTPUT
"""

import ast
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import sys

from command_flags import write_records

PACKAGES = ('model_zoo', 'bert', 'gpt', 'gpt2', 'transfo_xl', 'bert_embedding', 'export')
_PACKAGE = '|'.join(sorted(PACKAGES, key=len, reverse=True))
#: `model_zoo.data.get_task` in a text
_DOTTED = re.compile(rf'(?<![\w./-])(?:{_PACKAGE})(?:\.[A-Za-z_]\w*)+(?![\w/-])')
#: `from bert import BertModel`, also over several lines in parentheses
_NAMES = r'\w+(?: as \w+)?(?:, *\w+(?: as \w+)?)*'
_IMPORT = re.compile(rf'\bfrom ((?:{_PACKAGE})(?:\.\w+)*) import (\([^)]*\)|{_NAMES})')
_ADDRESS = re.compile(r' at 0x[0-9a-f]+')


# -- the public names ---------------------------------------------------------------------------


def public_modules():
    """Module's name -> module, of all that have an ``__all__``."""
    modules = {}
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for name in (package, *(info.name for info in pkgutil.walk_packages(path, f'{package}.'))):
            module = importlib.import_module(name)
            if hasattr(module, '__all__'):
                modules[name] = module
    return modules


def signature(value):
    try:
        return _ADDRESS.sub('', str(inspect.signature(value)))
    except (TypeError, ValueError):
        return None


def parameters(value):
    """Names as they are given in a call; those of ``*args`` and ``**kwargs`` with their stars."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: '*', inspect.Parameter.VAR_KEYWORD: '**'}
    return [stars.get(each.kind, '') + each.name for each in found]


def describe(value, public):
    if inspect.isclass(value):
        call = {'signature': signature(value), 'parameters': parameters(value)}
        return {'kind': 'class', **call, 'members': members(value, public)}
    if callable(value):
        call = {'signature': signature(value), 'parameters': parameters(value)}
        return {'kind': 'function', **call}
    if inspect.ismodule(value):
        return {'kind': 'module'}
    return {'kind': 'data', 'type': type(value).__name__}


def members(cls, public):
    """Public methods with their signatures, and properties; also those of bases that aren't public.
    """
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split('.')[0] not in PACKAGES or (base is not cls and base in public):
            continue
        for name, value in vars(base).items():
            if name.startswith('_'):
                continue
            if isinstance(value, (classmethod, staticmethod)):
                found[name] = f'{type(value).__name__} {signature(value.__func__)}'
            elif inspect.isfunction(value):
                found[name] = signature(value)
            elif isinstance(value, property):
                found[name] = 'property'
    return found


def describe_all(modules):
    """Module -> name -> its description, or 'MODULE:NAME' where another one has it shorter."""
    classes = {
        value
        for module in modules.values()
        for value in (getattr(module, name) for name in module.__all__)
        if inspect.isclass(value)
    }
    places, described = {}, {}
    for name in sorted(modules, key=lambda name: (name.count('.'), name)):
        described[name] = {}
        for each in sorted(modules[name].__all__):
            value = getattr(modules[name], each)
            is_object = inspect.isclass(value) or callable(value)
            first = places.setdefault(id(value), f'{name}:{each}') if is_object else None
            known = first not in (None, f'{name}:{each}')
            described[name][each] = first if known else describe(value, classes)
    return described


# -- the names that documents show --------------------------------------------------------------


def documents(root):
    """(path, text) of README, the documentation's pages and the cells of notebooks."""
    for path in [root / 'README.rst', *sorted((root / 'docs').rglob('*.rst'))]:
        yield path.relative_to(root).as_posix(), path.read_text(encoding='utf-8')
    for path in sorted((root / 'docs').rglob('*.ipynb')):
        cells = json.loads(path.read_text(encoding='utf-8'))['cells']
        yield path.relative_to(root).as_posix(), '\n'.join(''.join(c['source']) for c in cells)


def shown_names(root):
    """'module:name', or 'module', as documents show them -> the documents."""
    shown = {}

    def add(module, name, page):
        key = f'{module}:{name}' if name else module
        if page not in shown.setdefault(key, []):
            shown[key].append(page)

    for page, text in documents(root):
        plain = re.sub(r'^ *(>>>|\.\.\.) ?', '', text, flags=re.MULTILINE)
        for module, names in _IMPORT.findall(plain):
            for alias in ast.parse(f'from {module} import {names.strip()}').body[0].names:
                add(module, alias.name, page)
        for dotted in _DOTTED.findall(text):
            place = resolve(dotted)
            if place is not None:
                add(*place, page)
        for module in re.findall(r'^\.\. public-names:: (\S+)$', text, re.MULTILINE):
            for name in importlib.import_module(module).__all__:
                add(module, name, page)
    return shown


def resolve(dotted):
    """(module, attributes) that a dotted name stands for, or None if it stands for nothing."""
    parts = dotted.split('.')
    for count in range(len(parts), 0, -1):
        name = '.'.join(parts[:count])
        try:
            value = importlib.import_module(name)
        except ImportError:
            continue
        for attribute in parts[count:]:
            if not hasattr(value, attribute):
                return None
            value = getattr(value, attribute)
        return name, '.'.join(parts[count:])
    return None


if __name__ == '__main__':
    root, output = map(pathlib.Path, sys.argv[1:])
    modules = describe_all(public_modules())
    write_records(
        output / 'public_names.json', {'modules': modules, 'shown': shown_names(root)}, depth=3
    )
