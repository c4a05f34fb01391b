"""Scripts whose inputs and outputs are at URLs of a real S3 server."""

import glob
import multiprocessing.util
import os
import tempfile

import local_s3
import pytest
from arrays import assert_equal, tensors_of
from script_runs import load_script, refusal, run
from toy_data import PRETRAINED, write_shards

from bert import BertForPreTraining
from model_zoo.training.checkpoint import CheckpointStore
from model_zoo.util import remote
from model_zoo.util.reading import read_json


@pytest.fixture
def bucket(s3_port, monkeypatch, tmp_path):
    url = local_s3.new_bucket(monkeypatch, s3_port)
    machine(monkeypatch, tmp_path / 'machine')
    return url


def machine(monkeypatch, path):
    """Work on a machine of its own: another folder for temporary files, another cache."""
    path.mkdir()
    multiprocessing.util.get_temp_dir()  # stays where it is: a socket's path must be short
    monkeypatch.setattr(tempfile, 'tempdir', str(path))
    monkeypatch.setenv('MXNET_HOME', str(path / 'cache'))


def left(path):
    """The files that are left there."""
    return [name for _, _, names in os.walk(path) for name in names]


def put(folder, url):
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            remote.upload(path, remote.join(url, os.path.relpath(path, folder)))


def test_samples_and_vocabularies(bucket, fixtures, tmp_path):
    source = fixtures / 'pretraining'
    for name in ('sample_text.txt', 'vocab.txt'):
        remote.upload(str(source / name), f'{bucket}/in/{name}')
    create = load_script('create_pretraining_data')
    flags = ['--max_length', 32, '--dupe_factor', 1, '--num_outputs', 3]
    local, url = (str(source), str(tmp_path / 'out')), (f'{bucket}/in', f'{bucket}/out')
    for (place, out), workers in ((local, 1), (url, 2)):
        argv = ['--input_file', f'{place}/sample*.txt', '--vocab', f'{place}/vocab.txt']
        assert run(create, *argv, '--output_dir', out, *flags, '--num_workers', workers) == 0
        assert run(create, *argv, '--output_file', f'{out}/records', *flags) == 0
    names = sorted(remote.names_in(f'{bucket}/out'))
    assert names == sorted(glob.glob('*', root_dir=tmp_path / 'out')) and len(names) == 3
    for name in names:
        with remote.open_binary(f'{bucket}/out/{name}') as file:
            assert file.read() == (tmp_path / 'out' / name).read_bytes()
    assert not left(tmp_path / 'machine' / 'cache' / 'runs')


def test_a_training_goes_on_at_another_machine(bucket, tmp_path, monkeypatch, capsys):
    (tmp_path / 'in').mkdir()
    write_shards(tmp_path / 'in')
    put(tmp_path / 'in', f'{bucket}/in')
    script = load_script('run_pretraining')

    def flags(out, steps, *more):
        return [
            *('--data', f'{bucket}/in/train-*.npz', '--data_eval', f'{bucket}/in/eval.npz'),
            *('--vocab_file', f'{bucket}/in/vocab.txt', *PRETRAINED, '--lr', '1e-2'),
            *('--batch_size', 8),
            *('--output_dir', out, '--num_steps', steps, '--ckpt_interval', 2, *more),
        ]

    assert run(script, *flags(tmp_path / 'local', 6)) == 0
    save, count = CheckpointStore.save, []

    def die(self, *args):  # as if the machine were gone right after its second checkpoint
        save(self, *args)
        count.append(1)
        if len(count) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(CheckpointStore, 'save', die)
    assert run(script, *flags(f'{bucket}/out', 6)) == 130
    monkeypatch.setattr(CheckpointStore, 'save', save)
    found = remote.sizes_in(f'{bucket}/out')
    assert sum(name.endswith('SHA256SUMS') for name in found) == 2
    said = refusal(capsys, script, *flags(f'{bucket}/out', 6))
    assert 'add --resume to continue' in said
    machine(monkeypatch, tmp_path / 'another')
    assert run(script, *flags(f'{bucket}/out', 6, '--resume')) == 0
    assert 'resuming from' in capsys.readouterr().err
    assert not left(tmp_path / 'another' / 'cache' / 'runs')
    args = read_json(f'{bucket}/out/results.json')['args']
    assert args['output_dir'] == f'{bucket}/out'
    here = BertForPreTraining.from_pretrained(str(tmp_path / 'local' / 'model'))
    there = BertForPreTraining.from_pretrained(f'{bucket}/out/model')
    assert_equal(tensors_of(here), tensors_of(there))
