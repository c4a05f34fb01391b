"""Transformer cells: attention and feed-forward with residuals and layer normalization."""

from mxnet.gluon import HybridBlock, nn

from .attention import SelfAttention
from .feed_forward import FeedForward

__all__ = ['EncoderCell']


class EncoderCell(HybridBlock):
    """One layer of a BERT encoder: normalization follows each residual ("post-norm").

    Parameters
    ----------
    units, hidden_size, num_heads, head_size : int
    attention_dropout, dropout : float
        Rates on the attention probabilities, and on each sub-layer's output.
    activation : str
    layer_norm_eps : float
    initializer : mx.init.Initializer

    Inputs, Outputs
    ---------------
    As `SelfAttention`'s; the first output is that of the whole cell, (length, batch, units).
    """

    def __init__(
        self,
        units,
        hidden_size,
        num_heads,
        head_size,
        attention_dropout,
        dropout,
        activation,
        layer_norm_eps,
        initializer,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix=prefix, params=params)
        with self.name_scope():
            self.attention = SelfAttention(
                units, num_heads, head_size, attention_dropout, initializer, prefix='attention_'
            )
            self.attention_norm = nn.LayerNorm(epsilon=layer_norm_eps, in_channels=units)
            self.ffn = FeedForward(units, hidden_size, activation, initializer, prefix='ffn_')
            self.ffn_norm = nn.LayerNorm(epsilon=layer_norm_eps, in_channels=units)
            self.dropout = nn.Dropout(dropout)

    def hybrid_forward(self, F, x, mask=None, head_mask=None, probe=None):
        attended, probabilities, heads = self.attention(x, mask, head_mask, probe)
        x = self.attention_norm(x + self.dropout(attended))
        x = self.ffn_norm(x + self.dropout(self.ffn(x)))
        return x, probabilities, heads
