"""A text as blocks and as streams: what is predicted, how often, and in which order."""

import mxnet as mx
import numpy as np
import pytest

from model_zoo.errors import InputError
from model_zoo.tasks.language_model import BlockLoader, StreamLoader


@pytest.mark.parametrize('count', [2, 5, 8, 9, 23])
@pytest.mark.parametrize('batch_size', [1, 3])
def test_blocks_predict_each_token_once(count, batch_size):
    tokens = np.arange(100, 100 + count)
    loader = BlockLoader(tokens, 5, batch_size, shuffle=True, seed=7)
    batches = list(loader.epoch(2))
    assert len(batches) == len(loader)
    predicted = []
    for batch in batches:
        assert batch.words.dtype == np.int32 and len(batch.words) <= batch_size
        for words, length in zip(batch.words.asnumpy(), batch.valid_length.asnumpy()):
            assert 2 <= length <= 5
            np.testing.assert_array_equal(words[:length], np.arange(words[0], words[0] + length))
            assert not words[length:].any()
            predicted += words[1:length].tolist()
        assert batch.words.shape[1] == batch.valid_length.asnumpy().max()
    assert sorted(predicted) == tokens[1:].tolist()
    assert sum(batch.count for batch in batches) == count - 1


def test_the_order_of_blocks_depends_on_seed_and_epoch():
    def order(seed, epoch, **options):
        loader = BlockLoader(np.arange(200), 4, 8, seed=seed, **options)
        return np.concatenate([batch.words.asnumpy()[:, 0] for batch in loader.epoch(epoch)])

    np.random.seed(5)
    first = order(1, 0, shuffle=True)
    state = np.random.get_state()[1]
    np.testing.assert_array_equal(order(1, 0, shuffle=True), first)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    assert (order(1, 1, shuffle=True) != first).any() and (order(2, 0, shuffle=True) != first).any()
    np.testing.assert_array_equal(order(1, 3), np.arange(0, 199, 3))


def test_streams_go_on():
    loader = StreamLoader(np.arange(23), 2, 4, ctx=mx.cpu())
    batches = list(loader)
    assert [batch.is_first for batch in batches] == [True, False, False] and len(loader) == 3
    assert [batch.count for batch in batches] == [8, 8, 4]
    words = np.concatenate([batch.words.asnumpy() for batch in batches], axis=1)
    np.testing.assert_array_equal(words, [np.arange(10), np.arange(11, 21)])
    labels = np.concatenate([batch.labels.asnumpy() for batch in batches], axis=1)
    np.testing.assert_array_equal(labels, words + 1)
    np.testing.assert_array_equal(loader.labels, labels)


def test_an_extension_is_not_predicted_again():
    plain = list(StreamLoader(np.arange(23), 2, 4))
    extended = list(StreamLoader(np.arange(23), 2, 4, 3))
    assert [batch.words.shape for batch in extended] == [(2, 4), (2, 7), (2, 5)]
    for one, other in zip(plain, extended):
        shown_again = other.words.shape[1] - one.words.shape[1]
        assert (other.labels.asnumpy()[:, :shown_again] == -1).all()
        np.testing.assert_array_equal(other.labels.asnumpy()[:, shown_again:], one.labels.asnumpy())
        np.testing.assert_array_equal(other.words.asnumpy()[:, shown_again:], one.words.asnumpy())
        assert one.count == other.count
    assert extended[1].words.asnumpy()[0].tolist() == list(range(1, 8))


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda: BlockLoader(np.arange(1), 4, 1), 'a text of 1 tokens is too short'),
        (lambda: BlockLoader(np.arange(9), 1, 1), 'block_size 1 and batch_size 1: give at least 2'),
        (lambda: StreamLoader(np.arange(9), 5, 2), '9 tokens is too short for a batch_size of 5'),
        (lambda: StreamLoader(np.arange(9), 2, 0), 'must be at least 1'),
    ],
)
def test_what_cannot_be_batches(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize('start', [0, 1, 2])
def test_an_epoch_can_be_begun_anywhere(start):
    blocks = BlockLoader(np.arange(30), 5, 2, shuffle=True, seed=4)
    streams = StreamLoader(np.arange(23), 2, 4, 3)
    for loader in (blocks, streams):
        whole = [batch.words.asnumpy().tolist() for batch in loader.epoch(1)]
        rest = [batch.words.asnumpy().tolist() for batch in loader.epoch(1, start)]
        assert rest == whole[start:] and len(whole) > 2
    assert next(streams.epoch(0, start)).is_first == (start == 0)
