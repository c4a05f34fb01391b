"""Multi-head self-attention with one fused projection for query, key and value."""

import math

import mxnet as mx
from mxnet.gluon import HybridBlock, nn

from .. import operators
from .graphs import uses_standard_operators
from .precision import Dense, MixedPrecision
from .sequences import padding_of, positions_of

__all__ = ['BLOCKED']

#: added to an attention score, it makes the probability exactly 0
BLOCKED = -10000


def attention_mask(F, valid_length, steps, num_heads, dtype='float32'):
    """Return the mask that is added to the attention scores and hides padding."""
    # An addition and a plain softmax take a fifth of the time of `softmax(use_length=True)`, for
    # which MXNet has no vectorized kernel on the CPU (1.4 against 7.1 ms for 8 x 12 x 128 x 128).
    if uses_standard_operators():
        mask = F.clip(valid_length[0], 0, 1)  # a caller of the graph may pass anything
        mask = F.expand_dims(F.expand_dims(mask, 1), 1)  # (B, 1, 1, L)
        return BLOCKED * (1 - F.cast(mask, dtype))
    positions = positions_of(F, steps)
    padding = F.cast(padding_of(F, positions, valid_length), dtype)  # (B, L)
    positions = F.expand_dims(F.cast(positions, dtype), 0)  # (1, L)
    mask = F.expand_dims(F.repeat(BLOCKED * padding, repeats=num_heads, axis=0), 1)
    queries = F.expand_dims(positions, 2)  # (1, L, 1)
    return F.BlockGrad(F.broadcast_like(mask, queries, lhs_axes=(1,), rhs_axes=(1,)))


def layer_head_mask(F, head_mask, layer, config, dtype='float32'):
    """Return the row of a head mask for one layer, without the heads that were pruned."""
    if head_mask is None:
        return None
    row = F.slice_axis(head_mask, axis=0, begin=layer, end=layer + 1)
    row = F.cast(F.reshape(row, shape=(-1,)), dtype)
    if layer not in config.pruned_heads:
        return row
    kept = config.kept_heads(layer)
    return F.concat(*[F.slice_axis(row, axis=0, begin=head, end=head + 1) for head in kept], dim=0)


def unstack(F, arrays, count):
    """Return `count` arrays of a stack of five axes."""
    parts = (F.slice_axis(arrays, axis=0, begin=i, end=i + 1) for i in range(count))
    return [F.reshape(part, shape=(-3, 0, 0, 0)) for part in parts]


