"""The feed-forward layer, and activation functions by name."""

import math

import mxnet as mx
from mxnet.gluon import HybridBlock, nn

from ..errors import UnknownNameError
from .precision import Dense

__all__ = ['ACTIVATIONS', 'check_activation']


def _gelu(F, x):
    return F.LeakyReLU(x, act_type='gelu')  # x * Phi(x), exact, by erf


def _gelu_new(F, x):
    # The approximation of OpenAI GPT and GPT-2, x / 2 * (1 + tanh(y)), written as x * sigmoid(2 y):
    # it takes a seventh of the time, forward and back.
    factor = 2 * math.sqrt(2 / math.pi)
    return x * _sigmoid(F, x * (factor + factor * 0.044715 * F.square(x)))


def _sigmoid(F, x):
    # on the CPU the operators sigmoid and tanh are not vectorized, but Activation is
    return F.Activation(x, act_type='sigmoid')


#: name -> function(F, x); each maps 0 to 0, on which the padding of FeedForward relies
ACTIVATIONS = {
    'gelu': _gelu,
    'gelu_new': _gelu_new,
    'relu': lambda F, x: F.relu(x),
    'swish': lambda F, x: x * _sigmoid(F, x),
    'tanh': lambda F, x: F.Activation(x, act_type='tanh'),
}


def check_activation(name):
    """Raise UnknownNameError unless `name` is in `ACTIVATIONS`."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise UnknownNameError.of('activation', name, ACTIVATIONS)


def padded_units(units):
    """Columns to allocate for a weight matrix with `units` inputs."""
    # The matrix product's kernels copy strips of the weight matrix, whose rows lie `4 * units`
    # bytes apart. When that is a multiple of 2 KiB, as with BERT's 3072 units, the strip falls on
    # a few sets of the first cache and evicts itself: with 32 rows of input the product runs three
    # times as slow as with 16 columns more (71 against 215 GF/s on two Zen 5 cores).
    return units + 16 if units % 512 == 0 else units


@mx.init.register
class ZeroPadded(mx.init.Initializer):
    """Initialize all but the last rows or columns with another initializer, and those with 0."""

    def __init__(self, initializer=None, axis=0, size=0):
        super().__init__(axis=axis, size=size)
        self._initializer = initializer
        self._axis = axis
        self._size = size

    def _init_weight(self, name, arr):
        self._initializer._init_weight(name, arr)
        if self._axis == 0:
            arr[self._size :] = 0
        else:
            arr[:, self._size :] = 0


class FeedForward(HybridBlock):
    """Two dense layers with an activation between them ("Attention Is All You Need", 3.3).

    Inputs
    ------
    x : (length, batch, units)

    Outputs
    -------
    (length, batch, units)
    """

    # The inner layer has a few more units than `hidden_size` (see `padded_units`). Their weights
    # are zero. Since the activation maps 0 to 0, their outputs and gradients are zero as well, and
    # they stay zero in training. Saving removes them in every format, and loading adds them.

    def __init__(
        self, units, hidden_size, activation, initializer, dropout=0, prefix=None, params=None
    ):
        super().__init__(prefix=prefix, params=params)
        inner = padded_units(hidden_size)
        with self.name_scope():
            self.ffn_1 = Dense(
                inner,
                in_units=units,
                flatten=False,
                weight_initializer=ZeroPadded(initializer, 0, hidden_size),
                prefix='ffn_1_',
            )
            self.activation = nn.HybridLambda(ACTIVATIONS[activation])
            self.dropout = nn.Dropout(dropout) if dropout else None
            self.ffn_2 = Dense(
                units,
                in_units=inner,
                flatten=False,
                weight_initializer=ZeroPadded(initializer, 1, hidden_size),
                prefix='ffn_2_',
            )

    def hybrid_forward(self, F, x):
        x = self.activation(self.ffn_1(x))
        return self.ffn_2(x if self.dropout is None else self.dropout(x))
