"""Classifiers of a pooled vector of the last layer, without a pooler."""

import mxnet as mx
import numpy as np
import pytest
import tiny

import bert
from export import export_block
from model_zoo.errors import UnknownNameError

FAMILIES = ['Bert', 'Roberta', 'DistilBert', 'Electra', 'DebertaV2', 'ModernBert']
WORDS = mx.nd.array([[5, 6, 7, 8], [5, 6, 1, 1]])
INPUTS = (WORDS, mx.nd.zeros_like(WORDS), mx.nd.array([4, 2]))


def make(family, pooling):
    config = tiny.make_config(getattr(bert, f'{family}Config'))
    block = getattr(bert, f'{family}ForSequenceClassification')(config, 3, pooling=pooling)
    block.initialize(mx.init.Normal(0.2))
    return block


@pytest.mark.parametrize('pooling', ['mean', 'max', 'cls'])
@pytest.mark.parametrize('family', FAMILIES)
def test_it_classifies_the_vector_of_the_sentence_encoder(family, pooling, tmp_path):
    block = make(family, pooling)
    scores = block(*INPUTS).asnumpy()
    encoder = getattr(bert, f'{family}SentenceEncoder')(block.base, pooling=pooling)
    weight, bias = block.classifier.weight.data(), block.classifier.bias.data()
    vectors = encoder(*INPUTS)
    expected = mx.nd.FullyConnected(vectors, weight, bias, num_hidden=3).asnumpy()
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    block.hybridize(static_alloc=True, static_shape=True)
    np.testing.assert_allclose(block(*INPUTS).asnumpy(), scores, atol=1e-6)
    block.save_pretrained(str(tmp_path), format='huggingface')
    opened = type(block).from_pretrained(str(tmp_path))
    assert opened.pooling == pooling
    np.testing.assert_allclose(opened(*INPUTS).asnumpy(), scores, atol=1e-6)


def test_its_export_takes_any_length(tmp_path):
    block = make('Bert', 'mean')
    symbol, params = export_block(block, str(tmp_path), 'classification')
    net = mx.gluon.SymbolBlock.imports(symbol, ['data0', 'data1', 'data2'], params)
    for length in (2, 4):
        inputs = INPUTS[0][:, :length], INPUTS[1][:, :length], mx.nd.array([length, 2])
        np.testing.assert_allclose(net(*inputs).asnumpy(), block(*inputs).asnumpy(), atol=1e-5)


def test_an_unknown_pooling_is_refused():
    with pytest.raises(UnknownNameError):
        make('Bert', 'median')
