"""Transformer-XL's parameters by other programs' names, and the files of its blocks."""

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_equal, assert_loads, stored
from transfo_xl_compare import VARIANTS, make_config, unpack

from model_zoo.checkpoint import read_tensors
from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel


def make(variant='plain', block_class=TransfoXLLMHeadModel, **changes):
    block = block_class(TransfoXLConfig(**{**make_config(variant), **changes}))
    block.initialize()
    for name, parameter in block.parameters_by_name().items():  # none is as initialized
        if 'ffn_1' not in name and 'ffn_2.weight' not in name:  # they are padded
            parameter.set_data(parameter.data() + mx.nd.random.normal(shape=parameter.shape))
    return block


@pytest.mark.parametrize('variant', VARIANTS)
def test_names_of_the_original(fixtures, variant):
    """What is written is what the original's state_dict has, in names, shapes and values."""
    state = unpack(stored(fixtures / 'transfo_xl.npz'), variant)['state']
    block = TransfoXLLMHeadModel(TransfoXLConfig(**make_config(variant)))
    mapping = block.mappings()['huggingface']
    found, unknown = mapping.load(state, block.config)
    assert unknown == []
    named = mapping.save(found, block.config, with_prefix=True)
    frequencies = 'transformer.pos_emb.inv_freq'
    np.testing.assert_allclose(named.pop(frequencies), state.pop(frequencies), rtol=1e-6)
    assert_equal(named, state)


@pytest.mark.parametrize('name', ['transfo_xl_tensorflow', 'transfo_xl_tied_tensorflow'])
def test_names_of_tensorflow(fixtures, name):
    folder = fixtures / 'checkpoints' / name
    block = TransfoXLLMHeadModel.from_pretrained(str(folder), from_tf=True)
    named = block.tensors_in('tensorflow')
    assert_equal(named, read_tensors(folder / 'model.ckpt')[0])
    training = {'global_step': np.zeros(()), 'transformer/r_r_bias/Adam_1': np.zeros(3)}
    assert_loads(block, 'tensorflow', {**named, **training})


def test_padding_of_the_feed_forward_layer_stays_inside(tmp_path):
    block = make(d_inner=512)
    assert block.transformer.layers[0].ffn.ffn_1.weight.shape == (528, 10)
    block.save_parameters(str(tmp_path / 'x.params'))
    tensors, _ = read_tensors(str(tmp_path / 'x.params'))
    assert tensors['transformer.layers.0.ffn.ffn_1.weight'].shape == (512, 10)
    named = block.tensors_in('huggingface')
    assert named['transformer.layers.0.pos_ff.CoreNet.3.weight'].shape == (10, 512)
    assert block.tensors_in('tensorflow')['transformer/layer_0/ff/layer_1/bias'].shape == (512,)
