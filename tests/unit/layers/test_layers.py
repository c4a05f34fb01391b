"""The bricks against plain NumPy."""

import math
import types

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same
from mxnet.gluon import HybridBlock, nn
from scipy.special import erf, log_softmax, softmax

from model_zoo.layers.attention import SelfAttention
from model_zoo.layers.cells import (
    ACTIVATIONS,
    EncoderCell,
    FeedForward,
    ZeroPadded,
    padded_units,
)
from model_zoo.layers.losses import cross_entropy, mean_squared_error, span_cross_entropy

NORMAL = mx.init.Normal(0.5)


def random(*shape):
    return np.random.randn(*shape).astype('float32')


def weights(dense):
    return dense.weight.data().asnumpy(), dense.bias.data().asnumpy()


# -- activations --------------------------------------------------------------------------------

FORMULAS = {
    'gelu': lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    'gelu_new': lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    'relu': lambda x: np.maximum(x, 0),
    'swish': lambda x: x / (1 + np.exp(-x)),
    'tanh': np.tanh,
}


@pytest.mark.parametrize('name', ACTIVATIONS)
def test_activations(name):
    block = nn.HybridLambda(ACTIVATIONS[name])
    x = np.linspace(-6, 6, 101)
    for hybridized in (False, True):
        block.hybridize(hybridized)
        result = block(mx.nd.array(x)).asnumpy()
        np.testing.assert_allclose(result, FORMULAS[name](x), atol=2e-6)
    assert block(mx.nd.zeros((1,))).asscalar() == 0, 'FeedForward relies on it'


# -- attention ----------------------------------------------------------------------------------


def plain_attention(layer, x, heads, size, mask=None, head_mask=None):
    """x: (L, B, C) -> output, probabilities, heads' outputs."""
    length, batch, _ = x.shape
    weight, bias = weights(layer.qkv)
    qkv = (x @ weight.T + bias).reshape(length, batch, heads, 3, size)
    q, k, v = np.moveaxis(qkv, 3, 0)  # (L, B, heads, size)
    scores = np.einsum('qbhs,kbhs->bhqk', q, k) / math.sqrt(size)
    if mask is not None:
        scores = np.where(mask[:, None, None, :], scores, -np.inf)
    probabilities = softmax(scores, axis=-1)
    if head_mask is not None:
        probabilities = probabilities * head_mask[:, None, None]
    context = np.einsum('bhqk,kbhs->qbhs', probabilities, v).reshape(length, batch, heads * size)
    weight, bias = weights(layer.proj)
    return context @ weight.T + bias, probabilities, context


