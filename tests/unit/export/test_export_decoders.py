"""export_block and Gluon's own export for GPT and GPT-2."""

import inspect

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same, imported
from gpt_compare import CONFIGS, HEADS, PACKAGES, config_class, family_of, make_inputs, rows_for

import export

CONFIG = {**CONFIGS['gpt']['small'], 'n_head': 4, 'n_embd': 16, 'n_positions': 24}
NAMES = ('OpenAIGPTModel', 'GPT2Model', *HEADS['gpt'], *HEADS['gpt2'])
WITH_PAST = [name for name in NAMES if family_of(name) == 'gpt2']


def make(name, **options):
    block_class = getattr(PACKAGES[family_of(name)], name)
    return tiny.initialized(block_class(config_class(name)(**CONFIG), **options))


def inputs_of(name, batch=2, length=7, dtype='int32'):
    """All inputs that a graph can have but the past, by name."""
    rows = rows_for(name, batch)
    inputs = make_inputs(name, CONFIG, 0, rows, length)
    inputs['valid_length'] = np.random.randint(1, length + 1, rows)
    arrays = {
        key: mx.nd.array(value, dtype=dtype)
        for key, value in inputs.items()
        if not key.endswith('labels')
    }
    return {**arrays, 'head_mask': mx.nd.array([[1, 0, 1, 0.5], [1, 1, 0, 1]])}


def in_order(block, named):
    """The block's positional inputs."""
    return list(map(named.get, inspect.signature(block.__call__).parameters))


def exported(block, folder, inputs=None, count=None):
    """The block's graph as plain MXNet reads it."""
    export.export_block(block, str(folder), 'block', inputs)
    return imported(folder / 'block', count or len(block.export_inputs))


CHOSEN = [('OpenAIGPTModel', ''), *zip(HEADS['gpt2'], ('valid_length', 'token_types'))]


@pytest.mark.parametrize('name, left_out', CHOSEN)
def test_chosen_inputs(tmp_path, name, left_out):
    block = make(name, output_attentions=True, output_all_encodings=True)
    block.prune_heads({0: [2]})
    inputs, other = inputs_of(name), inputs_of(name, 3, 20)
    for given in (inputs, other):
        given.pop(left_out, None)
    data = [value for value in in_order(block, other) if value is not None]
    graph = exported(block, tmp_path, in_order(block, inputs), len(data))
    assert_same(graph(*data), block(**other))


@pytest.mark.parametrize('name', WITH_PAST)
def test_past(tmp_path, name):
    """Each layer's is an input of its own; the graph's last outputs are those of the next call."""
    block = make(name)
    block.prune_heads({1: [0, 1]})
    chosen = [key for key in inputs_of(name) if key in ('words', 'mc_token_ids')]
    first = {key: inputs_of(name, 2, 4)[key] for key in chosen}
    past = block(**first)[-1]
    inputs = {**{key: inputs_of(name, 2, 4)[key] for key in chosen}, 'past': past}
    loaded = exported(block, tmp_path, in_order(block, inputs), len(chosen) + 2)
    for length in (3, 1, 9):
        step = {key: inputs_of(name, 2, length)[key] for key in chosen}
        outputs = loaded(*step.values(), *past)
        assert_same(outputs, block(**step, past=past))
        past = outputs[-2:]
    assert past[1].shape == (2, 2 * len(first['words'][0]) if 'Double' in name else 2, 2, 17, 4)


def test_text_as_long_as_the_context(tmp_path):
    block = make('GPT2LMHeadModel')
    words = mx.nd.ones((1, 24))
    export.export_block(block, str(tmp_path), 'block', [words])
    for length in (4, 17, 23):  # the batch of another size must leave room for a past, too
        past = block(words[:, length:])[1]
        inputs = in_order(block, {'words': words[:, :length], 'past': past})
        export.export_block(block, str(tmp_path), 'block', inputs)


@pytest.mark.parametrize('name', ['OpenAIGPTModel', *HEADS['gpt2']])
def test_gluons_own_export(tmp_path, name):
    """Block.export of a hybridized block, loaded by SymbolBlock at another batch and length."""
    block = make(name)
    block.hybridize()
    text = [key for key in inputs_of(name) if key in ('words', 'mc_token_ids', 'position_ids')]
    first = {key: inputs_of(name)[key] for key in text}
    block(**first)
    block.export(str(tmp_path / 'block'))
    other = {key: inputs_of(name, 3, 11)[key] for key in text}
    data = [value for value in in_order(block, other) if value is not None]
    assert_same(imported(tmp_path / 'block', len(data))(*data), block(**other))
