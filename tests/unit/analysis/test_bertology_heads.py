"""Entropy, importance, masking and pruning of attention heads."""

from typing import NamedTuple

import mxnet as mx
import numpy as np
import pytest
import tiny

from bert import BertForSequenceClassification
from gpt import OpenAIGPTLMHeadModel
from gpt2 import GPT2LMHeadModel
from model_zoo.analysis import (
    attention_of,
    heads_left,
    mask_heads,
    measure_heads,
    normalize_importance,
)

LAYERS, HEADS, LENGTH, VOCAB = 2, 4, 9, 30


class Batch(NamedTuple):
    words: mx.nd.NDArray
    valid_length: mx.nd.NDArray
    labels: mx.nd.NDArray


@pytest.fixture(params=[BertForSequenceClassification, OpenAIGPTLMHeadModel, GPT2LMHeadModel])
def block(request):
    is_bert = request.param is BertForSequenceClassification
    heads = {'num_attention_heads' if is_bert else 'n_head': HEADS}
    return tiny.make(request.param, VOCAB, 0.4, **heads)


def batches(count=2):
    random = np.random.RandomState(3)
    made = []
    for _ in range(count):
        words = mx.nd.array(random.randint(0, VOCAB, (3, LENGTH)), dtype='int32')
        lengths = mx.nd.array(random.randint(2, LENGTH + 1, 3))
        made.append(Batch(words, lengths, mx.nd.array(random.randint(0, 2, 3))))
    return made


def forward_of(block):
    """What `measure_heads` wants; the output is the loss."""
    is_bert = isinstance(block, BertForSequenceClassification)

    def forward(batch, mask):
        options = {'valid_length': batch.valid_length, 'head_mask': mask}
        if is_bert:
            scores, attentions = block(batch.words, **options)
            loss = -mx.nd.pick(mx.nd.log_softmax(scores), batch.labels).sum()
        else:
            loss, attentions = block(batch.words, lm_labels=batch.words, **options)
            loss = loss * (batch.valid_length.sum() - len(batch.labels))
        return loss, attentions, loss

    return forward


def measure(block, mask=None, data=None):
    return measure_heads(block, forward_of(block), data or batches(), mask)


# -- measures ---------------------------------------------------------------------------------


