"""scripts/run_pretraining_hvd.py by two processes, which ``make horovod`` makes possible."""

import os
import pathlib
import sys

import pytest
from script_runs import (
    SCRIPTS,
    assert_same_model,
    assert_same_parameters,
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


def test_two_processes_equal_one_on_the_whole_batch(data, tmp_path):
    """In parameters, losses and evaluation; also where one has no part of a batch.

    34 samples in batches of 8 leave 2, in batches of 11 leave 1, which process 1 has no part of.
    """
    for whole, half in ((8, 4), (22, 11)):
        one, two = (tmp_path / f'{name}-{whole}' for name in ('one', 'two'))
        for path, count, size in ((one, 1, whole), (two, 2, half)):
            argv = arguments(data, path, size, '--num_steps', 10, '--log_interval', 5)
            train_in_workers(count, SCRIPT, *argv)
        assert_same_model(two, one, 1e-5)
        our_log, their_log = (read_json(folder)['training'] for folder in (two, one))
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