class Watched(HybridBlock):
    """A `SelfAttention` whose last output are the heads' outputs."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def hybrid_forward(self, F, *inputs):
        heads = []
        self.layer.watch = lambda context: heads.append(context) or context
        outputs = self.layer(*inputs)
        self.layer.watch = None
        return [*outputs, *heads]


@pytest.mark.parametrize('heads, size', [(4, 2), (1, 8), (3, 2)])
@pytest.mark.parametrize('hybridized', [False, True])
def test_attention(heads, size, hybridized):
    layer = SelfAttention(8, heads, size, 0.5, NORMAL)
    layer.initialize()
    watched = Watched(layer)
    watched.hybridize(hybridized)
    x, head_mask = random(5, 3, 8), random(heads)
    for inputs, options in [
        ([mx.nd.array(x)], {}),
        ([mx.nd.array(x), None, mx.nd.array(head_mask)], {'head_mask': head_mask}),
    ]:
        if hybridized:
            watched._clear_cached_op()  # Gluon's own graphs are for one combination of inputs
        assert_same(watched(*inputs), plain_attention(layer, x, heads, size, **options))


def test_attention_prune():
    layer = SelfAttention(8, 4, 2, 0.0, NORMAL)
    layer.initialize()
    x, mask = random(5, 3, 8), np.array([1, 0, 1, 0], 'float32')
    expected = plain_attention(layer, x, 4, 2, head_mask=mask)
    layer.prune([0, 2])
    assert layer.num_heads == 2
    assert layer.qkv.weight.shape == (12, 8) and layer.proj.weight.shape == (8, 4)
    output, probabilities, context = Watched(layer)(mx.nd.array(x))
    kept = expected[2].reshape(5, 3, 4, 2)[:, :, [0, 2]].reshape(5, 3, 4)
    assert_same([output, probabilities, context], [expected[0], expected[1][:, [0, 2]], kept])


def test_attention_dropout():
    layer = SelfAttention(8, 4, 2, 0.5, NORMAL)
    layer.initialize()
    with mx.autograd.record():
        _, probabilities = layer(mx.nd.array(random(20, 3, 8)))
    dropped = (probabilities.asnumpy() == 0).mean()
    assert 0.4 < dropped < 0.6


# -- feed-forward -------------------------------------------------------------------------------


@pytest.mark.parametrize('hidden', [12, 512, 1024])
@pytest.mark.parametrize('activation', ['gelu', 'relu'])
def test_feed_forward(hidden, activation):
    layer = FeedForward(8, hidden, activation, NORMAL)
    layer.initialize()
    x = random(5, 3, 8)
    (one, one_bias), (two, two_bias) = weights(layer.ffn_1), weights(layer.ffn_2)
    assert one.shape == (padded_units(hidden), 8)
    assert not one[hidden:].any() and not two[:, hidden:].any()
    inner = FORMULAS[activation](x @ one[:hidden].T + one_bias[:hidden])
    expected = inner @ two[:, :hidden].T + two_bias
    np.testing.assert_allclose(layer(mx.nd.array(x)).asnumpy(), expected, atol=2e-4, rtol=1e-5)


def test_padded_units():
    assert [padded_units(n) for n in (4, 511, 512, 513, 1536, 3072, 3000)] == [
        4, 511, 528, 513, 1552, 3088, 3000,
    ]  # fmt: skip


@pytest.mark.parametrize('axis', [0, 1])
def test_zero_padded_initializer(axis):
    parameter = mx.gluon.Parameter(
        'a_weight', shape=(6, 6), init=ZeroPadded(mx.init.Normal(2), axis, 4)
    )
    parameter.initialize()
    values = np.moveaxis(parameter.data().asnumpy(), axis, 0)
    assert (values[:4] != 0).all() and not values[4:].any() and values.std() > 0.5


def test_cell():
    config = types.SimpleNamespace(
        units=8, intermediate_size=12, head_size=2, kept_heads=lambda layer: range(4)
    )
    cell = EncoderCell(config, 0, 0.1, 0.1, 'gelu', 1e-12, NORMAL)
    cell.initialize()
    x = random(5, 3, 8)
    output, _ = cell(mx.nd.array(x))

    def norm(values):
        return (values - values.mean(-1, keepdims=True)) / values.std(-1, keepdims=True)

    inner = norm(x + plain_attention(cell.attention, x, 4, 2)[0])
    ffn = cell.ffn(mx.nd.array(inner)).asnumpy()
    np.testing.assert_allclose(output.asnumpy(), norm(inner + ffn), atol=1e-5)


# -- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize('dtype', ['int32', 'float32'])
@pytest.mark.parametrize('shape', [(4,), (2, 3)])
def test_cross_entropy(shape, dtype):
    scores = random(*shape, 5) * 10
    labels = np.random.randint(-1, 5, shape)
    labels.flat[0], labels.flat[1] = -1, 4
    logs = log_softmax(scores, axis=-1)
    picked = np.take_along_axis(logs, labels[..., None].clip(0), -1)[..., 0]
    result = cross_entropy(mx.nd, mx.nd.array(scores), mx.nd.array(labels, dtype=dtype))
    assert result.shape == (1,)
    np.testing.assert_allclose(result.asnumpy()[0], -picked[labels >= 0].mean(), rtol=1e-5)


def test_cross_entropy_gradient():
    scores = mx.nd.array(random(3, 5))
    scores.attach_grad()
    labels = np.array([2, -1, 0])
    with mx.autograd.record():
        loss = cross_entropy(mx.nd, scores, mx.nd.array(labels))
    loss.backward()
    expected = softmax(scores.asnumpy(), axis=-1)
    expected[[0, 2], [2, 0]] -= 1
    expected[1] = 0
    np.testing.assert_allclose(scores.grad.asnumpy(), expected / 2, atol=1e-6)


def test_losses_without_labels_are_zero():
    scores = mx.nd.array(random(3, 5))
    scores.attach_grad()
    for loss_function in (cross_entropy, span_cross_entropy):
        with mx.autograd.record():
            loss = loss_function(mx.nd, scores, mx.nd.full((3,), -1))
        loss.backward()
        assert loss.asscalar() == 0 and not scores.grad.asnumpy().any()


def test_mean_squared_error():
    scores, labels = random(4, 1), random(4)
    expected = ((scores[:, 0] - labels) ** 2).mean()
    for shape in ((4,), (4, 1)):
        loss = mean_squared_error(mx.nd, mx.nd.array(scores), mx.nd.array(labels.reshape(shape)))
        np.testing.assert_allclose(loss.asscalar(), expected, rtol=1e-5)
    whole = np.array([1, 0, -2, 3])
    expected = ((scores[:, 0] - whole) ** 2).mean()
    loss = mean_squared_error(mx.nd, mx.nd.array(scores), mx.nd.array(whole, dtype='int32'))
    np.testing.assert_allclose(loss.asscalar(), expected, rtol=1e-5)


@pytest.mark.parametrize('padded', [False, True])
def test_span_cross_entropy(padded):
    scores = random(5, 6) * 3
    positions = np.array([0, 5, 6, -1, 2])  # 6 is outside
    lengths = np.array([3, 6, 4, 5, 3]) if padded else np.full(5, 6)
    kept = np.where(np.arange(6) < lengths[:, None], scores, -np.inf)
    logs = log_softmax(kept, axis=-1)
    expected = -np.mean([logs[i, p] for i, p in enumerate(positions) if 0 <= p < 6])
    valid = mx.nd.array(lengths, dtype='int32') if padded else None
    loss = span_cross_entropy(mx.nd, mx.nd.array(scores), mx.nd.array(positions), valid)
    np.testing.assert_allclose(loss.asscalar(), expected, rtol=1e-5)
