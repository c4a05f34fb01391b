"""Texts that are read segment by segment, with keys and values of the memory."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from refusals import refuses
from transfo_xl_compare import VARIANTS, make_config

from transfo_xl import SegmentReader, StreamLoader, TransfoXLConfig, TransfoXLLMHeadModel

LENGTHS = (5, 5, 3, 6)  # of segments: the last one of a text is shorter; longer ones work, too


def make(variant='plain', **changes):
    config = TransfoXLConfig(**{**make_config(variant), **changes})
    return tiny.initialized(TransfoXLLMHeadModel(config), 0.3, 2)


def segments(lengths=LENGTHS, batch=3):
    text = np.random.RandomState(3).randint(0, 40, (batch, sum(lengths) + 1))
    starts = np.cumsum([0, *lengths])
    return [
        [mx.nd.array(text[:, i + n : i + n + length], dtype='int32') for n in (0, 1)]
        for i, length in zip(starts, lengths)
    ]


def near(one, two):
    np.testing.assert_allclose(one.asnumpy(), two.asnumpy(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize('variant', VARIANTS)
def test_the_losses_are_those_of_the_block(variant):
    block = make(variant)
    block.hybridize(static_alloc=True)
    mems = state = None
    for words, labels in segments():
        expected, mems = block(words, mems, labels=labels)
        losses, state = block.read(words, labels, state)
        near(losses, expected)


def test_texts_are_read_from_their_beginnings_with_the_weights_of_the_time():
    block = make(mem_len=8, ext_len=0)
    block.hybridize(static_alloc=True)
    reader, loader = SegmentReader(block), StreamLoader(np.arange(33) % 40, 2, 5)
    for _ in range(2):
        mems = None
        for batch in loader:
            expected, mems = block(batch.words, mems, labels=batch.labels)
            near(reader(batch), expected)
        for parameter in block.collect_params().values():
            parameter.set_data(parameter.data() * 1.3)


def test_other_lengths_make_other_graphs():
    block = make(mem_len=8, ext_len=0)
    ((words, labels),) = segments((5,))
    block.read(words, labels)
    block.reset_length(5, 0, 4)
    expected, _mems = block(words, labels=labels)
    losses, state = block.read(words, labels)
    near(losses, expected)
    assert state.keys[0].shape[1] == 4
    with refuses(says='state'):
        block.read(words[:2], labels[:2], state)
    with refuses(says='labels'):
        block.read(words, labels[:, :2], state)