class SelfAttention(MixedPrecision, HybridBlock):
    """Scaled dot-product self-attention ("Attention Is All You Need", section 3.2).

    Inputs
    ------
    x : (length, batch, units)
    mask : (batch * num_heads, length, length) or None
        See `attention_mask`.
    head_mask : (num_heads,) or None
        Factor of each head's attention probabilities.

    Outputs
    -------
    output : (length, batch, units)
        After the output projection.
    probabilities : (batch, num_heads, length, length)
        After dropout, as the originals return them.
    """

    # Query, key and value are one matrix product: the rows of its weight are laid out by head, and
    # within a head query, key, value, as `contrib.interleaved_matmul_selfatt_qk` wants them, so
    # nothing is concatenated or transposed in the forward pass.

    #: a function that replaces the heads' outputs, (length, batch, num_heads * head_size), before
    #: the output projection, while the heads are watched
    watch = None
    #: whether the originals keep query, key and value apart (see `DecoupledAdam`)
    joins_parameters = True
    #: the dense layers whose outputs are of heads
    of_heads = ('qkv',)
    _has_bias = True

    def __init__(self, config, layer, initializer, prefix=None):
        super().__init__(prefix=prefix)
        self._units, self._head_size = config.units, config.head_size
        self._initializer = initializer
        with self.name_scope():
            self.dropout = nn.Dropout(config.attention_dropout)
        self._make_projections(config.num_heads - len(config.pruned_heads.get(layer, ())))

    def _make_projections(self, num_heads):
        self.num_heads = num_heads  # after pruning
        inner, units = num_heads * self._head_size, self._units
        options = {'weight_initializer': self._initializer, 'use_bias': self._has_bias}
        with self.name_scope():
            self.qkv = Dense(3 * inner, in_units=units, prefix='qkv_', **options)
            if self.joins_parameters:
                for parameter in self.qkv._reg_params.values():
                    parameter.joined = 3, self._head_size
            self.proj = Dense(units, in_units=inner, prefix='proj_', **options)

    def prune(self, keep):
        """Keep only the heads at positions `keep`, an ascending list of at least one."""
        ctx, kept = self.qkv.weight.list_ctx(), {}
        index = mx.nd.array(keep, ctx=ctx[0], dtype='int32')
        for name in (*self.of_heads, 'proj'):
            for end, parameter in getattr(self, name)._reg_params.items():
                array = kept[name, end] = parameter.data(ctx[0])
                shape = array.shape
                if name != 'proj':
                    by_head = array.reshape((self.num_heads, -1, *shape[1:]))
                    kept[name, end] = by_head.take(index).reshape((-1, *shape[1:]))
                elif end == 'weight':
                    by_head = array.reshape((shape[0], self.num_heads, -1))
                    kept[name, end] = by_head.take(index, axis=1).reshape((shape[0], -1))
        self._make_projections(len(keep))
        for (name, end), array in kept.items():
            dense = getattr(self, name)
            dense.precision = self.precision
            parameter = getattr(dense, end)
            parameter.cast(array.dtype)
            parameter.initialize(ctx=ctx)
            parameter.set_data(array)

    def hybrid_forward(self, F, x, mask=None, head_mask=None):
        if uses_standard_operators():
            return self._standard(F, x, mask)
        self.qkv.gives_half = is_own = (
            head_mask is None
            and self.watch is None
            and self._head_size % operators.LANES == 0
            and self.has_own_operators(x)
        )
        if is_own:
            rest = self.num_heads, self.dropout._rate
            context, probabilities = operators.attention(F, self.qkv(x), mask, *rest)
            by_head = F.reshape(probabilities, shape=(-1, self.num_heads, 0, 0), reverse=True)
            return self._project(context), by_head
        return self._attend(F, self.qkv(x), mask, head_mask)

    def _attend(self, F, qkv, mask, head_mask):
        """Compute the forward pass for the fused projection (L, B, 3 * inner)."""
        heads = self.num_heads
        scores = self.product(F, F.contrib.interleaved_matmul_selfatt_qk, qkv, heads=heads)
        probabilities, by_head = self._probabilities(F, scores, mask, head_mask)
        operator = F.contrib.interleaved_matmul_selfatt_valatt
        context = self.product(F, operator, qkv, probabilities, heads=heads)  # (L, B, inner)
        return self._project(context), by_head

    def _standard(self, F, x, mask):
        """Compute the forward pass on x (B, L, C) with `standard_operators`."""
        parts = self._standard_parts(F, x, [(0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)])
        return self._standard_attention(F, *parts, mask)

    def _standard_parts(self, F, x, axes):
        """Return query, key and value, (B, L, heads, size), each in an order of axes."""
        heads, size = self.num_heads, self._head_size
        parameters = [each.var() for each in self.qkv._reg_params.values()]  # weight, bias
        whole = [F.reshape(each, shape=(heads, 3, -1)) for each in parameters]
        options, parts = {'num_hidden': heads * size, 'flatten': False}, []
        for part, order in enumerate(axes):
            pair = [F.slice_axis(each, axis=1, begin=part, end=part + 1) for each in whole]
            shapes = (heads * size, -1), (-1,)
            pair = [F.reshape(each, shape=shape) for each, shape in zip(pair, shapes)]
            out = F.FullyConnected(x, *pair, **options)
            parts.append(F.transpose(F.reshape(out, shape=(0, 0, heads, size)), axes=order))
        return parts

    def _standard_attention(self, F, query, key, value, mask):
        """Output and probabilities; the key is (B, heads, size, K)."""
        scores = F.linalg.gemm2(query, key) / math.sqrt(self._head_size)
        if mask is not None:
            scores = F.broadcast_add(scores, mask)
        probabilities = F.softmax(scores, axis=-1)
        context = F.transpose(F.linalg.gemm2(probabilities, value), axes=(0, 2, 1, 3))
        context = F.reshape(context, shape=(0, 0, self.num_heads * self._head_size))
        return self.proj(context), probabilities

    def _probabilities(self, F, scores, mask, head_mask):
        """For scores (B * heads, queries, keys): in that shape, and (B, heads, queries, keys)."""
        if mask is not None:
            scores = scores + mask
        probabilities = self.dropout(F.softmax(scores, axis=-1))
        by_head = F.reshape(probabilities, shape=(-1, self.num_heads, 0, 0), reverse=True)
        if head_mask is not None:
            by_head = F.broadcast_mul(by_head, F.reshape(head_mask, shape=(1, -1, 1, 1)))
            probabilities = F.reshape(by_head, shape=(-3, 0, 0))
        return probabilities, by_head

    def _by_axes(self, F, scores, mask, head_mask, axes):
        """Return the probabilities of scores with more axes; `axes` is the shape of a head mask."""
        scores = scores if mask is None else F.broadcast_add(scores, mask)
        probabilities = self.dropout(F.softmax(scores, axis=-1))
        if head_mask is None:
            return probabilities
        return F.broadcast_mul(probabilities, F.reshape(head_mask, shape=axes))

    def _project(self, context):
        """Project the heads' outputs (L, B, inner), which probes may watch, to (L, B, C)."""
        return self.proj(context if self.watch is None else self.watch(context))

    def _split(self, F, qkv, axes=(3, 1, 2, 0, 4)):
        """Return query, key and value of (L, B, 3 * inner): (B, heads, L, size) in this order."""
        by_head = F.reshape(qkv, shape=(0, 0, self.num_heads, 3, -1))
        return unstack(F, F.transpose(by_head, axes=axes), 3)


