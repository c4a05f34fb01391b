"""The adaptive softmax and sinusoids against plain NumPy."""

import mxnet as mx
import numpy as np
import pytest
from scipy.special import log_softmax

from transfo_xl import TransfoXLConfig
from transfo_xl.adaptive import AdaptiveSoftmax
from transfo_xl.relative_attention import sinusoids

CONFIG = TransfoXLConfig(
    vocab_size=12,
    cutoffs=[4, 7],
    d_model=6,
    d_embed=6,
    div_val=2,
    tie_weight=False,
    tie_projs=[False] * 3,
    init_std=1.0,
    proj_init_std=1.0,
)


def value(parameter):
    return parameter.data().asnumpy()


@pytest.fixture
def softmax():
    block = AdaptiveSoftmax(CONFIG, None, prefix='softmax_')
    block.initialize()
    for i in range(3):
        bias = getattr(block, f'bias{i}')
        bias.set_data(mx.nd.random.normal(shape=bias.shape))
    return block


def reference(block, x):
    """Log-probabilities of all words."""

    def scores(i):
        inner = x @ value(getattr(block, f'proj{i}'))
        return inner @ value(getattr(block, f'table{i}')).T + value(getattr(block, f'bias{i}'))

    inner = x @ value(block.proj0)
    clusters = inner @ value(block.cluster_weight).T + value(block.cluster_bias)
    head = log_softmax(np.concatenate([scores(0), clusters], axis=1), axis=-1)
    tails = [log_softmax(scores(i), axis=-1) + head[:, 3 + i : 4 + i] for i in (1, 2)]
    return np.concatenate([head[:, :4], *tails], axis=1)


@pytest.mark.parametrize('hybridized', [False, True])
def test_softmax(softmax, hybridized):
    softmax.hybridize(hybridized, static_alloc=True, static_shape=True)
    x = mx.nd.random.normal(shape=(40, 6))
    wanted = reference(softmax, x.asnumpy())
    random = np.random.RandomState(0)
    some = random.randint(-1, 12, 40)
    for labels in (some, random.randint(0, 4, 40), np.full(40, 11), np.full(40, -1)):
        losses = softmax.loss(x, mx.nd.array(labels)).asnumpy()
        picked = -wanted[np.arange(40), np.maximum(labels, 0)] * (labels >= 0)
        np.testing.assert_allclose(losses, picked, atol=1e-5)
    softmax.hybridize(False)
    np.testing.assert_allclose(softmax(x).asnumpy(), wanted, atol=1e-5)


def test_gradients_of_the_loss(softmax):
    """The gradients equal the gradients through the scores of all words."""
    x = mx.nd.random.normal(shape=(40, 6))
    labels = mx.nd.array(np.random.RandomState(0).randint(0, 12, 40))
    parameters = softmax.collect_params().values()
    found = []
    for function in (lambda: softmax.loss(x, labels).sum(), lambda: -softmax(x).pick(labels).sum()):
        x.attach_grad()
        with mx.autograd.record():
            total = function()
        total.backward()
        found.append([x.grad.asnumpy(), *(p.grad().asnumpy() for p in parameters)])
    for one, two in zip(*found):
        np.testing.assert_allclose(one, two, atol=1e-4)
        assert one.any()


def test_sinusoids():
    distances = np.array([0, 1, 5, 1700], dtype='float32')
    frequencies = 1 / 10000 ** (np.arange(0, 8, 2) / 8)
    angles = distances[:, None] * frequencies
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    found = sinusoids(mx.nd, mx.nd.array(distances), 8, mx.nd.zeros((3, 8)))
    np.testing.assert_allclose(found.asnumpy(), wanted, atol=2e-4)  # float32 of large angles
    np.testing.assert_allclose(found.asnumpy()[:3], wanted[:3], atol=1e-6)
