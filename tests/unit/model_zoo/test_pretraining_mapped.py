"""Batches of memory-mapped samples are those of the files in memory."""

import os
import types

import numpy as np
import pytest

from bert.tokenizer import BertTokenizer
from model_zoo.data.pretraining import (
    Corpus,
    MappedLoader,
    PretrainingLoader,
    RawTextLoader,
    SampleMaker,
    SampleOptions,
    create_shards,
    mapped,
)
from model_zoo.errors import InputError

OPTIONS = SampleOptions(64, 10, 2, short_seq_prob=0.5)
FILES = 5


@pytest.fixture(scope='module')
def tokenizer(fixtures):
    return BertTokenizer(fixtures / 'pretraining' / 'vocab.txt')


@pytest.fixture(scope='module')
def text(fixtures):
    return [str(fixtures / 'pretraining' / 'sample_text.txt')] * 6


@pytest.fixture(scope='module')
def shards(text, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp('shards')
    create_shards(SampleMaker(Corpus(text), tokenizer, OPTIONS), folder, num_outputs=FILES)
    return f'{folder}/*.npz'


@pytest.fixture
def load(shards, tokenizer, tmp_path):
    def load(**options):
        return MappedLoader(
            shards, 8, str(tmp_path / 'mapped'), vocab=tokenizer.vocab, **options
        )

    return load


def assert_same(one, other):
    assert (one.indices == other.indices).all()
    for mine, want in zip(one[:7], other[:7]):
        assert mine.shape == want.shape and mine.dtype == want.dtype
        assert (mine.asnumpy() == want.asnumpy()).all()


@pytest.mark.parametrize(
    'options', [{'seed': 3}, {'num_buckets': 3}, {'shuffle': False}], ids=str
)
def test_batches_are_those_of_all_files_in_memory(load, shards, tokenizer, options):
    ours = load(**options)
    loader = PretrainingLoader(shards, 8, vocab=tokenizer.vocab, circle_length=FILES, **options)
    assert len(ours) == len(loader) and ours.num_samples == loader.num_samples
    for epoch, start in ((0, 0), (1, 3)):
        batches = list(ours.epoch(epoch, start))
        assert len(batches) == len(loader) - start
        for one, other in zip(batches, loader.epoch(epoch, start)):
            assert_same(one, other)


def test_workers_share_batches(load):
    whole = next(load(shuffle=False).epoch(0))
    workers = [types.SimpleNamespace(rank=rank, size=2) for rank in (0, 1)]
    parts = [next(load(shuffle=False, workers=each).epoch(0)) for each in workers]
    assert all(len(part.indices) == 8 for part in parts)
    together = np.stack([part.indices for part in parts], axis=1).ravel()
    assert (together[:8] == whole.indices).all()


def test_samples_are_not_in_memory(load, monkeypatch):
    """One file after the other is read, once, and what batches come from are maps."""
    read = []
    real = mapped.read_shard
    monkeypatch.setattr(mapped, 'read_shard', lambda *args: read.append(args[0]) or real(*args))
    loader = load()
    assert len(read) == len(set(read)) == FILES
    part = loader._part(0, 0).read()
    assert all(isinstance(array, np.memmap) for array in part)
    assert all(type(array) is np.ndarray for array in part.take(np.array([1, 0])))
    list(loader.epoch(0))
    assert len(read) == FILES


def test_bad_folder(shards, tokenizer, tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(InputError, match='cannot write to directory'):
        MappedLoader(shards, 8, str(tmp_path / 'file'), vocab=tokenizer.vocab)
    with pytest.raises(InputError, match='no file matches'):
        MappedLoader(f'{tmp_path}/*.npz', 8, str(tmp_path / 'x'), vocab=tokenizer.vocab)
    assert not os.path.exists(tmp_path / 'x')


def test_batches_of_a_text_are_counted(text, tokenizer):
    loader = RawTextLoader(
        text, 8, tokenizer, OPTIONS, num_workers=0, seed=1, part_bytes=4000
    )
    counts = [sum(1 for _ in loader.epoch(epoch)) for epoch in range(3)]
    assert [loader.count_batches(epoch) for epoch in range(3)] == counts
    assert len(loader) == counts[0] and len(set(counts)) > 1
