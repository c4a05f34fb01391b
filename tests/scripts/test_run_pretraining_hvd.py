"""scripts/run_pretraining_hvd.py by two processes, which ``make horovod`` makes possible."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from script_runs import (
    ROOT,
    SCRIPTS,
    assert_same_parameters,
    parameters,
    read_json,
    run_workers,
    train_in_workers,
    without,
)
from tiny import write_words
from toy_data import COUNTED, make_samples

from model_zoo.tasks.pretraining.files import write_shard
from model_zoo.tokenization.vocab import load_vocab

SCRIPT = SCRIPTS / 'run_pretraining_hvd.py'
HOROVODRUN = pathlib.Path(sys.executable).parent / 'horovodrun'

if not HOROVODRUN.exists():
    pytest.skip('Horovod is not installed: make horovod', allow_module_level=True)


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A folder with vocab.txt and two shards of 17 samples, with 1 to 3 masks each."""
    folder = tmp_path_factory.mktemp('data')
    vocab = load_vocab(str(write_words(folder, COUNTED)))
    for seed in range(2):
        write_shard(str(folder / f'part-{seed}.npz'), make_samples(17, seed), vocab)
    return folder


def arguments(data, folder, batch_size, *more):
    pattern = str(data / 'part-*.npz')
    argv = ['--data', pattern, '--data_eval', pattern, '--vocab_file', data / 'vocab.txt']
    argv += ['--hparams', 'num_layers=1,units=16,hidden_size=32,num_heads=2,dropout=0.0']
    argv += ['--batch_size', batch_size, '--output_dir', folder, '--lr', '1e-3', *more]
    return [str(word) for word in argv]


def read(folder):
    return parameters(folder / 'model' / 'model.safetensors'), read_json(folder)['training']


def assert_close(folder, other, tolerance=1e-5):
    """Assert that two models differ only by rounding."""
    theirs = read(other)[0]
    for name, value in read(folder)[0].items():
        assert np.abs(value - theirs[name]).max() < tolerance, name


def test_two_processes_equal_one_on_the_whole_batch(data, tmp_path):
    """In parameters, losses and evaluation; also where one has no part of a batch.

    34 samples in batches of 8 leave 2, in batches of 11 leave 1, which process 1 has no part of.
    """
    for whole, half in ((8, 4), (22, 11)):
        one, two = (tmp_path / f'{name}-{whole}' for name in ('one', 'two'))
        for path, count, size in ((one, 1, whole), (two, 2, half)):
            argv = arguments(data, path, size, '--num_steps', 10, '--log_interval', 5)
            train_in_workers(count, SCRIPT, *argv)
        assert_close(two, one)
        our_log, their_log = read(two)[1], read(one)[1]
        for our, their in zip(our_log['log'], their_log['log']):
            for name in ('mlm_loss', 'mlm_acc', 'nsp_loss', 'nsp_acc', 'grad_norm'):
                assert our[name] == pytest.approx(their[name], rel=1e-4), name
        assert our_log['epochs'][-1]['report']['eval'] == pytest.approx(
            their_log['epochs'][-1]['report']['eval'], rel=1e-4
        )


@pytest.mark.slow
def test_rank_0_alone_logs_and_saves_and_both_resume(data, tmp_path):
    argv = arguments(data, tmp_path / 'ckpt', 4, '--num_steps', 6, '--ckpt_interval', 2)
    argv += ['--log_interval', '3', '--keep_checkpoints', '3']
    first, second = run_workers(2, SCRIPT, *argv)
    assert (first.returncode, second.returncode) == (0, 0), first.stdout + second.stdout
    assert first.stdout.count('[step 3]') == 1 and first.stdout.count('Eval mlm_loss=') == 1
    assert second.stdout == ''
    os.rename(tmp_path / 'ckpt' / 'model', tmp_path / 'model')
    newest = sorted((tmp_path / 'ckpt' / 'checkpoints').iterdir())[-1]
    os.truncate(newest / 'model.params', 100)
    assert 'step-00000004' in train_in_workers(2, SCRIPT, *argv, '--resume')
    models = (tmp_path / name / 'model.safetensors' for name in ('model', 'ckpt/model'))
    assert_same_parameters(*models)


def test_batch_that_the_workers_cannot_share(data, tmp_path):
    argv = arguments(data, tmp_path / 'ckpt', 4, '--total_batch_size', 9)
    done = run_workers(2, SCRIPT, *without(argv, '--batch_size'))
    assert all(each.returncode for each in done)
    output = ''.join(each.stdout for each in done)
    assert 'error: --total_batch_size is 9' in output


def pids_of(folder, rank):
    """The processes of a worker that trains in a folder."""
    for path in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            command = (path / 'cmdline').read_bytes()
            variables = (path / 'environ').read_bytes().split(b'\0')
        except OSError:
            continue  # it has ended
        is_python = b'python' in command.split(b'\0')[0]
        if is_python and str(folder).encode() in command and b'HOROVOD_RANK=%d' % rank in variables:
            yield int(path.name)


@pytest.mark.slow
def test_a_host_disappears_and_the_job_goes_on_with_those_left(data, tmp_path):
    """Hosts are two names of this machine; one is killed with -9 and not discovered any more."""
    hosts, discover = tmp_path / 'hosts', tmp_path / 'discover.sh'
    hosts.write_text('localhost:1\n127.0.0.1:1\n')
    discover.write_text(f'#!/bin/sh\ncat {hosts}\n')
    discover.chmod(0o755)
    folder, more = tmp_path / 'ckpt', ['--num_steps', 600, '--ckpt_interval', 20, '--lr', '1e-4']
    argv = without(arguments(data, folder, 4, *more), '--batch_size')
    environment = {
        **os.environ,
        'PYTHONPATH': str(ROOT),
        'OMP_NUM_THREADS': '1',
        'PAUSE': '1',
        'HOROVODRUN_FLAGS': '--gloo',
        'PATH': f'{HOROVODRUN.parent}:{os.environ["PATH"]}',
    }
    program = ROOT / 'docs' / 'deploy' / 'train_on_hosts.sh'
    command = [program, discover, '8', sys.executable, SCRIPT, *argv]
    with open(tmp_path / 'said', 'w+', encoding='utf-8') as said:
        job = subprocess.Popen(
            [str(word) for word in command], env=environment, stdout=said, stderr=said
        )
        try:
            deadline = time.monotonic() + 1200
            while not list(folder.glob('checkpoints/step-*')):
                assert job.poll() is None and time.monotonic() < deadline
                time.sleep(0.01)
            hosts.write_text('localhost:1\n')
            lost = list(pids_of(folder, 1))
            assert lost
            for pid in lost:
                os.kill(pid, signal.SIGKILL)
            assert job.wait(1200) == 0
        finally:
            job.kill()
        said.seek(0)
        said = said.read()
    assert 'training with 2 workers on localhost:1,127.0.0.1:1\n' in said
    assert 'training with 1 workers on localhost:1\n' in said
    log = (folder / 'log_phase1.txt').read_text()
    assert 'continuing from' in log and 'by 2 workers' in log and 'by 1 worker ' in log
    train_in_workers(1, SCRIPT, *arguments(data, tmp_path / 'whole', 8, *more))
    assert read_json(folder)['training']['steps'] == 600
    assert_close(folder, tmp_path / 'whole', 1e-4)