@pytest.mark.parametrize('hybrid', [False, True])
def test_importance_is_that_of_autograd(block, hybrid):
    """Turning a head down a little changes the loss by the sum whose terms importance adds up."""
    block.hybridize(hybrid, static_alloc=True, static_shape=True)
    one = [Batch(*(array[:1] for array in batches()[0]))]
    found = measure(block, data=one)
    assert found.importance.shape == found.entropy.shape == (LAYERS, HEADS)
    forward, before = forward_of(block), block.watch_heads()
    mask = mx.nd.ones((LAYERS, HEADS))
    mask.attach_grad()
    with mx.autograd.record(train_mode=False):
        loss, _, _ = forward(one[0], mask)
    loss.backward()
    outputs, gradients = block.get_multihead_outputs(), block.get_multihead_gradients()
    block.watch_heads(*before)
    tokens = one[0].valid_length.asscalar()
    for layer in range(LAYERS):
        dots = (outputs[layer] * gradients[layer]).sum(axis=-1).asnumpy()[0]  # (heads, L)
        np.testing.assert_allclose(dots.sum(-1), mask.grad[layer].asnumpy(), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(
            found.importance[layer], np.abs(dots).sum(-1) / tokens, rtol=1e-4, atol=1e-7
        )
    assert (found.importance > 0).any()
    np.testing.assert_allclose(float(found.outputs[0].asscalar()), loss.asscalar(), rtol=1e-5)


def test_entropy_is_of_valid_tokens(block):
    data = batches()
    found, tokens, sums = measure(block, data=data), 0, np.zeros((LAYERS, HEADS))
    for batch in data:
        for row, length in enumerate(batch.valid_length.asnumpy().astype(int)):
            words = batch.words[row : row + 1, :length]
            for layer, attention in enumerate(attention_of(block, words)):
                terms = attention[0] * np.log(np.maximum(attention[0], 1e-30))
                sums[layer] -= terms.sum((1, 2))
            tokens += length
    np.testing.assert_allclose(found.entropy, sums / tokens, rtol=1e-4, atol=1e-5)


def test_block_is_left_as_it_was(block):
    block.hybridize(static_alloc=True)
    batch = batches()[0]
    before = block(batch.words)
    measure(block)
    after = block(batch.words)
    first, second = (each[0] if isinstance(each, list) else each for each in (before, after))
    np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
    assert type(before) is type(after)
    assert all(parameter.grad_req == 'write' for parameter in block.collect_params().values())


def test_pruned_heads_are_nan(block):
    pruned = {0: [1], 1: [0, 3]}
    mask = np.ones((LAYERS, HEADS), 'float32')
    for layer, heads in pruned.items():
        mask[layer, heads] = 0
    masked = measure(block, mask)
    block.prune_heads(pruned)
    found = measure(block)
    assert (np.isnan(found.importance) == (mask == 0)).all()
    assert (np.isnan(found.entropy) == (mask == 0)).all()
    there = mask == 1
    np.testing.assert_allclose(found.importance[there], masked.importance[there], rtol=1e-3)
    np.testing.assert_array_equal(heads_left(block.config), mask)


# -- normalization ----------------------------------------------------------------------------


def test_normalize_importance():
    values = np.array([[3.0, 4.0], [0.0, 2.0]])
    np.testing.assert_allclose(normalize_importance(values, overall=False), [[0.6, 0.8], [0, 1]])
    np.testing.assert_allclose(normalize_importance(values, by_layer=False), [[0.75, 1], [0, 0.5]])
    np.testing.assert_allclose(normalize_importance(values), [[0.6, 0.8], [0, 1]])
    np.testing.assert_array_equal(normalize_importance(values, False, False), values)
    np.testing.assert_array_equal(normalize_importance(np.ones((2, 2))), np.zeros((2, 2)))
    holes = np.array([[3.0, np.nan], [1.0, 2.0]])
    np.testing.assert_allclose(normalize_importance(holes, by_layer=False), [[1, np.nan], [0, 0.5]])


# -- masking ----------------------------------------------------------------------------------


def masking(scores, importance, **options):
    """`mask_heads` with scores that come one after the other, and the same importance."""
    scores = iter(scores)
    mask = np.ones(importance.shape, 'float32')
    return mask_heads(lambda mask: (next(scores), importance), mask, 1.0, importance, **options)


def test_masking_ends_below_the_threshold():
    importance = np.arange(8.0).reshape(2, 4)
    mask, steps = masking([0.95, 0.9, 0.89], importance, threshold=0.9, amount=0.25)
    # two at a time, the least important first, but the first layer keeps its last head
    assert [step.heads for step in steps] == [[(0, 0), (0, 1)], [(0, 2), (1, 0)], [(1, 1), (1, 2)]]
    assert [step.accepted for step in steps] == [True, True, False]
    assert [step.left for step in steps] == [6, 4, 2]
    np.testing.assert_array_equal(mask, [[0, 0, 0, 1], [0, 1, 1, 1]])


def test_masking_takes_the_importance_of_the_step_before():
    calls = []

    def measure(mask):
        calls.append(mask)
        return (1.0 if len(calls) < 3 else 0.0), np.where(mask, [[5.0, 1.0, 3.0]], 0)

    mask, steps = mask_heads(measure, np.ones((1, 3)), 1.0, np.array([[1.0, 2.0, 3.0]]))
    assert [step.heads for step in steps] == [[(0, 0)], [(0, 1)]]
    np.testing.assert_array_equal(mask, [[0, 0, 1]])
