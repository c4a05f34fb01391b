"""Batches: contents, order, and that neither depends on more than the seed and the epoch."""

from typing import NamedTuple

import mxnet as mx
import numpy as np
import pytest

from model_zoo.batches import BucketedLoader, Sample
from model_zoo.batches.sampling import longest_first


def make(lengths, label=lambda n: n % 2):
    return [
        Sample(np.full(length, n + 1, np.int32), np.arange(length, dtype=np.int32) % 2, label(n))
        for n, length in enumerate(lengths)
    ]


LENGTHS = np.random.RandomState(0).randint(3, 100, 403).tolist()


def order(loader, epoch):
    return [indices.tolist() for indices in loader.batch_indices(epoch)]


def test_a_batch():
    features = make([3, 2])
    (batch,) = BucketedLoader(features, 4, round_to=8, pad_val=9)
    assert batch.indices.tolist() == [0, 1]
    assert batch.words.asnumpy().tolist() == [[1, 1, 1] + [9] * 5, [2, 2] + [9] * 6]
    assert batch.token_types.asnumpy().tolist() == [[0, 1, 0] + [0] * 5, [0, 1] + [0] * 6]
    assert batch.valid_length.asnumpy().tolist() == [3, 2]
    assert batch.labels.asnumpy().tolist() == [0, 1]
    arrays = [*batch.inputs, batch.labels]
    assert [array.dtype for array in arrays] == [np.int32, np.int32, np.float32, np.int32]
    assert all(array.context == mx.cpu() for array in arrays)


@pytest.mark.parametrize('shuffle', [False, True])
def test_every_sample_once_in_batches_of_like_length(shuffle):
    loader = BucketedLoader(make(LENGTHS), 8, shuffle=shuffle, seed=1, pad_val=0)
    batches = list(loader)
    assert len(batches) == len(loader)
    assert loader.num_samples == len(LENGTHS)
    assert sorted(np.concatenate([batch.indices for batch in batches])) == list(range(len(LENGTHS)))
    assert max(len(batch.indices) for batch in batches) == 8
    padded = sum(batch.words.size for batch in batches)
    assert padded < 1.15 * sum(LENGTHS)  # 1.8 in an order without regard to length
    for batch in batches:
        assert batch.words[:, 0].asnumpy().tolist() == (batch.indices + 1).tolist()
        assert batch.labels.asnumpy().tolist() == (batch.indices % 2).tolist()


def test_evaluation_is_in_the_same_order_always_longest_first():
    loader = BucketedLoader(make(LENGTHS), 8, pad_val=0)
    assert order(loader, 0) == order(loader, 3)
    lengths = [LENGTHS[index] for batch in order(loader, 0) for index in batch]
    assert lengths == sorted(LENGTHS, reverse=True)
    assert len(loader) == -(-len(LENGTHS) // 8)


def test_batches_of_limited_tokens_are_cut_where_it_saves_padding():
    lengths = [5, 90, 5, 100, 6, 95, 5, 300]
    batches = [batch.tolist() for batch in longest_first(lengths, 16, 2048)]
    assert batches == [[7], [3, 5, 1], [4, 0, 2, 6]]
    # a few tokens of padding are cheaper than one more batch
    assert [len(batch) for batch in longest_first([20, 19, 18, 17], 16, 2048)] == [4]


def test_order_depends_on_the_seed_and_the_epoch_only():
    def loader(seed=7):
        return BucketedLoader(make(LENGTHS), 8, shuffle=True, seed=seed, pad_val=0)

    first = loader()
    epochs = [order(first, epoch) for epoch in range(3)]
    np.random.seed(99)  # another state of the global generator
    again = loader()
    assert order(again, 2) == epochs[2]  # a resumed run that saw no other epoch
    assert order(again, 0) == epochs[0]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert order(loader(8), 0) != epochs[0]
    assert order(loader(-1), 0) != epochs[0]
    assert {len(epoch) for epoch in epochs} == {len(first)}


def test_the_global_generator_is_left_alone():
    loader = BucketedLoader(make(LENGTHS), 8, shuffle=True, pad_val=0)
    np.random.seed(5)
    expected = np.random.rand(3).tolist()
    np.random.seed(5)
    for _ in loader:
        break
    assert np.random.rand(3).tolist() == expected


class Worker(NamedTuple):
    rank: int
    size: int


def test_workers_share_each_batch_of_a_lone_one():
    features = make(LENGTHS)
    alone = BucketedLoader(features, 12, shuffle=True, seed=5, pad_val=0)
    parts = [
        BucketedLoader(features, 4, shuffle=True, seed=5, pad_val=0, workers=Worker(rank, 3))
        for rank in range(3)
    ]
    for whole, *shared in zip(alone.epoch(1), *(part.epoch(1) for part in parts)):
        assert shared[0] is not None
        indices = [part.indices.tolist() for part in shared if part is not None]
        assert sorted(sum(indices, [])) == sorted(whole.indices.tolist())
    few = BucketedLoader(make([3, 4]), 1, shuffle=True, pad_val=0, workers=Worker(2, 3))
    assert [batch is None for batch in few.epoch(0)] == [True]
    assert len(alone) == len(parts[0]) == len(list(parts[2].epoch(1)))


def by_tokens(features, budget, **options):
    return BucketedLoader(features, shuffle=True, seed=3, pad_val=0, batch_tokens=budget, **options)


@pytest.mark.parametrize('round_to', [None, 8])
def test_batches_of_limited_tokens_are_random_and_have_no_more_of_them(round_to):
    loader = by_tokens(make(LENGTHS), 512, round_to=round_to)
    for epoch in range(2):
        batches = list(loader.epoch(epoch))
        assert len(batches) == len(loader)
        rows = np.concatenate([batch.indices for batch in batches])
        assert sorted(rows) == list(range(len(LENGTHS)))
        assert max(batch.words.size for batch in batches) <= 512
        sizes = {len(batch.indices) for batch in batches}
        assert min(sizes) <= 5 and max(sizes) > 12  # of the longest, and of the shortest
        padded = sum(batch.words.size for batch in batches)
        assert padded < (1.06 if round_to is None else 1.1) * sum(LENGTHS)
        # the budget is made use of: but for the last ones of the buckets, batches are full
        assert len(batches) < 1.45 * sum(LENGTHS) / 512
    assert order(loader, 0) != order(loader, 1)


def test_limited_tokens_are_those_of_all_choices_and_a_long_sample_is_alone():
    samples = [
        Sample((np.ones(length, np.int32), np.ones(3, np.int32)), None, 0) for length in LENGTHS
    ]
    batches = list(by_tokens(samples, 160))
    assert max(batch.words.size for batch in batches if len(batch.indices) > 1) <= 160
    longest = max(batches, key=lambda batch: batch.words.size)
    assert len(longest.indices) == 1 and longest.words.size == 2 * max(LENGTHS)
    assert sum(len(batch.indices) for batch in batches) == len(LENGTHS)


def test_workers_share_the_batches_of_limited_tokens():
    features = make(LENGTHS)
    alone = [batch.indices.tolist() for batch in by_tokens(features, 600).epoch(1, 2)]
    workers = [by_tokens(features, 300, workers=Worker(rank, 2)) for rank in range(2)]
    for whole, *shared in zip(alone, *(worker.epoch(1, 2) for worker in workers)):
        parts = [[] if part is None else part.indices.tolist() for part in shared]
        assert parts == [whole[0::2], whole[1::2]]
    assert len(alone) == len(workers[0]) - 2
