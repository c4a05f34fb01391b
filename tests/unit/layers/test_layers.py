"""The bricks against plain NumPy."""

import math

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same
from mxnet.gluon import HybridBlock, nn
from scipy.special import erf, log_softmax, softmax

from model_zoo.layers.attention import SelfAttention
from model_zoo.layers.cells import (
    ACTIVATIONS,
    FeedForward,
    ZeroPadded,
    padded_units,
)
from model_zoo.layers.losses import cross_entropy, span_cross_entropy

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
    'mish': lambda x: x * np.tanh(np.log1p(np.exp(x))),
    'quick_gelu': lambda x: x / (1 + np.exp(-1.702 * x)),
}
FORMULAS['gelu_10'] = lambda x: np.clip(FORMULAS['gelu'](x), -10, 10)
SAME = {'gelu_new': ('accurate', 'fast', 'pytorch_tanh'), 'gelu': ('python',)}
for known, endings in SAME.items():
    FORMULAS.update((f'gelu_{ending}', FORMULAS[known]) for ending in endings)
FORMULAS['silu'] = FORMULAS['swish']


@pytest.mark.parametrize('name', ACTIVATIONS)
def test_activations(name):
    block = nn.HybridLambda(ACTIVATIONS[name])
    x = np.linspace(-30, 30, 501)
    for hybridized in (False, True):
        block.hybridize(hybridized)
        result = block(mx.nd.array(x)).asnumpy()
        np.testing.assert_allclose(result, FORMULAS[name](x), rtol=1e-6, atol=4e-6)
    assert block(mx.nd.zeros((1,))).asscalar() == 0, 'FeedForward relies on it'


# -- attention ----------------------------------------------------------------------------------


def plain_attention(layer, x, heads, size, head_mask=None):
    """x: (L, B, C) -> output, probabilities, heads' outputs."""
    length, batch, _ = x.shape
    weight, bias = weights(layer.qkv)
    qkv = (x @ weight.T + bias).reshape(length, batch, heads, 3, size)
    q, k, v = np.moveaxis(qkv, 3, 0)  # (L, B, heads, size)
    scores = np.einsum('qbhs,kbhs->bhqk', q, k) / math.sqrt(size)

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
