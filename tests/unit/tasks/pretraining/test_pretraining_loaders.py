"""Batches of samples: each once an epoch, the same ones at each call, from any batch on."""

from typing import NamedTuple

import mxnet as mx
import numpy as np
import pytest
from json_files import cases

from model_zoo.tasks.pretraining.files import Samples, read_shard
from model_zoo.tasks.pretraining.loaders import PretrainingLoader, make_batch
from model_zoo.tasks.pretraining.sources import ShardFiles, TextFiles
from model_zoo.tasks.pretraining.text import SampleOptions

OPTIONS = SampleOptions(64, 10, 2, short_seq_prob=0.5)
FILES, TYPES = 5, {np.int32, np.float32}
KINDS = cases('pretraining')['KINDS']


def arrays(batch):
    """In the order in which the model and its losses take them."""
    masks = batch.masked_positions, batch.masked_ids, batch.masked_weights
    return [*batch.inputs, *masks, batch.next_sentence_labels]


def assert_same(one, other):
    assert (one.indices == other.indices).all()
    assert (one.num_masked, one.num_tokens) == (other.num_masked, other.num_tokens)
    for mine, want in zip(arrays(one), arrays(other)):
        assert mine.shape == want.shape and mine.dtype == want.dtype
        assert (mine.asnumpy() == want.asnumpy()).all()


@pytest.fixture
def load(shards, tokenizer):
    def load(**options):
        size = 500 if options.get('use_avg_len') else 8
        source = ShardFiles(f'{shards}/*.npz', tokenizer.vocab)
        return PretrainingLoader(source, **{'batch_size': size, **options})

    return load


