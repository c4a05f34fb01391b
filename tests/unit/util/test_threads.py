"""MXNet gets every processor, unless the user says otherwise."""

import os
import pathlib
import subprocess
import sys

import pytest

import model_zoo
from model_zoo.util import threads

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


@pytest.mark.parametrize(
    ('said', 'used'), [('3', 3), ('4,2', 4), (' 2 ', 2), ('', 1), ('0', 1), ('many', 1)]
)
def test_threads_that_are_used(monkeypatch, said, used):
    monkeypatch.setenv('OMP_NUM_THREADS', said)
    assert threads.used_processors() == used


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


def test_the_user_may_say_how_many_kernels_are_kept(monkeypatch):
    monkeypatch.delenv('MXNET_MKLDNN_CACHE_NUM')  # which importing model_zoo has set
    threads.bound_kernel_memory()
    assert os.environ['MXNET_MKLDNN_CACHE_NUM'] == '128'
    monkeypatch.setenv('MXNET_MKLDNN_CACHE_NUM', '-1')
    threads.bound_kernel_memory()
    assert os.environ['MXNET_MKLDNN_CACHE_NUM'] == '-1'


@pytest.mark.parametrize(
    ('files', 'expected'),
    [
        ({}, 6),
        ({'cpu.max': 'max 100000'}, 6),
        ({'cpu.max': '200000 100000'}, 2),
        ({'cpu.max': '150000 100000'}, 2),
        ({'cpu.max': '10000 100000'}, 1),
        ({'cpu.max': '900000 100000'}, 6),
        ({'cpu.max': 'nonsense'}, 6),
        ({'cpu/cpu.cfs_quota_us': '250000', 'cpu/cpu.cfs_period_us': '100000'}, 3),
        ({'cpu/cpu.cfs_quota_us': '-1', 'cpu/cpu.cfs_period_us': '100000'}, 6),
        ({'cpu/cpu.cfs_quota_us': '100000'}, 6),
    ],
)
def test_quota_of_a_container(monkeypatch, tmp_path, files, expected):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content + '\n')
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(threads, '_CGROUPS', str(tmp_path))
    assert threads.available_processors() == expected


def test_processors_that_the_process_may_use(monkeypatch, tmp_path):
    monkeypatch.setattr(threads, '_CGROUPS', str(tmp_path))
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0, 3, 5}, raising=False)
    assert threads.available_processors() == 3
    monkeypatch.delattr(os, 'sched_getaffinity')
    monkeypatch.setattr(os, 'cpu_count', lambda: None)
    assert threads.available_processors() == 1


def test_copies_have_no_threads_of_their_own():
    """Else GNU's OpenMP has more threads than processors, and lets them sleep."""
    program = """
import {module}
import mxnet as mx
array = mx.nd.ones((4, 1000000))
mx.nd.waitall()
before = len(os.listdir('/proc/self/task'))
array.asnumpy()
print(len(os.listdir('/proc/self/task')) - before)
"""
    more = [
        int(run('import os' + program.format(module=module), OMP_NUM_THREADS='3',
                MXNET_CPU_PARALLEL_SIZE=None))
        for module in ('mxnet', 'model_zoo')
    ]  # fmt: skip
    assert more == [2, 0]


def test_copies_as_the_user_says(monkeypatch):
    monkeypatch.setenv('MXNET_CPU_PARALLEL_SIZE', '1000')
    threads.copy_on_one_thread()
    assert os.environ['MXNET_CPU_PARALLEL_SIZE'] == '1000'
