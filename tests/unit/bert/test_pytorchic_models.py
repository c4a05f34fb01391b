"""Pytorchic BERT's models: read from its files, with its outputs, and written back."""

import json
import pathlib

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_equal, assert_same, stored

from bert import BertForPreTraining, BertForSequenceClassification, BertModel
from model_zoo.checkpoint import read_tensors
from mxnet_pytorchic_bert import models
from mxnet_pytorchic_bert.models import load_model, make_config, reset_parameters

FOLDER = pathlib.Path(__file__).parents[2] / 'fixtures' / 'pytorchic'
FIELDS = json.loads((FOLDER / 'model.json').read_text())


@pytest.fixture(scope='module')
def expected():
    return stored(FOLDER / 'expected.npz')


def make(block_class, **options):
    block = block_class(make_config(FIELDS, None), **options)
    reset_parameters(block, 1)
    return block


def inputs(expected):
    return [mx.nd.array(expected[f'input/{name}']) for name in ('ids', 'types', 'lengths')]


def test_the_pretrained_model_gives_the_originals_scores(expected):
    model = make(BertForPreTraining)
    load_model(model, str(FOLDER / 'pretrained.pt'))
    places = mx.nd.array(expected['input/places'], dtype='int32')
    words, pairs = model(*inputs(expected), places)
    np.testing.assert_allclose(words.asnumpy(), expected['words'], atol=2e-5)
    # class 0 is that the second text follows, as in all other BERTs
    np.testing.assert_allclose(pairs.asnumpy()[:, ::-1], expected['pairs'], atol=2e-5)


def test_the_transformer_alone_is_taken_of_a_pretrained_model(expected):
    model = make(BertForSequenceClassification)
    before = model.base.pooler.weight.data().asnumpy()
    models.load_transformer(model, str(FOLDER / 'pretrained.pt'))
    np.testing.assert_array_equal(model.base.pooler.weight.data().asnumpy(), before)
    hidden = model.base(*inputs(expected))[0].asnumpy()
    for row, length in enumerate(expected['input/lengths']):
        assert_same(hidden[row, :length], expected['transformer'][row, :length], 2e-5)


WRITTEN = [(BertForPreTraining, 'pretrained.pt'), (BertForSequenceClassification, 'classifier.pt')]


@pytest.mark.parametrize('block_class, name', WRITTEN)
def test_what_is_written_is_what_the_original_wrote(tmp_path, block_class, name):
    model = make(block_class)
    load_model(model, str(FOLDER / name))
    models.save_model(model, str(tmp_path / name))
    ours, theirs = (read_tensors(str(folder / name))[0] for folder in (tmp_path, FOLDER))
    assert_equal(ours, theirs)


def test_its_files_are_checkpoints_like_any_other(tmp_path):
    (tmp_path / 'config.json').write_text(json.dumps(make_config(FIELDS, None).to_dict()))
    (tmp_path / 'model.pt').write_bytes((FOLDER / 'classifier.pt').read_bytes())
    model = BertForSequenceClassification.from_pretrained(str(tmp_path / 'model.pt'))
    tensors = read_tensors(str(FOLDER / 'classifier.pt'))[0]
    np.testing.assert_array_equal(model.base.pooler.weight.data().asnumpy(), tensors['fc.weight'])
    assert BertModel.from_pretrained(str(tmp_path / 'model.pt')).config.hidden_size == 16


def test_initial_values_are_pytorchs():
    config = make_config({**FIELDS, 'dim': 64, 'dim_ff': 200, 'vocab_size': 900}, None)
    model = BertForPreTraining(config)
    reset_parameters(model, 7)
    base = model.base
    assert base.word_embed.weight.data().asnumpy().std() == pytest.approx(1, abs=0.02)
    for dense, inputs in ((base.pooler, 64), (base.encoder.layers[0].attention.proj, 64)):
        values = dense.weight.data().asnumpy()
        bound = inputs**-0.5
        assert bound * 0.98 < np.abs(values).max() <= bound
        assert values.std() == pytest.approx(bound / 3**0.5, rel=0.05)
        assert 0 < np.abs(dense.bias.data().asnumpy()).max() <= bound
    hidden = base.encoder.layers[1].ffn.ffn_2.weight.data().asnumpy()
    assert not hidden[:, 200:].any() and np.abs(hidden).max() <= 200**-0.5
    assert (base.encoder.norm.gamma.data().asnumpy() == 1).all()
    again = BertForPreTraining(config)
    reset_parameters(again, 7)
    np.testing.assert_array_equal(
        again.base.pooler.bias.data().asnumpy(), base.pooler.bias.data().asnumpy()
    )


def test_the_configurations_defaults_are_the_originals():
    assert make_config({'n_seg': 3}, 9).type_vocab_size == 3
    assert make_config({'n_segments': 4}, 9).type_vocab_size == 4
    fields = make_config({}, 30522).to_dict()
    expected = {'hidden_size': 768, 'num_hidden_layers': 12, 'layer_norm_eps': 1e-12}
    assert fields.items() >= {**expected, 'vocab_size': 30522}.items()