@pytest.mark.parametrize('kind', KINDS)
def test_epochs(kind, load):
    loader = load(**KINDS[kind])
    batches = list(loader.epoch(1))
    numbers = np.concatenate([batch.indices for batch in batches])
    assert len(numbers) == len(set(numbers)) > 100
    assert len(batches) == len(loader) == len(list(loader.epoch(2)))
    for start in (0, 1, len(batches) // 2, len(batches) - 1, len(batches), len(batches) + 2):
        rest = list(loader.epoch(1, start))
        assert len(rest) == max(0, len(batches) - start)
        for one, other in zip(rest, batches[start:]):
            assert_same(one, other)
    again = np.concatenate([batch.indices for batch in load(**KINDS[kind]).epoch(2)])
    assert (numbers == again).all() != KINDS[kind].get('shuffle', True)


def test_parts_samples_and_batches_are_shuffled_anew_in_each_epoch(load):
    def numbers(epoch, **options):
        return [batch.indices.tolist() for batch in load(seed=3, **options).epoch(epoch)]

    parts, samples = {'circle_length': 1, 'batch_size': 1}, {'circle_length': 9, 'batch_size': 999}
    first, second = numbers(1, **parts), numbers(2, **parts)
    assert numbers(1, **parts) == first
    first, second = ([row[0] >> 32 for row in each] for each in (first, second))
    assert first != second and sorted(first) == sorted(second)
    ((whole,), (other,)) = (numbers(epoch, **samples) for epoch in (1, 2))
    assert sorted(whole) not in (whole, other)
    batches = list(load(num_buckets=4, circle_length=9).epoch(0))
    widths = [batch.words.shape[1] for batch in batches]
    assert widths not in (sorted(widths), sorted(widths, reverse=True))


class Worker(NamedTuple):
    rank: int
    size: int


@pytest.mark.parametrize('start', [0, 3])
@pytest.mark.parametrize('kind', KINDS)
def test_workers_share_the_batches_of_one(kind, start, load):
    size, options = 3, {**KINDS[kind], 'batch_size': 150 if kind == 'tokens' else 4}
    whole = list(load(accumulate=2 * size, **options).epoch(2))
    for rank in range(size):
        part = load(accumulate=2, workers=Worker(rank, size), **options)
        expected = whole[start * size + rank :: size]
        found = list(part.epoch(2, start))
        assert len(found) == len(expected) > 0 and len(part) == len(found) + start
        for mine, other in zip(found, expected):
            assert (mine is None) == (other is None)
            if mine is not None:
                assert_same(mine, other)


def test_what_a_batch_holds(load, shards, tokenizer):
    paths = sorted(shards.glob('*.npz'))
    files = [read_shard(str(path)) for path in paths]
    for batch in load(num_buckets=4).epoch(0):
        length, masks = batch.words.shape[1], batch.masked_ids.shape[1]
        kinds = ''.join(np.dtype(array.dtype).kind for array in arrays(batch))
        assert kinds == 'iifiifi' and {array.dtype for array in arrays(batch)} == TYPES
        lengths = batch.valid_length.asnumpy().astype(int)
        counts = batch.masked_weights.asnumpy().sum(axis=1).astype(int)
        assert length == -(-lengths.max() // 8) * 8 and masks == -(-counts.max() // 8) * 8
        assert batch.num_tokens == lengths.sum() and batch.num_masked == counts.sum()
        for row, number in enumerate(batch.indices.tolist()):
            want = files[number >> 32].take([number & (2**32 - 1)])
            assert want.valid_lengths[0] == lengths[row]
            assert want.masked_lm_weights[0].sum() == counts[row]
            assert want.next_sentence_labels[0] == batch.next_sentence_labels[row].asscalar()
            for mine, field, size in (
                (batch.words, 'input_ids', lengths[row]),
                (batch.token_types, 'segment_ids', lengths[row]),
                (batch.masked_positions, 'masked_lm_positions', counts[row]),
                (batch.masked_ids, 'masked_lm_ids', counts[row]),
                (batch.masked_weights, 'masked_lm_weights', counts[row]),
            ):
                mine, theirs = mine[row].asnumpy(), getattr(want, field)[0]
                assert mine[:size].tolist() == theirs[:size].tolist() and not mine[size:].any()


def test_padding_is_the_vocabularys():
    """Files are padded with 0 where they are joined; batches with the padding token."""
    found = Samples.empty(2, 6, 2)
    for array in found:
        array[:] = 1
    found.valid_lengths[:] = 3, 5
    batch = make_batch(found, np.arange(2), 9, 8, mx.cpu())
    assert batch.words.asnumpy().tolist() == [[1] * 3 + [9] * 5, [1] * 5 + [9] * 3]


def test_buckets_hold_like_lengths(load):
    def padding(**options):
        batches = list(load(round_to=1, **options).epoch(0))
        return 1 - sum(b.num_tokens for b in batches) / sum(b.words.size for b in batches)

    assert padding(num_buckets=6) < 0.5 * padding()
    tokens = [b.num_tokens for b in load(num_buckets=4, use_avg_len=True).epoch(0)]
    assert 300 < np.median(tokens) <= 500
    counts = [len(b.indices) for b in load(num_buckets=4, use_avg_len=True).epoch(0)]
    assert max(counts) > 2 * min(counts)


@pytest.mark.parametrize('kind', [{}, {'num_buckets': 3, 'use_avg_len': True, 'batch_size': 400}])
def test_raw_text(kind, text, tokenizer):
    kind = {'batch_size': 8, **kind}

    def load(num_workers, **options):
        source = TextFiles(text, tokenizer, OPTIONS, num_workers=num_workers, part_bytes=4000)
        return PretrainingLoader(source, **kind, **options)

    here = load(0)
    batches = list(here.epoch(1))
    assert len(batches) > 10
    for start in (1, len(batches) // 2, len(batches) - 1):
        for one, other in zip(here.epoch(1, start), batches[start:]):
            assert_same(one, other)
    elsewhere = load(2)
    for one, other in zip(elsewhere.epoch(1), batches):
        assert_same(one, other)
    elsewhere.close()
    other = next(here.epoch(2))
    assert not np.array_equal(other.words.asnumpy(), batches[0].words.asnumpy())
    numbers = np.concatenate([batch.indices for batch in batches])
    assert len(numbers) == len(set(numbers))
