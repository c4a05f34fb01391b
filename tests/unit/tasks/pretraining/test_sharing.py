"""Several workers each read their own parts, and train on 0.1's batches of all of them."""

import concurrent.futures
import threading
import types

import numpy as np
import pytest
from batches_of_samples import alone, assert_same

from model_zoo.errors import InputError
from model_zoo.tasks.pretraining import (
    PretrainingLoader,
    SampleOptions,
    ShardFiles,
    read_shard,
    sources,
    write_epoch,
)

OPTIONS = SampleOptions(32, 5, 1, short_seq_prob=0.5)
FILES = 7


class Together:
    """Workers that are threads of this process."""

    def __init__(self, size):
        self.size, self.ints = size, [0] * size  # of each, how many it has got
        self._barrier, self._given = threading.Barrier(size, timeout=300), [None] * size

    def run(self, work):
        """``work(worker)`` of each, or its error."""
        with concurrent.futures.ThreadPoolExecutor(self.size) as pool:
            done = [pool.submit(work, self._worker(rank)) for rank in range(self.size)]
        return [each.exception() or each.result() for each in done]

    def _worker(self, rank):
        def exchange(arrays):
            assert len(arrays) == self.size
            assert all(each.dtype == np.int32 and each.ndim == 1 for each in arrays)
            got = [each[rank].copy() for each in self._all(rank, arrays)]
            self.ints[rank] += sum(map(len, got))
            return got

        def add(values):
            return np.sum(self._all(rank, values), axis=0)

        return types.SimpleNamespace(rank=rank, size=self.size, exchange=exchange, sum=add)

    def _all(self, rank, given):
        self._given[rank] = given
        self._barrier.wait()
        found = list(self._given)
        self._barrier.wait()
        return found


def assert_equal(ours, theirs):
    assert len(ours) == len(theirs) > 0
    for mine, other in zip(ours, theirs):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_same(mine, other)


KINDS = {
    'plain': {},
    'buckets': {'num_buckets': 3, 'accumulate': 3},
    'tokens': {'num_buckets': 3, 'use_avg_len': True, 'batch_size': 150},
    'in order': {'shuffle': False, 'circle_length': 1},
    'all at once': {'circle_length': 9, 'batch_size': 3},
}


@pytest.mark.parametrize('kind, size', [*zip(KINDS, (2, 3, 5, 2, 3))])
def test_batches_are_those_of_workers_that_read_all(kind, size, shards, tokenizer):
    options = {'batch_size': 4, 'seed': 5, **KINDS[kind]}

    def batches(worker, start):
        source = ShardFiles(f'{shards}/*.npz', tokenizer.vocab, workers=worker)
        return list(PretrainingLoader(source, workers=worker, **options).epoch(2, start))

    for start in (0, 3, 7):
        found = Together(size).run(lambda worker, start=start: batches(worker, start))
        for rank, ours in enumerate(found):
            assert_equal(ours, batches(alone(rank, size), start))


def test_a_file_for_each_epoch(shards, tokenizer, tmp_path):
    for number in range(3):
        samples = read_shard(str(shards / f'part-{number:03d}.npz'))
        write_epoch(str(tmp_path / f'epoch_{number}.json'), [samples], tokenizer.vocab, 32)

    def batches(worker):
        files = ShardFiles(f'{tmp_path}/epoch_?.json', tokenizer.vocab, workers=worker)
        files.take_one_an_epoch()
        loader = PretrainingLoader(files, 4, workers=worker)
        return [batch for epoch in range(4) for batch in loader.epoch(epoch)]

    for rank, ours in enumerate(Together(2).run(batches)):
        assert_equal(ours, batches(alone(rank, 2)))


@pytest.mark.parametrize('when', ['looked at', 'read'])
def test_a_file_that_cannot_be_read_is_an_error_of_all(when, shards, tokenizer, monkeypatch):
    name = 'read_lengths' if when == 'looked at' else 'read_shard'
    real = getattr(sources, name)

    def read(path, *args):
        if path.endswith('part-001.npz'):
            raise InputError(f'{path}: damaged')
        return real(path, *args)

    monkeypatch.setattr(sources, name, read)

    def work(worker):
        source = ShardFiles(f'{shards}/*.npz', tokenizer.vocab, workers=worker)
        return list(PretrainingLoader(source, 4, workers=worker).epoch(0))

    errors = Together(3).run(work)
    assert all(isinstance(error, InputError) for error in errors)
    assert str(errors[1]).endswith('part-001.npz: damaged')
    assert str(errors[0]) == str(errors[2]) == 'worker 1 cannot read its part of the samples'
