"""Causal self-attention, with or without a cache of keys and values."""

import math

from .attention import BLOCKED, SelfAttention
from .sequences import positions_of
from .standard import uses_standard_operators

__all__ = ['CausalSelfAttention', 'causal_mask']


def causal_mask(F, steps, past=None, dtype='float32'):
    """Mask that is added to the attention scores and hides later positions.

    Parameters
    ----------
    F : module
        ``mx.nd`` or ``mx.sym``.
    steps : (length, batch, units)
        Any array of 3 axes with the sequence's length as its first one.
    past : (2, batch, heads, past_length, head_size), optional
        Keys and values of earlier positions, which are never masked.
    dtype : str
        The scores' type.

    Returns
    -------
    (1, length, past_length + length)
        0 where a query (second axis) may attend to a key, and -10000 elsewhere, which softmax
        maps to exactly 0.
    """
    positions = positions_of(F, steps)
    ahead = F.broadcast_lesser(F.expand_dims(positions, 1), F.expand_dims(positions, 0))  # (L, L)
    mask = BLOCKED * ahead
    if past is not None:
        free = F.zeros_like(F.cast(F.contrib.arange_like(past, axis=3), 'float32'))  # (P,)
        free = F.broadcast_mul(F.expand_dims(F.ones_like(positions), 1), F.expand_dims(free, 0))
        mask = F.concat(free, mask, dim=1)
    return F.BlockGrad(F.cast(F.expand_dims(mask, 0), dtype))


class CausalSelfAttention(SelfAttention):
    """`SelfAttention` for decoders, which can keep keys and values for later positions.

    Inputs
    ------
    x : (length, batch, units)
    mask : (batch * num_heads, length, past_length + length)
        See `causal_mask`.
    head_mask : (num_heads,) or None
    past : (2, batch, num_heads, past_length, head_size) or None
        Keys and values of earlier positions.

    Outputs
    -------
    output, probabilities
        See `SelfAttention`; probabilities are (batch, num_heads, length, past_length + length).
    present : (2, batch, num_heads, past_length + length, head_size)
        `past` with the keys and values of these positions.
    """

    joins_parameters = False  # OpenAI's programs join them, too

    def hybrid_forward(self, F, x, mask, head_mask=None, past=None):
        if uses_standard_operators():
            return self._standard(F, x, mask, past)
        heads = self._num_heads
        qkv = self.qkv(x)  # (L, B, 3 * inner)
        query, key, value = self._split(F, qkv)  # (B, heads, L, size) each
        if past is None:
            scores = self.product(F, F.contrib.interleaved_matmul_selfatt_qk, qkv, heads=heads)
        else:
            past_key, past_value = (
                F.reshape(F.slice_axis(past, axis=0, begin=i, end=i + 1), shape=(-3, 0, 0, 0))
                for i in range(2)
            )
            key = F.concat(past_key, key, dim=2)  # (B, heads, P + L, size)
            value = F.concat(past_value, value, dim=2)
            scores = self._batch_dot(F, self._rows(F, query), self._rows(F, key), transpose_b=True)
            scores = scores / math.sqrt(self._head_size)  # (B * heads, L, P + L)
        probabilities, by_head = self._probabilities(F, scores, mask, head_mask)
        if past is None:
            context = self.product(
                F, F.contrib.interleaved_matmul_selfatt_valatt, qkv, probabilities, heads=heads
            )  # (L, B, inner)
        else:
            context = self._batch_dot(F, probabilities, self._rows(F, value))
            context = F.reshape(context, shape=(-4, -1, heads, 0, 0))  # (B, heads, L, size)
            context = F.reshape(F.transpose(context, axes=(2, 0, 1, 3)), shape=(0, 0, -3))
        return self._project(context), by_head, F.stack(key, value, axis=0)

    def _standard(self, F, x, mask, past=None):
        """The same of x (B, L, C), for `standard_operators`; past and present are [key, value]."""
        query, *present = self._standard_parts(F, x, [(0, 2, 1, 3)] * 3)
        if past is not None:
            present = [F.concat(old, new, dim=2) for old, new in zip(past, present)]
        key, value = present  # (B, heads, P + L, size)
        key = F.transpose(key, axes=(0, 1, 3, 2))
        return (*self._standard_attention(F, query, key, value, mask), present)

    def _split(self, F, qkv):
        """Query, key and value of (L, B, 3 * inner): each (B, heads, L, size)."""
        by_head = F.reshape(qkv, shape=(0, 0, self._num_heads, 3, -1))
        by_head = F.transpose(by_head, axes=(3, 1, 2, 0, 4))  # (3, B, heads, L, size)
        parts = [F.slice_axis(by_head, axis=0, begin=i, end=i + 1) for i in range(3)]
        return [F.reshape(part, shape=(-3, 0, 0, 0)) for part in parts]

    def _batch_dot(self, F, one, two, **options):
        return self.product(F, F.batch_dot, one, two, **options)

    @staticmethod
    def _rows(F, x):
        """(B, heads, L, size) as (B * heads, L, size)."""
        return F.reshape(x, shape=(-3, 0, 0))

    def step(self, F, x, mask, key_cache, value_cache):
        """Attention of one new position per row, with caches of a fixed size.

        With a single position, reshaping is free, except for an input of the graph. So the caches
        come in the layout of the products.

        Parameters
        ----------
        F : module
        x : (1, batch, units)
        mask : (batch * num_heads, capacity)
            0 at the positions of the caches that are in use, -10000 elsewhere.
        key_cache : (batch * num_heads, capacity, head_size)
        value_cache : (batch * num_heads, head_size, capacity)
            Transposed, because the products with one query are a quarter faster that way.

        Returns
        -------
        output : (1, batch, units)
        key : (batch, num_heads, 1, head_size)
        value : (batch, num_heads, head_size, 1)
            The caller writes key and value to the caches.
        """
        qkv = F.reshape(self.qkv(x), shape=(-1, 3, self._head_size))  # (B * heads, 3, size)
        query, key, value = (F.slice_axis(qkv, axis=1, begin=i, end=i + 1) for i in range(3))
        column = (0, self._head_size, 1)
        query = F.reshape(query / math.sqrt(self._head_size), shape=column)
        value = F.reshape(value, shape=column)
        old = F.reshape(self._batch_dot(F, key_cache, query), shape=(0, 0))
        old = old + mask  # (B * heads, capacity)
        own = F.reshape(self._batch_dot(F, key, query), shape=(0, 0))  # (B * heads, 1)
        probabilities = F.softmax(F.concat(old, own, dim=1), axis=-1)
        old = F.slice_axis(probabilities, axis=1, begin=0, end=-1)
        own = F.slice_axis(probabilities, axis=1, begin=-1, end=None)
        context = self._batch_dot(F, value_cache, F.expand_dims(old, 2))  # (B * heads, size, 1)
        context = context + F.broadcast_mul(value, F.expand_dims(own, 2))
        context = F.reshape(context, shape=(1, -1, self._num_heads * self._head_size))
        heads = (-1, self._num_heads)
        key = F.reshape(key, shape=(*heads, 1, self._head_size))
        value = F.reshape(value, shape=(*heads, self._head_size, 1))
        return self.proj(context), key, value
