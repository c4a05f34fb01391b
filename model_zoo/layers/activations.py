"""Activation functions by the names that configurations give them."""

import math

from mxnet.gluon import HybridBlock

from ..errors import UnknownNameError

__all__ = ['ACTIVATIONS', 'Activation', 'check_activation']


def _gelu(F, x):
    return F.LeakyReLU(x, act_type='gelu')  # x * Phi(x), exact, by erf


def _gelu_new(F, x):
    # the approximation by tanh of OpenAI GPT and GPT-2
    return 0.5 * x * (1 + F.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


#: name -> function(F, x); each maps 0 to 0, on which the padding of FeedForward relies
ACTIVATIONS = {
    'gelu': _gelu,
    'gelu_new': _gelu_new,
    'relu': lambda F, x: F.relu(x),
    'swish': lambda F, x: x * F.sigmoid(x),
    'tanh': lambda F, x: F.tanh(x),
}


def check_activation(name):
    """Raise UnknownNameError unless `name` is in `ACTIVATIONS`."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise UnknownNameError.of('activation', name, ACTIVATIONS)


class Activation(HybridBlock):
    """An activation function as a block.

    Parameters
    ----------
    name : str
        A key of `ACTIVATIONS`.
    """

    def __init__(self, name, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        check_activation(name)
        self._function = ACTIVATIONS[name]

    def hybrid_forward(self, F, x):
        return self._function(F, x)
