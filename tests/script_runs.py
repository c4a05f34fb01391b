"""What the tests of scripts share: to load and run one, and to compare what two runs have left."""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import pytest
from arrays import assert_equal

from model_zoo.app import cli
from model_zoo.checkpoint import read_tensors

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = ROOT / 'scripts'
#: begins a program that needs MXNet and nothing of this project
MXNET = f"""
import runpy
with runpy.run_path({str(ROOT / 'model_zoo' / 'mxnet_import.py')!r})['importing_mxnet']():
    import mxnet
"""


def load_script(name, folder=SCRIPTS):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(name, folder / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(script, *argv):
    """The exit status of a script, or of its function ``main``, that runs in this process."""
    return cli.run(getattr(script, 'main', script), list(map(str, argv)))


def read_json(folder, name='results.json'):
    """Return the content of a JSON file in a folder."""
    return json.loads((folder / name).read_text('utf-8'))


def without(argv, *flags):
    """A command line without some flags and their values."""
    kept = [str(word) for word in argv]
    for flag in flags:
        while flag in kept:
            at = kept.index(flag)
            del kept[at : at + 2]
    return kept


def refusal(capsys, script, *argv):
    """Return the one line that a script prints for bad input; the exit status is 1."""
    capsys.readouterr()
    assert run(script, *argv) == 1
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith('error: ')]
    assert len(lines) == 1 and 'Traceback' not in said, said
    return lines[0]


def start(*words, begin=subprocess.Popen, env=None, **options):
    """Begin ``python *words``, which finds this project, as `subprocess.Popen` does."""
    env = {**os.environ, 'PYTHONPATH': str(ROOT)} if env is None else env
    return begin([sys.executable, *map(str, words)], env=env, encoding='utf-8', **options)


def run_python(*words, **options):
    """Run ``python *words`` to its end, and capture its output, as `subprocess.run` does."""
    streams = {'stdin': subprocess.DEVNULL, 'capture_output': True, 'timeout': 900}
    return start(*words, begin=subprocess.run, **streams, **options)


def wait_until(condition, process=None):
    """Return when a condition holds; fail after minutes, or where the process ends before."""
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, 'it did not come to be'
        assert process is None or process.poll() is None, 'the process has ended before'
        time.sleep(0.01)


def run_workers(count, program, *argv, timeout=900):
    """Run a program in several processes that find each other as horovodrun has them do.

    Skips the test where Horovod isn't installed. A process that fails ends the others.

    Returns
    -------
    list of subprocess.CompletedProcess
        One of each rank; standard output holds the errors, too.
    """
    pytest.importorskip('horovod.mxnet')
    from horovod.runner import gloo_run
    from horovod.runner.common.util import hosts

    slots = hosts.get_host_assignments(hosts.parse_hosts(f'localhost:{count}'), count)
    server = gloo_run.RendezvousServer()
    common = gloo_run.create_run_env_vars('127.0.0.1', ['lo'], server.start())
    server.init(slots)
    own = {'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'}
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        files, processes = [], []
        for slot in slots:
            file = stack.enter_context(tempfile.TemporaryFile('w+', encoding='utf-8'))
            variables = {**common, **gloo_run.create_slot_env_vars(slot), **own}
            environment = {**os.environ, **{name: str(each) for name, each in variables.items()}}
            streams = {'stdout': file, 'stderr': subprocess.STDOUT}
            processes.append(start(program, *argv, env=environment, **streams))
            files.append(file)
        deadline = time.monotonic() + timeout
        while any(process.poll() is None for process in processes):
            if any(process.returncode for process in processes) or time.monotonic() > deadline:
                for process in processes:
                    process.kill()
            time.sleep(0.01)
        for file in files:
            file.seek(0)
        return [
            subprocess.CompletedProcess(argv, process.returncode, file.read())
            for process, file in zip(processes, files)
        ]


def train_in_workers(count, program, *argv):
    """As `run_workers`, which must succeed; returns what they have printed, as one text."""
    done = run_workers(count, program, *argv)
    texts = '\n'.join(each.stdout for each in done)
    assert not any(each.returncode for each in done), texts
    return texts


def assert_next_runs(folder):
    """Run what a training in a folder proposes to do next, in a process of its own."""
    log = next(folder.glob('log_*')).read_text('utf-8')
    zoo = shlex.join([sys.executable, str(ROOT / 'scripts' / 'zoo.py')])  # not an installed one
    line = re.findall('next: (.*)', log)[-1]
    line = re.sub(r'\S*\bzoo ', f'{zoo} ', line, count=1)
    if ' serve ' in line:  # which doesn't end
        assert os.path.isdir(shlex.split(line)[3])
        return
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


def parameters(path):
    return read_tensors(str(path))[0]


def assert_same_parameters(path, other):
    """Assert that two files of weights are equal."""
    assert_equal(parameters(path), parameters(other))


def assert_same_model(folder, other, tolerance=0):
    """Assert that the models that two runs have left are equal, or differ by the tolerance."""
    files = [next(each.glob('*model/model.*')) for each in (folder, other)]
    assert_equal(*map(parameters, files), tolerance)
