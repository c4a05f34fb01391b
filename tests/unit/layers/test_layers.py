"""The bricks against plain NumPy."""

import math

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn
from scipy.special import erf, log_softmax

from model_zoo.layers.cells import ACTIVATIONS
from model_zoo.layers.losses import span_cross_entropy

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


# -- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize('padded', [False, True])
def test_span_cross_entropy(padded):
    scores = np.random.randn(5, 6).astype('float32') * 3
    positions = np.array([0, 5, 6, -1, 2])  # 6 is outside
    lengths = np.array([3, 6, 4, 5, 3]) if padded else np.full(5, 6)
    kept = np.where(np.arange(6) < lengths[:, None], scores, -np.inf)
    logs = log_softmax(kept, axis=-1)
    expected = -np.mean([logs[i, p] for i, p in enumerate(positions) if 0 <= p < 6])
    valid = mx.nd.array(lengths, dtype='int32') if padded else None
    loss = span_cross_entropy(mx.nd, mx.nd.array(scores), mx.nd.array(positions), valid)
    np.testing.assert_allclose(loss.asscalar(), expected, rtol=1e-5)
