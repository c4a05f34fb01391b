"""Layer normalization in training, beside MXNet's operator."""

import json

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same, imported

from bert import BertModel
from export import export_block
from model_zoo.layers.precision import LayerNorm

STATIC = {'static_alloc': True, 'static_shape': True}


def rows(kind, shape):
    random = np.random.RandomState(1)
    if kind == 'zeros':
        return mx.nd.zeros(shape)
    if kind == 'far from zero':
        return mx.nd.array(random.standard_normal(shape) / 10 + 3)
    return mx.nd.array(random.standard_normal(shape) * 4)


def trained(compute, x, layer, gradient):
    """Output, and gradients of the input, gamma and beta."""
    x.attach_grad()
    for _ in range(2):  # twice: static graphs take another way the second time
        with mx.autograd.record():
            result = compute(x)
        result.backward(gradient)
    return [each.asnumpy() for each in (result, x.grad, layer.gamma.grad(), layer.beta.grad())]


@pytest.mark.parametrize('hybridized', [None, STATIC])
@pytest.mark.parametrize('kind', ['usual', 'far from zero', 'zeros'])
@pytest.mark.parametrize('shape', [(7, 24), (1, 1, 8), (2, 3, 4, 96)])
def test_equals_the_operator(shape, kind, hybridized):
    mx.random.seed(1)
    layer = LayerNorm(epsilon=1e-12, in_channels=shape[-1])
    layer.initialize()
    layer.gamma.set_data(mx.nd.random.normal(1, 0.2, shape[-1:]))
    layer.beta.set_data(mx.nd.random.normal(0, 0.2, shape[-1:]))
    if hybridized is not None:
        layer.hybridize(**hybridized)
    x, gradient = rows(kind, shape), mx.nd.random.normal(shape=shape)

    def operator(x):
        return mx.nd.LayerNorm(x, layer.gamma.data(), layer.beta.data(), eps=1e-12)

    expected = trained(operator, x, layer, gradient)
    results = trained(layer, x, layer, gradient)
    for one, two in zip(results, expected):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-5 * max(np.abs(two).max(), 1e-6))


def operators(symbol):
    return [node['op'] for node in json.loads(symbol.tojson())['nodes']]


def test_exported_graphs_have_the_operator(tmp_path):
    block = BertModel(tiny.bert_config(20))
    block.initialize()
    block.hybridize(**STATIC)
    inputs = mx.nd.ones((2, 5)), mx.nd.zeros((2, 5)), mx.nd.array([5, 3])
    with mx.autograd.record():
        block(*inputs)[0].sum().backward()
        export_block(block, str(tmp_path), 'while')
    assert operators(mx.sym.load(str(tmp_path / 'while-symbol.json'))).count('LayerNorm') == 5
    assert_same(imported(tmp_path / 'while')(*inputs), block(*inputs), 1e-6)
