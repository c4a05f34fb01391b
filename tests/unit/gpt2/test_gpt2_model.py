"""GPT-2 alone: its configuration, and the past."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same
from gpt_compare import CONFIGS, make_inputs, run
from refusals import refuses

import gpt2

CONFIG = {**CONFIGS['gpt2']['small'], 'n_head': 4, 'n_embd': 16, 'n_layer': 3}


def make(name='GPT2Model', **options):
    return tiny.initialized(getattr(gpt2, name)(gpt2.GPT2Config(**CONFIG), **options))


def cut(inputs, begin, end):
    return {key: value[..., begin:end] for key, value in inputs.items()}


# -- the past -----------------------------------------------------------------------------------


@pytest.mark.parametrize('hybridized', [False, True])
@pytest.mark.parametrize('name, optional', [('GPT2Model', True), ('GPT2LMHeadModel', False)])
def test_parts_of_a_text_equal_the_whole(name, optional, hybridized):
    block = make(name, output_attentions=True)
    block.prune_heads({1: [0]})
    block.hybridize(hybridized, static_alloc=True, static_shape=True)
    inputs = make_inputs(name, CONFIG, 0, (3,), 12, optional)
    whole, presents, attentions = run(block, inputs)
    past, begin = None, 0
    for end in (4, 5, 10, 12):
        outputs, past, attention = run(block, cut(inputs, begin, end), past=past)
        assert_same(outputs, whole[:, begin:end])
        assert_same(past, [present[:, :, :, :end] for present in presents])
        assert_same(attention, [each[:, :, begin:end, :end] for each in attentions])
        begin = end


def test_rows_padded_after_a_past():
    block = make()
    inputs = make_inputs('GPT2Model', CONFIG, 0, (3,), 9)
    whole, _ = run(block, inputs)
    _, past = run(block, cut(inputs, 0, 4))
    lengths = [2, 5, 0]
    hidden, _ = run(block, cut(inputs, 4, 9), past=past, valid_length=mx.nd.array(lengths))
    hidden, whole = hidden.asnumpy(), whole.asnumpy()
    for row, length in enumerate(lengths):
        assert_same(hidden[row, :length], whole[row, 4 : 4 + length])
        assert not hidden[row, length:].any()


def test_gradients_through_the_past():
    """The gradients of two parts equal the gradients of the whole."""
    gradients = []
    inputs = make_inputs('GPT2Model', CONFIG, 0, (2,), 8, optional=False)
    for parts in ([(0, 8)], [(0, 3), (3, 8)]):
        block = make()
        block.hybridize(static_alloc=True)
        past, states = None, []
        with mx.autograd.record(train_mode=False):
            for begin, end in parts:
                hidden, past = run(block, cut(inputs, begin, end), past=past)
                states.append(hidden)
            loss = (mx.nd.concat(*states, dim=1) ** 3).sum()
        loss.backward()
        gradients.append([p.grad() / 50 for _, p in sorted(block.parameters_by_name().items())])
    assert_same(*gradients)


def test_text_too_long_after_a_past():
    block = make()
    words = mx.nd.ones((1, 7))
    _, past = block(words)
    with refuses(says='words'):
        block(words[:, :6], past=past)
    block(words[:, :5], past=past)
    block(words[:, :6], past=past, position_ids=mx.nd.ones((1, 6)))


def test_a_pruned_models_past_has_the_heads_that_are_left():
    block = make()
    words = mx.nd.ones((1, 3))
    _, past = block(words)
    block.prune_heads({1: [2]})
    with refuses(says='past[1]'):
        block(words, past=past)


def test_heads_of_a_block_in_float16_are_pruned():
    found = []
    for dtype in ('float32', 'float16'):
        block = make()
        block.cast(dtype)
        block.prune_heads({1: [2]})
        found.append(block(mx.nd.ones((1, 3)))[0].asnumpy())
        assert found[-1].dtype == dtype
    np.testing.assert_allclose(*found, atol=0.02)
