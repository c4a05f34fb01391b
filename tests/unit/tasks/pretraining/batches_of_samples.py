"""Batches of samples for pre-training, and workers that share them."""

import types


def arrays(batch):
    """In the order in which the model and its losses take them."""
    return [
        *batch.inputs,
        batch.masked_positions,
        batch.masked_ids,
        batch.masked_weights,
        batch.next_sentence_labels,
    ]


def assert_same(one, other):
    assert (one.indices == other.indices).all()
    assert (one.num_masked, one.num_tokens) == (other.num_masked, other.num_tokens)
    for mine, want in zip(arrays(one), arrays(other)):
        assert mine.shape == want.shape and mine.dtype == want.dtype
        assert (mine.asnumpy() == want.asnumpy()).all()


def alone(rank, size):
    """A worker that can't exchange: it reads everything, as 0.1 did."""
    return types.SimpleNamespace(rank=rank, size=size)
