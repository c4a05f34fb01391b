"""ModernBERT's layers: rotary positions, attention to near words, and gated feed-forward."""

import math

import mxnet as mx
from mxnet.gluon import HybridBlock, nn

from .attention import BLOCKED, SelfAttention, attention_mask
from .cells import ACTIVATIONS, Cell, EncoderStack
from .graphs import Switch, uses_standard_operators
from .precision import Dense, ScaleNorm
from .sequences import padding_of, positions_of

__all__ = ['RotaryStack']


#: whether this thread's layers take texts for short: attention has a matrix of all pairs
SHORT_TEXTS = Switch()


def rotation(F, x, steps, base, size):
    """Return cosines and sines of the positions' angles, (L, size / 2) (Su et al. 2021)."""
    numbers = F.contrib.arange_like(F.slice_axis(x, axis=-1, begin=0, end=size // 2), axis=-1)
    exponents = F.cast(numbers, 'float32') / (size // 2)
    frequencies = 1 / F._internal._rpower_scalar(exponents, scalar=base)
    angles = F.broadcast_mul(F.expand_dims(steps, 1), F.expand_dims(frequencies, 0))
    return F.cos(angles), F.sin(angles)


class Windows:
    """Blocks of half a window's words, and the blocks around them: any length, no matrix of pairs.

    Parameters
    ----------
    F : module
    steps : (L,)
        Positions.
    padding : (B, L) or None
        1 at padding.
    half : int
        How far a word attends to each side.
    dtype : str
    """

    def __init__(self, F, steps, padding, half, dtype):
        self._half = half
        starts = F.slice(steps, begin=(None,), end=(None,), step=(half,))
        whole = F.reshape(F.tile(F.expand_dims(starts, 1), reps=(1, half)), shape=(1, 1, -1, 1))
        self._frames = whole, self._pad(F, whole, 0, 2 * half)
        queries, keys = (
            F.reshape(F.contrib.arange_like(frame, axis=2), shape=(1, 1, -1, 1))
            for frame in self._frames
        )
        queries, keys = self._blocks(F, queries), self._around(F, keys) - half
        far = F.abs(F.broadcast_sub(queries, F.reshape(keys, shape=(1, 1, -1, 1, 3 * half))))
        far = far > half  # (1, 1, blocks, half, 3 * half)
        padding = F.expand_dims(steps * 0, 0) if padding is None else padding
        padding = F.reshape(padding, shape=(0, 1, -1, 1))
        padding = F.reshape(self.keys(F, padding, 1), shape=(0, 0, -1, 1, 3 * half))
        self.mask = F.cast(F.BlockGrad(BLOCKED * F.broadcast_maximum(far, padding)), dtype)

    @staticmethod
    def _pad(F, x, before, after, value=0):
        width = (0, 0, 0, 0, before, after, 0, 0)
        return F.pad(x, mode='constant', pad_width=width, constant_value=value)

    def _blocks(self, F, x, size=1):
        return F.reshape(x, shape=(0, 0, -1, self._half, size))

    def _around(self, F, x, size=1):
        blocks = self._blocks(F, x, size)
        ends = (0, -2), (1, -1), (2, None)
        parts = [F.slice_axis(blocks, axis=2, begin=begin, end=end) for begin, end in ends]
        return F.concat(*parts, dim=3)

    def queries(self, F, x, size):
        """Return (B, heads, L, size) as (B, heads, blocks, half, size)."""
        x = F.slice_like(self._pad(F, x, 0, self._half), self._frames[0], axes=(2,))
        return self._blocks(F, x, size)

    def keys(self, F, x, size):
        """Return (B, heads, L, size) as (B, heads, blocks, 3 * half, size); 1 behind the ends."""
        x = self._pad(F, x, self._half, 2 * self._half, value=1)
        return self._around(F, F.slice_like(x, self._frames[1], axes=(2,)), size)


class RotaryAttention(SelfAttention):
    """`SelfAttention` whose queries and keys are rotated by their positions, without biases.

    Inputs
    ------
    x, head_mask
        See `SelfAttention`.
    mask : see `RotaryStack`
    cos, sin
        Factors of the rotation: (L, B, 3 * inner), or with `standard_operators` (1, 1, L, size).
    """

    _has_bias = False

    def hybrid_forward(self, F, x, mask=None, head_mask=None, cos=None, sin=None):
        if uses_standard_operators():
            query, key, value = self._parts(F, x)
            query, key = (self._turned(F, part, cos, sin) for part in (query, key))
            if isinstance(mask, Windows):
                return self._near(F, query, key, value, mask, head_mask)
            key = F.transpose(key, axes=(0, 1, 3, 2))
            return self._standard_attention(F, query, key, value, mask)
        qkv = self.qkv(x)
        halves = F.reshape(qkv, shape=(0, 0, -1, 2, self._head_size // 2))
        swapped = F.reshape(F.reverse(halves, axis=3), shape=(0, 0, -1))
        qkv = qkv * cos + swapped * sin
        if SHORT_TEXTS.is_on:
            return self._attend(F, qkv, mask, head_mask)
        attend = self._near if isinstance(mask, Windows) else self._far
        return attend(F, *self._split(F, qkv), mask, head_mask)

    def _parts(self, F, x):
        """Return query, key and value, (B, heads, L, size), of one product."""
        size = self._head_size
        qkv = F.reshape(self.qkv(x), shape=(0, 0, self.num_heads, 3 * size))
        qkv = F.transpose(qkv, axes=(0, 2, 1, 3))
        ends = ((part * size, (part + 1) * size) for part in range(3))
        return [F.slice_axis(qkv, axis=3, begin=begin, end=end) for begin, end in ends]

    def _turned(self, F, x, cos, sin):
        half = self._head_size // 2  # OpenVINO knows a rotation by its two slices
        first = F.slice_axis(x, axis=3, begin=0, end=half)
        second = F.slice_axis(x, axis=3, begin=half, end=None)
        turned = F.concat(-second, first, dim=-1)
        return F.broadcast_add(F.broadcast_mul(x, cos), F.broadcast_mul(turned, sin))

    def _near(self, F, query, key, value, windows, head_mask):
        """Attend to near words alone; the parts are (B, heads, L, size)."""
        size, product = self._head_size, F.linalg.gemm2
        queries = windows.queries(F, query / math.sqrt(size), size)
        keys, values = (windows.keys(F, part, size) for part in (key, value))
        scores = self.product(F, product, queries, keys, transpose_b=True)
        probabilities = self._by_axes(F, scores, windows.mask, head_mask, (1, -1, 1, 1, 1))
        context = self.product(F, product, probabilities, values)
        context = F.reshape(context, shape=(0, 0, -1, size))
        return self._join(F, F.slice_like(context, query, axes=(2,)))

    def _far(self, F, query, key, value, mask, head_mask):
        """Attend to all words, one head after the other: the matrices of pairs take much memory."""
        contexts = []
        for head in range(self.num_heads):
            one = {'axis': 1, 'begin': head, 'end': head + 1}
            parts = (F.slice_axis(part, **one) for part in (query, key, value))
            own = [F.reshape(part, shape=(-3, 0, 0)) for part in parts]  # (B, L, size)
            own_query = own[0] / math.sqrt(self._head_size)
            scores = self.product(F, F.batch_dot, own_query, own[1], transpose_b=True)
            scores = scores if mask is None else scores + mask
            probabilities = self.dropout(F.softmax(scores, axis=-1))
            context = self.product(F, F.batch_dot, probabilities, own[2])
            if head_mask is not None:
                factor = F.slice_axis(head_mask, axis=0, begin=head, end=head + 1)
                context = F.broadcast_mul(context, F.reshape(factor, shape=(1, 1, 1)))
            contexts.append(context)
        return self._join(F, F.stack(*contexts, axis=1))

    def _join(self, F, context):
        """Return the output for heads (B, heads, L, size), and no probabilities."""
        axes = (0, 2, 1, 3) if uses_standard_operators() else (2, 0, 1, 3)
        context = F.reshape(F.transpose(context, axes=axes), shape=(0, 0, -1))
        return self._project(context), None


class GatedFeedForward(HybridBlock):
    """Two dense layers without biases; half of the first one's units are factors of the others.

    Shazeer 2020, "GLU Variants Improve Transformer".
    """

    def __init__(self, config, initializer, prefix=None):
        super().__init__(prefix=prefix)
        self._inner = config.intermediate_size
        options = {'weight_initializer': initializer, 'use_bias': False}
        with self.name_scope():
            self.into = Dense(2 * self._inner, in_units=config.units, prefix='into_', **options)
            self.activation = nn.HybridLambda(ACTIVATIONS[config.activation])
            self.dropout = nn.Dropout(config.mlp_dropout)
            self.out = Dense(config.units, in_units=self._inner, prefix='out_', **options)

    def hybrid_forward(self, F, x):
        x = self.into(x)
        values = F.slice_axis(x, axis=-1, begin=0, end=self._inner)
        factors = F.slice_axis(x, axis=-1, begin=self._inner, end=None)
        return self.out(self.dropout(self.activation(values) * factors))


class RotaryCell(Cell):
    """One layer of a ModernBERT: each part's input is normalized, but the first layer's first."""

    pre_norm = True

    def __init__(self, config, layer):
        super().__init__(prefix=f'layer{layer}_')
        initializer = mx.init.Normal(config.initializer_range)
        norm = {'in_channels': config.units, 'epsilon': config.layer_norm_eps}
        with self.name_scope():
            self.attention = RotaryAttention(config, layer, initializer, prefix='attention_')
            self.attention_norm = ScaleNorm(**norm) if layer else None
            self.ffn = GatedFeedForward(config, initializer, prefix='ffn_')
            self.ffn_norm = ScaleNorm(**norm)
            self.dropout = nn.Dropout(config.attention_dropout)

    def hybrid_forward(self, F, x, *inputs):
        normal = x if self.attention_norm is None else self.attention_norm(x)
        attended, probabilities = self.attention(normal, *inputs)
        x = x + self.dropout(attended)
        return x + self.ffn(self.ffn_norm(x)), probabilities


class RotaryStack(EncoderStack):
    """The layers of a ModernBERT; some attend to near words alone, with `Windows` for any length.

    For `SHORT_TEXTS`, the masks are (B * heads, L, L); otherwise (B, L, L), or with
    `standard_operators` (B, 1, 1, L).
    """

    cell_class = RotaryCell

    def __init__(self, config):
        super().__init__(config)
        with self.name_scope():
            self.norm = ScaleNorm(in_channels=config.units, epsilon=config.layer_norm_eps)

    def mask_key(self, layer, heads):
        return self._config.is_local(layer), len(heads)

    def hybrid_forward(self, F, *inputs):
        states, attentions = super().hybrid_forward(F, *inputs)
        return [*states[:-1], self.norm(states[-1])], attentions

    def _inputs(self, F, x, valid_length, layer, heads, dtype):
        near, count = self.mask_key(layer, heads)
        mask = self._mask_of(F, x, valid_length, count, near, dtype)
        return [mask, *self._rotation(F, x, count, near, dtype)]

    def _steps(self, F, x):
        return positions_of(F, x, axis=1 if uses_standard_operators() else 0)

    def _mask_of(self, F, x, valid_length, count, near, dtype):
        standard, steps = uses_standard_operators(), self._steps(F, x)
        half = self._config.local_attention // 2
        if near and not SHORT_TEXTS.is_on:
            padding = None if valid_length is None else padding_of(F, steps, valid_length)
            return Windows(F, steps, padding, half, dtype)
        if valid_length is None and not near:
            return None
        if valid_length is None:
            ones = F.ones_like(F.slice_axis(F.cast(x, 'float32'), axis=2, begin=0, end=1))
            valid_length = F.BlockGrad(F.sum(ones, axis=(0, 2)))
        count = count if standard or SHORT_TEXTS.is_on else 1
        mask = attention_mask(F, valid_length, x, count, dtype)
        if not near:
            return mask
        far = F.abs(F.broadcast_sub(F.expand_dims(steps, 0), F.expand_dims(steps, 1))) > half
        return F.broadcast_add(mask, F.expand_dims(F.cast(BLOCKED * far, dtype), 0))

    def _rotation(self, F, x, count, near, dtype):
        config = self._config
        base = config.local_rope_theta if near else config.global_rope_theta
        cos, sin = rotation(F, x, self._steps(F, x), base, config.head_size)
        if uses_standard_operators():
            rows = F.concat(cos, cos, dim=1), F.concat(sin, sin, dim=1)
            return [F.expand_dims(F.expand_dims(row, 0), 0) for row in rows]
        ones = F.ones_like(cos)
        rows = (cos,) * 4 + (ones,) * 2, (-sin, sin) * 2 + (0 * ones,) * 2
        full = []
        for row in rows:  # as the fused projection has queries, keys and values
            row = F.tile(F.cast(F.concat(*row, dim=1), dtype), reps=(1, count))
            full.append(F.broadcast_like(F.expand_dims(row, 1), x, lhs_axes=(1,), rhs_axes=(1,)))
        return [F.BlockGrad(each) for each in full]
