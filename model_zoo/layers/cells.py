"""Transformer cells: attention and feed-forward with residuals and layer normalization."""

import math

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock, nn

from .attention import CausalSelfAttention, SelfAttention, attention_mask, layer_head_mask
from .graphs import uses_standard_operators
from .precision import Dense, LayerNorm

__all__ = ['ACTIVATIONS', 'EncoderStack']


def _gelu(F, x):
    return F.LeakyReLU(x, act_type='gelu')  # x * Phi(x), exact, by erf


def _gelu_new(F, x):
    # The approximation of OpenAI GPT and GPT-2, x / 2 * (1 + tanh(y)), written as x * sigmoid(2 y):
    # it takes a seventh of the time, forward and back.
    if uses_standard_operators():  # the form that runtimes compute in one
        return (0.5 * x) * (1 + F.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    factor = 2 * math.sqrt(2 / math.pi)
    return _sigmoid(F, x * (factor + factor * 0.044715 * F.square(x))) * x


def _sigmoid(F, x):
    # on the CPU the operators sigmoid and tanh are not vectorized, but Activation is
    return F.Activation(x, act_type='sigmoid')


def _swish(F, x):
    return x * _sigmoid(F, x)


def _mish(F, x):
    # x * tanh(log(1 + exp(x))), without the logarithm, which is inexact below 0
    below = _sigmoid(F, -x)
    return x * _sigmoid(F, x) * (1 + below) / (1 + F.square(below))


#: name -> function(F, x); each maps 0 to 0, on which the padding of FeedForward relies
ACTIVATIONS = {
    'gelu': _gelu,
    'gelu_new': _gelu_new,
    'relu': lambda F, x: F.relu(x),
    'swish': _swish,
    'tanh': lambda F, x: F.Activation(x, act_type='tanh'),
    # transformers' names
    'gelu_10': lambda F, x: F.clip(_gelu(F, x), -10, 10),
    'gelu_accurate': _gelu_new,
    'gelu_fast': _gelu_new,
    'gelu_python': _gelu,
    'gelu_pytorch_tanh': _gelu_new,
    'mish': _mish,
    'quick_gelu': lambda F, x: x * _sigmoid(F, 1.702 * x),
    'silu': _swish,
}


def padded_units(units):
    """Return the columns to allocate for a weight matrix with `units` inputs."""
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

    def __init__(self, units, hidden_size, activation, initializer, dropout=0, prefix=None):
        super().__init__(prefix=prefix)
        inner = padded_units(hidden_size)
        with self.name_scope():
            padded = ZeroPadded(initializer, 0, hidden_size)
            self.ffn_1 = Dense(inner, in_units=units, weight_initializer=padded, prefix='ffn_1_')
            self.activation = nn.HybridLambda(ACTIVATIONS[activation])
            self._is_gelu = ACTIVATIONS[activation] is _gelu
            self.dropout = nn.Dropout(dropout) if dropout else None
            padded = ZeroPadded(initializer, 1, hidden_size)
            self.ffn_2 = Dense(units, in_units=inner, weight_initializer=padded, prefix='ffn_2_')

    def hybrid_forward(self, F, x):
        is_own = self._is_gelu and self.dropout is None and self.ffn_1.has_own_operators(x)
        self.ffn_1.gives_half = self.ffn_2.takes_half = is_own
        if is_own:
            return self.ffn_2(F.zoo_gelu(self.ffn_1(x)))
        x = self.activation(self.ffn_1(x))
        return self.ffn_2(x if self.dropout is None else self.dropout(x))


class Cell(HybridBlock):
    """Base of layers: attention and feed-forward, with residuals and normalization.

    A subclass makes `attention_norm`, `ffn`, `ffn_norm` and `dropout`.
    """

    #: whether each sub-layer's input is normalized, instead of its residual's sum
    pre_norm = False

    def before(self, x):
        """Return the input of the attention."""
        return self.attention_norm(x) if self.pre_norm else x

    def after(self, x, attended):
        """Return the cell's output from its input and the attention's output."""
        if not self.pre_norm and self.attention_norm.has_own_operators(x):
            for norm in (self.attention_norm, self.ffn_norm):
                norm.dropout_rate = self.dropout._rate
            x = self.attention_norm(attended, x)
            return self.ffn_norm(self.ffn(x), x)
        x = self.dropout(attended) + x  # in this order ONNX Runtime's optimizer finds every layer
        if self.pre_norm:
            return x + self.dropout(self.ffn(self.ffn_norm(x)))
        x = self.attention_norm(x)
        return self.ffn_norm(x + self.dropout(self.ffn(x)))


class EncoderCell(Cell):
    """One layer of a BERT encoder: normalization follows each residual ("post-norm")."""

    attention_class = SelfAttention

    def __init__(self, config, layer):
        super().__init__(prefix=f'layer{layer}_')
        initializer = mx.init.Normal(config.initializer_range)
        norm = {'epsilon': config.layer_norm_eps, 'in_channels': config.units}
        sizes = config.units, config.intermediate_size
        with self.name_scope():
            self.attention = self.attention_class(config, layer, initializer, prefix='attention_')
            self.attention_norm = LayerNorm(**norm)
            self.ffn = FeedForward(*sizes, config.activation, initializer, prefix='ffn_')
            self.ffn_norm = LayerNorm(**norm)
            self.dropout = nn.Dropout(config.dropout)

    def hybrid_forward(self, F, x, mask=None, head_mask=None, *others):
        is_own = not self.pre_norm and self.attention_norm.has_own_operators(x)
        self.attention.proj.gives_half = self.ffn.ffn_2.gives_half = is_own
        attended, probabilities = self.attention(self.before(x), mask, head_mask, *others)
        return self.after(x, attended), probabilities


class EncoderStack(nn.HybridSequential):
    """The layers of an encoder.

    Parameters
    ----------
    config : AttentionConfig

    Inputs
    ------
    x : (length, batch, units)
    valid_length : (batch,), list of an attention mask (batch, length), or None
    head_mask : (layers, heads) or None

    Outputs
    -------
    states : list of (length, batch, units)
        One per layer.
    attentions : list of (batch, heads, length, length)
    """

    cell_class = EncoderCell

    def __init__(self, config):
        super().__init__(prefix='')
        self._config = config
        with self.name_scope():
            for layer in range(config.num_layers):
                self.add(self.cell_class(config, layer))

    def cells(self):
        """Return the layers in the order in which they compute."""
        return [each for each in self if isinstance(each, Cell)]

    def attentions(self):
        """Return the layers' `SelfAttention`."""
        return [cell.attention for cell in self.cells()]

    def mask_key(self, layer, heads):
        """Return what a layer's mask depends on: the number of heads, which pruning changes."""
        return len(heads)

    def _inputs(self, F, x, valid_length, layer, heads, dtype, **parameters):
        """Return a layer's mask, and what its attention takes besides."""
        return [self._mask(F, x, valid_length, heads, dtype, **parameters)]

    def _mask(self, F, x, valid_length, heads, dtype):
        """Return what is added to the scores of some heads, (B * heads, L, L), or None."""
        if valid_length is None:
            return None
        return attention_mask(F, valid_length, x, len(heads), dtype)

    def hybrid_forward(self, F, x, valid_length=None, head_mask=None, **parameters):
        cells = self.cells()
        dtype = np.dtype(cells[0].attention.qkv.weight.dtype).name
        made, states, attentions = {}, [], []
        for layer, cell in enumerate(cells):
            heads = self._config.kept_heads(layer)
            key = self.mask_key(layer, heads)
            if key not in made:
                made[key] = self._inputs(F, x, valid_length, layer, heads, dtype, **parameters)
            mask, *own = made[key]
            layer_mask = layer_head_mask(F, head_mask, layer, self._config, dtype)
            x, attention = cell(x, mask, layer_mask, *own)
            states.append(x)
            attentions.append(attention)
        return states, attentions


class DecoderCell(EncoderCell):
    """One layer of a decoder, with causal attention."""

    attention_class = CausalSelfAttention

    def __init__(self, config, layer, pre_norm):
        super().__init__(config, layer)
        self.pre_norm = pre_norm

    def hybrid_forward(self, F, x, mask, head_mask=None, past=None):
        attended, *rest = self.attention(self.before(x), mask, head_mask, past)
        return [self.after(x, attended), *rest]

    def step(self, F, x, mask, key_cache, value_cache):
        """Compute one new position per row; see `CausalSelfAttention.step`."""
        attended, key, value = self.attention.step(F, self.before(x), mask, key_cache, value_cache)
        return self.after(x, attended), key, value
