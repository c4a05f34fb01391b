"""Set small faults into the library, one at a time, and count how many of them the tests catch.

``python tests/audit/faults.py --seed 1 --count 100 --jobs 1``: a seed draws the same faults from
the same sources. Each is set into a copy of the tree, and the tests run that import its room.
"""

import argparse
import ast
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ('model_zoo', 'bert', 'bert_embedding', 'export', 'gpt', 'gpt2', 'transfo_xl')
TURNED = {ast.Lt: ('<', '<='), ast.LtE: ('<=', '<'), ast.Gt: ('>', '>='), ast.GtE: ('>=', '>'),
          ast.Eq: ('==', '!='), ast.NotEq: ('!=', '=='), ast.In: ('in', 'not in'),
          ast.NotIn: ('not in', 'in'), ast.Is: ('is', 'is not'), ast.IsNot: ('is not', 'is'),
          ast.And: ('and', 'or'), ast.Or: ('or', 'and'), ast.Add: ('+', '-'),
          ast.Sub: ('-', '+')}  # fmt: skip


def list_faults(source):
    """Yield (kind, [(first byte, last byte, new bytes)]) of a module."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node):
        first, last = starts[node.lineno - 1], starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.JoinedStr):  # its parts have no places of their own
                yield from visit(child)
        turn = None
        if isinstance(node, ast.Compare):
            turn = 'comparison', node.ops[0], node.left, node.comparators[0]
        elif isinstance(node, ast.BoolOp):
            turn = 'and, or', node.op, *node.values[:2]
        elif isinstance(node, ast.BinOp) and type(node.op) in TURNED:
            turn = 'plus, minus', node.op, node.left, node.right
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield 'constant', [(*span(node), b'%d' % (node.value + 1))]
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield 'condition', [(*span(node.test), b'(not (%s))' % source[slice(*span(node.test))])]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield 'call left out', [(*span(node), b'pass')]
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            one, two = map(span, node.args[:2])
            yield 'arguments', [(*two, source[slice(*one)]), (*one, source[slice(*two)])]
        if turn:
            kind, operator, left, right = turn
            place = span(left)[1], span(right)[0]
            old, new = TURNED[type(operator)]
            yield kind, [(*place, source[slice(*place)].replace(old.encode(), new.encode(), 1))]

    return visit(ast.parse(source))


def draw(seed, count):
    """Yield faults, as many of each kind."""
    faults, generator = {}, random.Random(seed)
    for path in sorted(path for room in LIBRARY for path in (ROOT / room).rglob('*.py')):
        source = path.read_bytes()
        for kind, edits in list_faults(source):
            faults.setdefault(kind, []).append((str(path.relative_to(ROOT)), source, edits))
    for number in range(count):
        kind = sorted(faults)[number % len(faults)]
        file, source, edits = generator.choice(faults[kind])
        line = source[: edits[-1][0]].count(b'\n') + 1
        for start, end, new in edits:
            source = source[:start] + new + source[end:]
        yield {'file': file, 'line': line, 'kind': kind}, source


def imports_of(path, seen):
    """The names that a test imports, itself or through the tests' helpers and the scripts."""
    names, text = set(), path.read_text('utf-8') if path.is_file() and path not in seen else ''
    seen.add(path)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, 'module', None)
            names.update(f'{module}.{each.name}' if module else each.name for each in node.names)
    scripts = {ROOT / 'scripts' / f'{name}.py' for name in re.findall(r"'(\w+)(?:\.py)?'", text)}
    for other in scripts | {ROOT / 'tests' / f'{name.split(".")[0]}.py' for name in names}:
        names |= imports_of(other, seen)
    return names


def pick_tests(file):
    """The tests that import a file's room, those of the file itself first."""
    module = re.sub(r'(/__init__)?\.py$', '', file).replace('/', '.')
    room = '.'.join(module.split('.')[: 2 if module.startswith('model_zoo') else 1])
    for path in sorted(ROOT.glob('tests/*/**/test_*.py')):
        names = [f'{name}.' for name in imports_of(path, set())]
        if 'peers' not in path.parts and any(name.startswith(f'{room}.') for name in names):
            near = any(name.startswith(f'{module}.') for name in names)
            rank = not near, 'unit' not in path.parts, room.split('.')[-1] not in path.parts
            yield rank, str(path.relative_to(ROOT))


def run_tests(tree, tests):
    """What the tests' first failure is, or None."""
    own = {'PYTHONPATH': str(tree), 'PYTHONDONTWRITEBYTECODE': '1', 'OMP_NUM_THREADS': '1'}
    argv = ['-m', 'pytest', '-qx', '-rfE', '--tb=no', '-p', 'no:cacheprovider', *tests,
            '-m', 'not slow and not peers', f'--basetemp={tree}.pytest']  # fmt: skip
    options = {'cwd': tree, 'env': {**os.environ, **own}, 'timeout': 3600, 'text': True}
    try:
        done = subprocess.run([sys.executable, *argv], stdout=subprocess.PIPE, **options)
    except subprocess.TimeoutExpired:
        return 'it hangs'
    failed = re.search(r'^(?:FAILED|ERROR) (.+?)(?: - |$)', done.stdout, re.MULTILINE)
    if failed:
        return failed.group(1)
    return None if done.returncode in (0, 5) else 'no test begins'


def try_fault(trees, fault, source):
    """Tell which test catches a fault: one that passes without it."""
    tests, tree = [path for _, path in sorted(pick_tests(fault['file']))], trees.pop()
    path = tree / fault['file']
    right = path.read_bytes()
    path.write_bytes(source)
    fault['caught'] = run_tests(tree, tests) if tests else None
    path.write_bytes(right)
    if '::' in (fault['caught'] or '') and run_tests(tree, [fault['caught']]):
        fault['caught'], fault['broken'] = None, fault['caught']
    trees.append(tree)
    print('{file}:{line}, {kind}: {caught}'.format(**fault), flush=True)
    return fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--output', type=pathlib.Path, default='output_dir/audit/faults.json')
    args = parser.parse_args()
    listed = ['git', 'ls-files', '--cached', '--others', '--exclude-standard']
    files = subprocess.check_output(listed, cwd=ROOT, text=True).splitlines()
    with tempfile.TemporaryDirectory(prefix='faults-') as folder:
        trees = [pathlib.Path(folder, f'tree{number}') for number in range(args.jobs)]
        for tree in trees:
            for file in files:
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, tree / file)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            faults = [*pool.map(lambda each: try_fault(trees, *each), draw(args.seed, args.count))]
    caught = sum(fault['caught'] is not None for fault in faults)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    result = {'seed': args.seed, 'tried': len(faults), 'caught': caught, 'faults': faults}
    args.output.write_text(json.dumps(result, indent=2) + '\n')
    print(f'{caught} of {len(faults)} are caught')


if __name__ == '__main__':
    main()
