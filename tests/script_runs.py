"""What the tests of scripts share: to load and run one, and to compare what two runs have left."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from model_zoo.app import cli
from model_zoo.checkpoint import read_tensors

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = ROOT / 'scripts'
HOROVODRUN = pathlib.Path(sys.executable).with_name('horovodrun')


def load_script(name, folder=SCRIPTS):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(name, folder / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(script, *argv):
    """The exit status of a script's run in this process."""
    return cli.run(script.main, list(map(str, argv)))


def refusal(capsys, script, *argv):
    """What a script says of bad input: one line, and the exit status is 1."""
    capsys.readouterr()
    assert run(script, *argv) == 1
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith('error: ')]
    assert len(lines) == 1 and 'Traceback' not in said, said
    return lines[0]


def start(program, *argv, **options):
    """A script that runs in a process of its own."""
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    command = list(map(str, [sys.executable, program, *argv]))
    return subprocess.Popen(command, env=environment, text=True, **options)


def horovodrun(count, program, *argv):
    """Run a program in several processes, which must succeed; returns what they have printed.

    Skips the test where Horovod isn't installed.
    """
    pytest.importorskip('horovod.mxnet')
    command = [HOROVODRUN, '--gloo', '-np', count, '-H', f'localhost:{count}', sys.executable]
    environment = {**os.environ, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'}
    done = subprocess.run(
        list(map(str, [*command, program, *argv])),
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def assert_same_model(folder, other, tolerance=0):
    """That the best models of two runs are equal, or differ by no more than the tolerance."""
    ours, theirs = (
        read_tensors(str(each / 'best_model' / 'model.params'))[0] for each in (folder, other)
    )
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(
            ours[name], theirs[name], rtol=0, atol=tolerance, err_msg=name
        )


def assert_two_workers_train_as_one(script, program, arguments, folder):
    """That two workers of 5 examples each end where one of 10 does.

    Parameters
    ----------
    script : module
    program : pathlib.Path
        Its file.
    arguments : callable
        ``arguments(output, *more) -> list`` of those of a training without dropout.
    folder : pathlib.Path
    """
    one, two = folder / 'one', folder / 'two'
    more = ['--training_steps', 4, '--lr', '1e-3', '--batch_size']
    horovodrun(2, program, *arguments(two, *more, 5, '--comm_backend', 'horovod'))
    assert run(script, *arguments(one, *more, 10)) == 0
    assert_same_model(one, two, 1e-5)
    assert (two / 'results.json').exists()