def causal_mask(F, steps, past=None, dtype='float32'):
    """Return the mask that is added to the attention scores and hides later positions."""
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

    joins_parameters = False  # as in OpenAI's programs

    def hybrid_forward(self, F, x, mask, head_mask=None, past=None):
        if uses_standard_operators():
            return self._standard(F, x, mask, past)
        qkv = self.qkv(x)  # (L, B, 3 * inner)
        query, key, value = self._split(F, qkv)  # (B, heads, L, size) each
        if past is None:
            return (*self._attend(F, qkv, mask, head_mask), F.stack(key, value, axis=0))
        past_key, past_value = unstack(F, past, 2)
        key = F.concat(past_key, key, dim=2)  # (B, heads, P + L, size)
        value = F.concat(past_value, value, dim=2)
        flat = (F.reshape(x, shape=(-3, 0, 0)) for x in (query, key, value))
        flat_query, flat_key, flat_value = flat
        scores = self.product(F, F.batch_dot, flat_query, flat_key, transpose_b=True)
        scores = scores / math.sqrt(self._head_size)  # (B * heads, L, P + L)
        probabilities, by_head = self._probabilities(F, scores, mask, head_mask)
        context = self.product(F, F.batch_dot, probabilities, flat_value)
        context = F.reshape(context, shape=(-4, -1, self.num_heads, 0, 0))  # (B, heads, L, size)
        context = F.reshape(F.transpose(context, axes=(2, 0, 1, 3)), shape=(0, 0, -3))
        return self._project(context), by_head, F.stack(key, value, axis=0)

    def _standard(self, F, x, mask, past=None):
        """Attend with `standard_operators` on x (B, L, C); past and present are [key, value]."""
        query, *present = self._standard_parts(F, x, [(0, 2, 1, 3)] * 3)
        if past is not None:
            present = [F.concat(old, new, dim=2) for old, new in zip(past, present)]
        key, value = present  # (B, heads, P + L, size)
        key = F.transpose(key, axes=(0, 1, 3, 2))
        return (*self._standard_attention(F, query, key, value, mask), present)

    def step(self, F, x, mask, key_cache, value_cache):
        """Attend from one new position per row, with caches of a fixed size."""
        # With a single position, reshaping is free, except for an input of the graph. So the
        # caches come in the layout of the products.
        qkv = F.reshape(self.qkv(x), shape=(-1, 3, self._head_size))  # (B * heads, 3, size)
        query, key, value = (F.slice_axis(qkv, axis=1, begin=i, end=i + 1) for i in range(3))
        column = (0, self._head_size, 1)
        query = F.reshape(query / math.sqrt(self._head_size), shape=column)
        value = F.reshape(value, shape=column)
        past = F.reshape(self.product(F, F.batch_dot, key_cache, query), shape=(0, 0))
        past = past + mask  # (B * heads, capacity)
        # (B * heads, 1)
        current = F.reshape(self.product(F, F.batch_dot, key, query), shape=(0, 0))
        probabilities = F.softmax(F.concat(past, current, dim=1), axis=-1)
        past = F.slice_axis(probabilities, axis=1, begin=0, end=-1)
        current = F.slice_axis(probabilities, axis=1, begin=-1, end=None)
        # (B * heads, size, 1)
        context = self.product(F, F.batch_dot, value_cache, F.expand_dims(past, 2))
        context = context + F.broadcast_mul(value, F.expand_dims(current, 2))
        context = F.reshape(context, shape=(1, -1, self.num_heads * self._head_size))
        heads = (-1, self.num_heads)
        key = F.reshape(key, shape=(*heads, 1, self._head_size))
        value = F.reshape(value, shape=(*heads, self._head_size, 1))
        return self.proj(context), key, value
