"""Transformer cells: attention and feed-forward with residuals and layer normalization."""

import contextlib

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock, nn

from .attention import CausalSelfAttention, SelfAttention, attention_mask, layer_head_mask
from .feed_forward import FeedForward
from .precision import LayerNorm

__all__ = ['EncoderStack']


class MirroredCell(HybridBlock):
    """A block whose activations can be recomputed in training; see `model_zoo.blocks.graphs`."""

    #: whether the nodes of its graphs are marked to be computed again
    mirrors = False

    def _marked(self):
        """Context in which the nodes of a graph are marked for recomputation."""
        if not self.mirrors:
            return contextlib.nullcontext()
        return mx.AttrScope(force_mirroring='True')


class EncoderCell(MirroredCell):
    """One layer of a BERT encoder: normalization follows each residual ("post-norm")."""

    attention_class = SelfAttention

    def __init__(
        self, config, layer, attention_dropout, dropout, activation, layer_norm_eps, initializer
    ):
        super().__init__(prefix=f'layer{layer}_')
        units, heads = config.units, len(config.kept_heads(layer))
        with self.name_scope():
            self.attention = self.attention_class(
                units, heads, config.head_size, attention_dropout, initializer, prefix='attention_'
            )
            self.attention_norm = LayerNorm(epsilon=layer_norm_eps, in_channels=units)
            self.ffn = FeedForward(
                units, config.intermediate_size, activation, initializer, prefix='ffn_'
            )
            self.ffn_norm = LayerNorm(epsilon=layer_norm_eps, in_channels=units)
            self.dropout = nn.Dropout(dropout)

    def hybrid_forward(self, F, x, mask=None, head_mask=None):
        with self._marked():
            attended, probabilities = self.attention(x, mask, head_mask)
            x = self.attention_norm(x + self.dropout(attended))
            x = x + self.dropout(self.ffn(x))
        return self.ffn_norm(x), probabilities


class EncoderStack(nn.HybridSequential):
    """The layers of an encoder.

    Parameters
    ----------
    config : AttentionConfig
        With `intermediate_size`.
    attention_dropout, dropout : float
        Rates on the attention probabilities, and on each sub-layer's output.
    activation : str
        Of the feed-forward layer: a key of `model_zoo.layers.feed_forward.ACTIVATIONS`.
    layer_norm_eps : float
    initializer : mx.init.Initializer
        Of the weights.

    Inputs
    ------
    x : (length, batch, units)
    valid_length : (batch,), list of an attention mask (batch, length), or None
    head_mask : (layers, heads) or None

    Outputs
    -------
    states : list of (length, batch, units)
        Of all layers.
    attentions : list of (batch, heads, length, length)
    """

    def __init__(
        self, config, attention_dropout, dropout, activation, layer_norm_eps, initializer,
        prefix='', params=None,
    ):  # fmt: skip
        super().__init__(prefix=prefix, params=params)
        self._config = config
        options = attention_dropout, dropout, activation, layer_norm_eps, initializer
        with self.name_scope():
            for layer in range(config.num_layers):
                self.add(EncoderCell(config, layer, *options))

    def attentions(self):
        """The layers' `SelfAttention`."""
        return [cell.attention for cell in self]

    def hybrid_forward(self, F, x, valid_length=None, head_mask=None):
        dtype = np.dtype(self[0].attention.qkv.weight.dtype).name
        masks = {}  # by number of heads, which differs between layers after pruning
        states, attentions = [], []
        for layer, cell in enumerate(self):
            count = cell.attention.num_heads
            if valid_length is not None and count not in masks:
                masks[count] = attention_mask(F, valid_length, x, count, dtype)  # (B * heads, L, L)
            layer_mask = layer_head_mask(F, head_mask, layer, self._config, dtype)
            x, attention = cell(x, masks.get(count), layer_mask)
            states.append(x)
            attentions.append(attention)
        return states, attentions


class DecoderCell(EncoderCell):
    """One layer of a decoder, with causal attention."""

    attention_class = CausalSelfAttention

    def __init__(self, *args, pre_norm, **kwargs):
        super().__init__(*args, **kwargs)
        self._pre_norm = pre_norm

    def hybrid_forward(self, F, x, mask, head_mask=None, past=None):
        with self._marked():
            attended, *others = self.attention(self._before(x), mask, head_mask, past)
        return [self._after(x, attended), *others]

    def step(self, F, x, mask, key_cache, value_cache):
        """Compute one new position per row; see `CausalSelfAttention.step`."""
        attended, key, value = self.attention.step(F, self._before(x), mask, key_cache, value_cache)
        return self._after(x, attended), key, value

    def _before(self, x):
        """The input of the attention."""
        return self.attention_norm(x) if self._pre_norm else x

    def _after(self, x, attended):
        """The cell's output from its input and the attention's output."""
        with self._marked():
            x = x + self.dropout(attended)
            x = x if self._pre_norm else self.attention_norm(x)
            change = self.dropout(self.ffn(self.ffn_norm(x) if self._pre_norm else x))
        return x + change if self._pre_norm else self.ffn_norm(x + change)
