"""The mapping engine, on a made-up family."""

import types

import numpy as np
import pytest
import tiny

import bert
from model_zoo.checkpoint import Fused, Mapping, Padded, Rule
from model_zoo.errors import CheckpointError

CONFIG = types.SimpleNamespace(head_size=2, intermediate_size=512)


def array(*shape, start=0):
    return (np.arange(np.prod(shape)) + start).reshape(shape).astype('float32')


def make(**options):
    rules = [
        Rule('embed', 'emb.weight', tied=('out.weight',), tied_to='^bias'),
        Rule('layers.{i}.qkv', ('blocks.{i}.q', 'blocks.{i}.k', 'blocks.{i}.v'), Fused()),
        Rule('layers.{i}.wide', 'blocks.{i}.w', Padded(1)),
        Rule('norm', 'norm.g'),
        Rule('^bias', '^out.bias'),
    ]
    return Mapping(rules, 'body.', **options)


def test_unknown_names_and_lone_parts():
    others = {'blocks.0.q': array(4, 3), 'blocks.0.v': array(4, 3), 'blocks.a.w': array(3, 512)}
    others.update({'norm.gg': array(1), 'x': array(1)})
    ours, unknown = make().load({**others, 'norm.g': array(3)}, CONFIG)
    assert list(ours) == ['norm'] and sorted(unknown) == list(others)


def test_wrong_shapes_are_named():
    parts = {'blocks.0.k': array(5, 3), 'blocks.0.q': array(4, 3), 'blocks.0.v': array(4, 3)}
    with pytest.raises(CheckpointError) as caught:
        make().load(parts, CONFIG)
    assert 'blocks.0.k (5, 3)' in str(caught.value)


def masked_lm():
    block = tiny.make(bert.BertForMaskedLM)
    return block, block.tensors_in('huggingface')


@pytest.mark.parametrize('prefix', ['module.', 'model.', '_orig_mod.', 'module.model.'])
def test_prefixes_of_wrappers_are_dropped(prefix, caplog):
    block, tensors = masked_lm()
    _, ours, unknown, _ = block.read_weights(tensors, block.config)
    caplog.set_level('INFO')
    wrapped = {prefix + name: array for name, array in tensors.items()}
    wrapped['loss.weight'] = np.ones(3)
    _, loaded, others, _ = block.read_weights(wrapped, block.config)
    assert others == [*unknown, 'loss.weight'] and list(loaded) == list(ours)
    assert all((loaded[name] == ours[name]).all() for name in ours)
    assert block.count_known(wrapped, {}) == block.count_known(tensors, {})
    (record,) = caplog.records
    assert prefix in record.getMessage()


@pytest.mark.parametrize('is_tied', [True, False])
def test_a_decoder_that_is_not_the_embedding_is_told(is_tied, caplog):
    block, tensors = masked_lm()
    name = 'cls.predictions.decoder.weight'
    tensors[name] = tensors[name] + (not is_tied)
    block.read_weights(tensors, block.config)
    assert [name in record.getMessage() for record in caplog.records] == [True] * (not is_tied)
