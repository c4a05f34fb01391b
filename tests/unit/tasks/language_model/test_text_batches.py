"""A text as blocks: what is predicted, how often, and in which order."""

import numpy as np
import pytest
from refusals import refuses

from model_zoo.tasks.language_model import BlockLoader


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
        for words, length in zip(batch.words.asnumpy(), batch.valid_length.asnumpy().astype(int)):
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


def test_a_text_that_is_too_short():
    with refuses(says='1'):
        BlockLoader(np.arange(1), 4, 1)


@pytest.mark.parametrize('start', [0, 1, 2])
def test_an_epoch_can_be_begun_anywhere(start):
    loader = BlockLoader(np.arange(30), 5, 2, shuffle=True, seed=4)
    whole = [batch.words.asnumpy().tolist() for batch in loader.epoch(1)]
    rest = [batch.words.asnumpy().tolist() for batch in loader.epoch(1, start)]
    assert rest == whole[start:] and len(whole) > 2
