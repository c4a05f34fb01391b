"""Set small faults into the library, one at a time, and count how many of them the tests catch.

``python tests/faults.py --seed 1 --count 100 --jobs 2``: a seed draws the same faults from
the same sources. All tests run once, to see which of them run which line (``--coverage FILE``: the
file that an earlier run has left). Each fault is set into a copy of the tree, and the tests run
that run its statement, of each file those with the fewest lines. It needs pytest-cov.
"""

import argparse
import ast
import collections
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

ROOT = pathlib.Path(__file__).resolve().parents[1]
MOST = 200  # tests that run for a fault
LIBRARY = ('model_zoo', 'bert', 'bert_embedding', 'export', 'gpt', 'gpt2', 'transfo_xl')
TURNED = {
    ast.Lt: ('<', '<='),
    ast.LtE: ('<=', '<'),
    ast.Gt: ('>', '>='),
    ast.GtE: ('>=', '>'),
    ast.Eq: ('==', '!='),
    ast.NotEq: ('!=', '=='),
    ast.In: ('in', 'not in'),
    ast.NotIn: ('not in', 'in'),
    ast.Is: ('is', 'is not'),
    ast.IsNot: ('is not', 'is'),
    ast.And: ('and', 'or'),
    ast.Or: ('or', 'and'),
    ast.Add: ('+', '-'),
    ast.Sub: ('-', '+'),
}


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
        line, last = (source[:offset].count(b'\n') + 1 for offset in (edits[-1][0], edits[0][1]))
        statements = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt))
        first = max(node.lineno for node in statements if node.lineno <= line <= node.end_lineno)
        for start, end, new in edits:
            source = source[:start] + new + source[end:]
        yield {'file': file, 'line': line, 'kind': kind, 'statement': [first, last]}, source


def trace_tests(tree, jobs, output):
    """Run all tests, and write which of them run which line."""
    settings = tree / 'coverage.ini'
    settings.write_text('[run]\nrelative_files = true\n')
    workers = f'-n {jobs} --dist worksteal'.split()
    measured = [f'--cov={room}' for room in LIBRARY]
    measured += ['--cov-context=test', '--cov-report=', f'--cov-config={settings}']
    run_pytest(tree, *workers, *measured)
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(tree / '.coverage', output)


def read_traces(path):
    """Return ({(file, line): tests}, {test: its number of lines}).

    Lines that a fixture runs are those of the tests of its file.
    """
    import coverage

    data, tests_of, lengths = coverage.CoverageData(str(path)), {}, collections.Counter()
    data.read()
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            nodes = [context.rpartition('|') for context in contexts if context]
            tests = {node if when == 'run' else node.split('::')[0] for node, _, when in nodes}
            tests_of[file, line] = tests
            lengths.update(tests)
    return tests_of, lengths


def pick_tests(fault, tests_of, lengths):
    """The tests that run a fault's lines: of all files, those that run the fewest lines first."""
    first, last = fault['statement']
    lines = ((fault['file'], line) for line in range(first, last + 1))
    tests = set().union(*(tests_of.get(line, ()) for line in lines))
    if not tests:  # it runs as its module is imported, or in another process
        module = re.sub(r'(/__init__)?\.py$', '', fault['file']).replace('/', '.')
        named = (path for path in ROOT.glob('tests/*/**/test_*.py') if module in path.read_text())
        tests = {str(path.relative_to(ROOT)) for path in named}
        tests.update(*(tests_of[place] for place in tests_of if place[0] == fault['file']))
    ranks, of_file = {}, collections.Counter()
    for test in sorted(tests, key=lambda test: (lengths[test], test)):
        file = test.split('::')[0]
        ranks[test] = of_file[file]
        of_file[file] += 1
    return sorted(sorted(ranks, key=ranks.get)[:MOST], key=lambda test: (lengths[test], test))


def run_pytest(tree, *argv):
    """Run tests, and return how pytest has ended."""
    own = {'PYTHONPATH': str(tree), 'PYTHONDONTWRITEBYTECODE': '1', 'OMP_NUM_THREADS': '1'}
    usual = '-m pytest -q -rfE --tb=no -p no:cacheprovider'.split()
    chosen = ['-m', 'not slow and not peers', f'--basetemp={tree}.pytest']
    options = {'cwd': tree, 'env': {**os.environ, **own}, 'timeout': 3600, 'text': True}
    words = [sys.executable, *usual, *argv, *chosen]
    return subprocess.run(words, stdout=subprocess.PIPE, **options)


def run_tests(tree, tests):
    """What the tests' first failure is, or None."""
    try:
        done = run_pytest(tree, '-x', *tests)
    except subprocess.TimeoutExpired:
        return 'it hangs'
    failed = re.search(r'^(?:FAILED|ERROR) (.+?)(?: - |$)', done.stdout, re.MULTILINE)
    if failed:
        return failed.group(1)
    return None if done.returncode in (0, 5) else 'no test begins'


def try_fault(trees, traces, fault, source):
    """Tell which test catches a fault: one that passes without it."""
    tests, tree = pick_tests(fault, *traces), trees.pop()
    path = tree / fault['file']
    right = path.read_bytes()
    path.write_bytes(source)
    fault['tests'], fault['caught'] = len(tests), run_tests(tree, tests) if tests else None
    path.write_bytes(right)
    caught = fault['caught']
    if caught and run_tests(tree, [caught] if '::' in caught else tests):
        fault['caught'], fault['broken'] = None, caught
    trees.append(tree)
    print('{file}:{line}, {kind}: {caught}, {tests} tests'.format(**fault), flush=True)
    return fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--output', type=pathlib.Path, default='output_dir/faults.json')
    parser.add_argument('--coverage', type=pathlib.Path)
    args = parser.parse_args()
    listed = ['git', 'ls-files', '--cached', '--others', '--exclude-standard']
    files = subprocess.check_output(listed, cwd=ROOT, text=True).splitlines()
    with tempfile.TemporaryDirectory(prefix='faults-') as folder:
        trees = [pathlib.Path(folder, f'tree{number}') for number in range(args.jobs)]
        for tree in trees:
            for file in files:
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, tree / file)
        if args.coverage is None:
            args.coverage = args.output.with_suffix('.coverage')
            trace_tests(trees[0], args.jobs, args.coverage)
        traces, drawn = read_traces(args.coverage), draw(args.seed, args.count)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            faults = [*pool.map(lambda fault: try_fault(trees, traces, *fault), drawn)]
    caught = sum(fault['caught'] is not None for fault in faults)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    result = {'seed': args.seed, 'tried': len(faults), 'caught': caught, 'faults': faults}
    args.output.write_text(json.dumps(result, indent=2) + '\n')
    print(f'{caught} of {len(faults)} are caught')


if __name__ == '__main__':
    main()
