"""MXNet gets every processor, unless the user says otherwise."""

import os
import pathlib
import subprocess
import sys

import pytest

import model_zoo
from model_zoo import threads

ROOT = str(pathlib.Path(model_zoo.__file__).parent.parent)


def run(program, **changes):
    environment = {**os.environ, **changes}
    environment = {key: value for key, value in environment.items() if value is not None}
    result = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', program],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return result.stdout.decode().strip()


SHOW = "import os, mxnet as mx; print(os.environ['OMP_NUM_THREADS'])"


@pytest.mark.parametrize('packages', ['model_zoo', 'bert', 'export', 'mxnet, model_zoo'])
def test_import_sets_the_variable(packages):
    program = f'import {packages}\n{SHOW}'
    assert run(program, OMP_NUM_THREADS=None) == str(threads.available_processors())


def test_user_is_obeyed():
    assert run(f'import model_zoo\n{SHOW}', OMP_NUM_THREADS='7') == '7'


def test_loaded_library_is_told(monkeypatch):
    import mxnet.base

    calls = []

    class Library:
        @staticmethod
        def MXSetNumOMPThreads(count):  # noqa: N802  MXNet's name
            calls.append(count)

    monkeypatch.setattr(mxnet.base, '_LIB', Library)
    monkeypatch.delenv('OMP_NUM_THREADS')
    threads.use_all_processors()
    assert calls == [threads.available_processors()]
    assert os.environ['OMP_NUM_THREADS'] == str(calls[0])
    threads.use_all_processors()
    assert len(calls) == 1


def test_processors_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0, 3, 5}, raising=False)
    assert threads.available_processors() == 3
    monkeypatch.delattr(os, 'sched_getaffinity')
    monkeypatch.setattr(os, 'cpu_count', lambda: None)
    assert threads.available_processors() == 1
