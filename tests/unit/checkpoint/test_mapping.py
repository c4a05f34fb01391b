"""The mapping engine, on a made-up family."""

import types

import numpy as np
import pytest
import tiny
from arrays import assert_equal

import bert
from model_zoo.checkpoint import Fused, Mapping, Padded, Rule
from model_zoo.errors import CheckpointError
from model_zoo.layers.cells import padded_units

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


def test_load_and_save():
    q, k, v = (array(4, 3, start=start) for start in (0, 100, 200))
    theirs = {
        'body.emb.weight': array(5, 3),
        'body.blocks.11.q': q,
        'body.blocks.11.k': k,
        'body.blocks.11.v': v,
        'body.blocks.2.w': array(3, 512),
        'body.norm.g': array(3),
        'out.bias': array(5),
    }
    ours, unknown = make().load(theirs, CONFIG)
    assert unknown == []
    assert sorted(ours) == ['^bias', 'embed', 'layers.11.qkv', 'layers.2.wide', 'norm']
    # two heads of two rows each: q, k, v of the first, then of the second
    expected = np.concatenate([q[:2], k[:2], v[:2], q[2:], k[2:], v[2:]])
    np.testing.assert_array_equal(ours['layers.11.qkv'], expected)
    assert ours['layers.2.wide'].shape == (3, padded_units(512))
    assert not ours['layers.2.wide'][:, 512:].any()

    back = make().save(ours, CONFIG, with_prefix=True)
    np.testing.assert_array_equal(back.pop('body.out.weight'), theirs['body.emb.weight'])
    assert_equal(back, theirs)
    assert all(value.flags.c_contiguous for value in back.values())


def test_heads_are_told_from_the_backbone():
    mapping = make()
    assert mapping.canonical(['emb.weight', 'out.bias']) == {
        'emb.weight': 'emb.weight',
        'out.bias': 'out.bias',
    }
    assert mapping.canonical(['body.emb.weight', 'out.bias']) == {
        'body.emb.weight': 'emb.weight',
        'out.bias': '^out.bias',
    }
    plain = make(mark_heads=False)
    assert plain.canonical(['body.norm.g', 'out.bias'])['out.bias'] == 'out.bias'


def test_names_outside_of_the_backbone():
    mapping = Mapping(
        [Rule('norm', 'norm.g'), Rule('bias', 'cls.bias')],
        'body.',
        mark_heads=False,
        outside=('cls.',),
    )
    ours = {'norm': array(2), 'bias': array(3)}
    theirs = mapping.save(ours, CONFIG, with_prefix=True)
    assert sorted(theirs) == ['body.norm.g', 'cls.bias']
    back, unknown = mapping.load(theirs, CONFIG)
    assert unknown == []
    assert_equal(back, ours)


def test_unknown_names_and_lone_parts():
    ours, unknown = make().load(
        {
            'blocks.0.q': array(4, 3),
            'blocks.0.v': array(4, 3),
            'norm.g': array(3),
            'x': array(1),
            'norm.gg': array(1),
            'blocks.a.w': array(3, 512),
        },
        CONFIG,
    )
    assert list(ours) == ['norm']
    assert sorted(unknown) == ['blocks.0.q', 'blocks.0.v', 'blocks.a.w', 'norm.gg', 'x']


def test_ignored_and_renamed_names():
    mapping = make(ignore=[r'.*position_ids$'], rename=[(r'gamma$', 'g')])
    ours, unknown = mapping.load({'norm.gamma': array(3), 'deep.position_ids': array(7)}, CONFIG)
    assert list(ours) == ['norm'] and unknown == []


def test_wrong_shapes_are_named():
    parts = {'blocks.0.k': array(5, 3), 'blocks.0.q': array(4, 3), 'blocks.0.v': array(4, 3)}
    with pytest.raises(CheckpointError) as caught:
        make().load(parts, CONFIG)
    assert 'blocks.0.k (5, 3)' in str(caught.value)


def test_tensors_without_names():
    mapping = Mapping(
        [Rule('table', 'we'), Rule('layers.{i}.w', 'h{i}/w'), Rule('layers.{i}.b', 'h{i}/b')],
        '',
        mark_heads=False,
        order=('we', 'h{i}/w', 'h{i}/b'),
    )
    theirs = {str(number): array(2, start=number) for number in range(5)}
    assert mapping.matches(theirs) == 5
    ours, unknown = mapping.load(theirs, CONFIG)
    assert unknown == []
    assert sorted(ours) == ['layers.0.b', 'layers.0.w', 'layers.1.b', 'layers.1.w', 'table']
    np.testing.assert_array_equal(ours['layers.1.w'], theirs['3'])
    assert mapping.matches({str(number): array(2) for number in range(4)}) == 0


def masked_lm():
    block = tiny.make(bert.BertForMaskedLM)
    return block, block.tensors_in('huggingface')


@pytest.mark.parametrize('prefix', ['module.', 'model.', '_orig_mod.', 'module.model.'])
def test_prefixes_of_wrappers_are_dropped(prefix, caplog):
    block, tensors = masked_lm()
    ours, unknown = block.translate(tensors, {}, block.config)
    caplog.set_level('INFO')
    wrapped = {prefix + name: array for name, array in tensors.items()}
    wrapped['loss.weight'] = np.ones(3)
    loaded, others = block.translate(wrapped, {}, block.config)
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
    block.translate(tensors, {}, block.config)
    assert [name in record.getMessage() for record in caplog.records] == [True] * (not is_tied)
