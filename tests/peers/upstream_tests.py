"""Run MXNet's and GluonNLP's own unit tests, to compare an old Python with this one.

They are no part of this project: take the tag 1.9.1 of apache/mxnet and v0.10.0 of dmlc/gluon-nlp.
Both Pythons need MXNet, GluonNLP, pytest and nose (``pip install pynose``); the old one is Python
3.10 with NumPy 1.23, without this project. MXNET and GLUONNLP are the folders of the two.

    $ old/bin/python tests/peers/upstream_tests.py --plain baseline.json MXNET GLUONNLP
    $ .venv/bin/python tests/peers/upstream_tests.py here.json MXNET GLUONNLP
    $ .venv/bin/python tests/peers/upstream_tests.py --compare baseline.json here.json

No test gets the network, a GPU or more than a minute of processor time. A file whose process dies
begins again, without the tests that have ended.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ('tests/python/unittest', 'tests/unittest')
PROGRAM = """
import json, signal, sys
plain, log, *options = sys.argv[1:]
if plain != 'True':
    import model_zoo
import pytest

class Log:
    def __init__(self):
        self.file = open(log, 'a', buffering=1)
        for each in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(each, self.stop)

    def stop(self, *_):
        raise TimeoutError('the time is over')

    def say(self, outcome, name, why=''):
        self.file.write(json.dumps([outcome, name, why]) + '\\n')

    def pytest_runtest_logstart(self, nodeid):
        signal.setitimer(signal.ITIMER_PROF, 60)
        signal.alarm(900)
        self.say('died', nodeid)

    def pytest_runtest_logreport(self, report):
        if report.when == 'call' or report.outcome != 'passed':
            self.say(report.outcome, report.nodeid, str(report.longrepr)[-1500:])

    def pytest_collectreport(self, report):
        if report.outcome == 'failed':
            self.say('failed', report.nodeid, str(report.longrepr)[-1500:])

sys.exit(pytest.main(options, plugins=[Log()]))
"""


def outcomes(path, plain):
    """Return the outcome of each test in a file, and why it has not passed."""
    options = ['-q', '-p', 'no:cacheprovider', '-o', 'filterwarnings=', f'--rootdir={path.parent}']
    options += ['-m', 'not remote_required and not gpu and not integration']
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONWARNINGS': 'ignore'}
    env.update(dict.fromkeys(('http_proxy', 'https_proxy'), 'http://127.0.0.1:9'))
    if not plain:
        env['PYTHONPATH'] = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        log, env['MXNET_HOME'] = pathlib.Path(folder, 'log'), folder
        for _ in range(10):
            ended = [word for name in found for word in ('--deselect', name)]
            words = [sys.executable, '-c', PROGRAM, str(plain), log, *options, *ended, path.name]
            streams = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.DEVNULL)
            status = subprocess.run(words, cwd=path.parent, env=env, **streams).returncode
            for line in log.read_text().splitlines() if log.exists() else ():
                outcome, name, why = json.loads(line)
                found[name] = [outcome, why]
            if status in range(6):  # pytest's own
                break
    return {f'{path.parent.name}/{name}': each for name, each in found.items()}


def compare(old, new):
    """Print how many tests have each pair of outcomes, and those that pass in the first alone."""
    before, now = ({name: each[0] for name, each in found.items()} for found in (old, new))
    pairs = collections.Counter((before.get(name, '-'), now.get(name, '-')) for name in old | new)
    for pair, count in sorted(pairs.items()):
        print(f'{count:6}  {pair[0]:8} -> {pair[1]}')
    for name in sorted(new):
        if now[name] in ('failed', 'died') and before.get(name, 'passed') == 'passed':
            print(f'{name}: {" | ".join(new[name][1].strip().splitlines()[-3:])}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('paths', nargs='+', type=pathlib.Path)
    parser.add_argument('--plain', action='store_true', help='without model_zoo')
    parser.add_argument('--compare', action='store_true')
    parser.add_argument('--only', default='', help='a part of the names of the files to run')
    args = parser.parse_intermixed_args()
    if args.compare:
        compare(*(json.loads(path.read_text()) for path in args.paths))
        return
    output, *checkouts = args.paths
    found = json.loads(output.read_text()) if output.exists() else {}
    for folder in [checkout.resolve() / each for checkout in checkouts for each in FOLDERS]:
        for path in sorted(folder.rglob('test_*.py'), key=lambda each: each.stat().st_size):
            if args.only in path.name:
                found.update(outcomes(path, args.plain))
                output.write_text(json.dumps(found, indent=0))
                print(path.name, flush=True)


if __name__ == '__main__':
    main()
