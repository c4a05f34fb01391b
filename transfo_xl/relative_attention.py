"""Self-attention with relative positions and a memory (Dai et al. 2019, "Transformer-XL")."""

import math

import mxnet as mx
from mxnet.gluon import HybridBlock, nn

from model_zoo.layers.cells import Cell, FeedForward
from model_zoo.layers.precision import Dense, LayerNorm, MixedPrecision

from .adaptive import initializers


@mx.init.register
class NormalAroundOne(mx.init.Initializer):
    """Normal distribution around 1, the originals' initializer of normalizations' factors."""

    def __init__(self, sigma=0.02):
        super().__init__(sigma=sigma)
        self._sigma = sigma

    def _init_weight(self, _, arr):
        mx.random.normal(1, self._sigma, out=arr)


def sinusoids(F, distances, units, states):
    """Encode distances by sines and cosines ("Attention Is All You Need", section 3.5).

    Any `states`, (..., units), will do: a graph takes the number of units from them.
    """
    # the distance multiplies an error in a frequency: so they are computed in double precision
    steps = F.contrib.arange_like(F.cast(states, 'float32'), axis=-1)
    steps = F.slice_axis(steps, axis=0, begin=0, end=units // 2)
    steps = F.cast(steps, 'float64')
    frequencies = F.cast(F.exp(steps * (-2 * math.log(10000) / units)), 'float32')
    angles = F.broadcast_mul(F.expand_dims(distances, 1), F.expand_dims(frequencies, 0))
    return F.concat(F.sin(angles), F.cos(angles), dim=1)


class RelativeAttention(MixedPrecision, HybridBlock):
    """Multi-head attention to a memory and to the segment itself, by content and by distance.

    Inputs
    ------
    x : (length, batch, units)
    context : (keys, batch, units)
        Memory and `x`, in this order.
    positions : (keys + 1, units)
        The encodings of distances keys, ..., 1, 0.
    mask : (1, batch or 1, length, keys)
        0 where a query (third axis) may look at a key, and -10000 elsewhere.
    frame : (keys + 1, length)
        Any array of that shape.

    Outputs
    -------
    output : (length, batch, units)
        After the output projection.
    key, value : (heads * batch, keys, head_size)
    """

    def __init__(self, config, biases=None, prefix=None):
        super().__init__(prefix=prefix)
        heads = self._num_heads, self._head_size = config.n_head, config.d_head
        units, inner = config.d_model, config.n_head * config.d_head
        initializer, _ = initializers(config)
        options = {'weight_initializer': initializer, 'use_bias': False}
        with self.name_scope():
            # rows of all heads' queries, then their keys, then their values
            shape = 3 * inner, units
            self.qkv_weight = self.params.get('qkv_weight', shape=shape, init=initializer)
            if biases is None:
                names = 'content_bias', 'position_bias'
                biases = [self.params.get(name, shape=heads, init=initializer) for name in names]
            self.content_bias, self.position_bias = biases
            self.relative = Dense(inner, in_units=units, prefix='relative_', **options)
            self.proj = Dense(units, in_units=inner, prefix='proj_', **options)
            self.dropout = nn.Dropout(config.dropatt)

    def _dense(self, F, x, weight, parts=1):
        inner = parts * self._num_heads * self._head_size
        return self.fully_connected(F, x, weight, num_hidden=inner, flatten=False)

    def _by_head(self, F, x):
        """(length, batch, heads * size) as (heads * batch, length, size)."""
        x = F.reshape(x, shape=(0, 0, self._num_heads, self._head_size))
        return F.reshape(F.transpose(x, axes=(2, 1, 0, 3)), shape=(-3, 0, 0))

    def _batch_dot(self, F, left, right, **options):
        """Return the products of (N, rows, inner) and (N, inner, columns)."""
        if self.precision == 'float16':  # the faster operator lacks it
            return self.product(F, F.batch_dot, left, right, **options)
        return F.linalg_gemm2(left, right, **options)

    def _queries(self, F, query, *biases):
        """Return the queries for content and for distance, both (heads, batch, length, size)."""
        query = F.reshape(query, shape=(0, 0, self._num_heads, self._head_size))
        biases = [F.reshape(bias, shape=(1, 1, 0, 0), reverse=True) for bias in biases]
        biased = [F.broadcast_add(query, bias) for bias in biases]
        scale = 1 / math.sqrt(self._head_size)
        return [F.transpose(part, axes=(2, 1, 0, 3)) * scale for part in biased]

    def distance_keys(self, F, positions):
        """Return the keys of distances: (length, units) -> (heads, length, size)."""
        keys = F.reshape(self.relative(positions), shape=(0, self._num_heads, -1))
        return F.transpose(keys, axes=(1, 0, 2))

    def hybrid_forward(self, F, x, context, positions, mask, frame, qkv_weight, **biases):
        query_weight, *weights = F.split(qkv_weight, num_outputs=3, axis=0)
        query = self._dense(F, x, query_weight)
        key, value = (self._by_head(F, self._dense(F, context, weight)) for weight in weights)
        distance_keys = self.distance_keys(F, positions)
        biases = biases['content_bias'], biases['position_bias']
        return self._attend(F, query, key, value, distance_keys, mask, frame, *biases), key, value

    def remember(self, F, memory):
        """Keys and values of (keys, batch, units), (heads * batch, keys, head_size) each."""
        inner = self._num_heads * self._head_size
        *_, weight = self._values(memory)
        weight = F.slice_axis(weight, axis=0, begin=inner, end=None)
        parts = F.split(self._dense(F, memory, weight, 2), num_outputs=2, axis=2)
        return [self._by_head(F, part) for part in parts]

    def read(self, F, x, key, value, distance_keys, mask, frame):
        """Compute the attention of a segment to a memory whose keys and values are known."""
        *biases, weight = self._values(x)
        query, *parts = F.split(self._dense(F, x, weight, 3), num_outputs=3, axis=2)
        new_key, new_value = (self._by_head(F, part) for part in parts)
        key, value = F.concat(key, new_key, dim=1), F.concat(value, new_value, dim=1)
        return self._attend(F, query, key, value, distance_keys, mask, frame, *biases), key, value

    def _values(self, x):
        """Return the content and the position bias, and the weight of queries, keys and values."""
        parameters = self.content_bias, self.position_bias, self.qkv_weight
        if isinstance(x, mx.sym.Symbol):
            return [parameter.var() for parameter in parameters]
        return [parameter.data(x.context) for parameter in parameters]

    def _attend(self, F, query, key, value, distance_keys, mask, frame, *biases):
        """Return the output for queries (L, B, inner), and keys and values (heads * B, K, size)."""
        queries = self._queries(F, query, *biases)
        query = F.reshape(queries[0], shape=(-3, 0, 0))  # (heads * B, L, size)

        # all rows' queries with all distances, in one product a head
        by_distance = F.reshape(queries[1], shape=(0, -3, 0))  # (heads, B * L, size)
        by_distance = self._batch_dot(F, by_distance, distance_keys, transpose_b=True)
        first_two = {'lhs_begin': 0, 'lhs_end': 2, 'rhs_begin': 0, 'rhs_end': 2}
        by_distance = F.reshape_like(by_distance, query, **first_two)  # (heads * B, L, K + 1)
        by_distance = self._shift(F, by_distance, mask, frame)
        if self.precision == 'float16':
            scores = self._batch_dot(F, query, key, transpose_b=True) + by_distance
        else:  # the product with the keys is added to it in place
            scores = F.linalg_gemm(query, key, by_distance, transpose_b=True)  # (heads * B, L, K)
        scores = F.reshape(scores, shape=(-4, self._num_heads, -1, 0, 0))
        probabilities = self.dropout(F.softmax(F.broadcast_add(scores, mask), axis=-1))
        heads = self._batch_dot(F, F.reshape(probabilities, shape=(-3, 0, 0)), value)
        heads = F.reshape(heads, shape=(-4, self._num_heads, -1, 0, 0))  # (heads, B, L, size)
        heads = F.reshape(F.transpose(heads, axes=(2, 1, 0, 3)), shape=(0, 0, -3))
        return self.proj(heads)

    def step(self, F, x, mask, index, distance_keys, key_cache, value_cache, *first_pair, first):
        """Attend from one more position per row, with keys and values in fixed-size arrays."""
        # The `first` positions all have the same key and value, which is kept once.
        *biases, weight = self._values(x)
        parts = F.split(self._dense(F, x, weight, 3), num_outputs=3, axis=2)
        heads = -3, self._num_heads, self._head_size
        query, key, value = (F.reshape(part, shape=heads) for part in parts)  # (B, heads, size)
        scale = 1 / math.sqrt(self._head_size)
        biased = [F.broadcast_add(query, F.expand_dims(bias, 0)) for bias in biases]
        by_content, by_distance = (part * scale for part in biased)
        by_distance = F.transpose(by_distance, axes=(1, 0, 2))  # (heads, B, size)
        by_distance = self.product(F, F.batch_dot, by_distance, distance_keys, transpose_b=True)
        by_distance = F.transpose(by_distance, axes=(1, 0, 2))  # (B, heads, distances)
        at_zero = F.slice_axis(by_distance, axis=2, begin=0, end=1)
        distances = F.reshape(F.take(by_distance, index, axis=2), shape=(-3, 1, -1)) + mask

        query = F.reshape(by_content, shape=(-3, 0, 1))
        scores = self.product(F, F.batch_dot, key_cache, query)
        scores = [F.reshape(scores, shape=(0, 1, -1))]  # (B * heads, 1, capacity)
        if first:
            common = F.broadcast_mul(by_content, F.expand_dims(first_pair[0], 0))
            common = F.reshape(F.sum(common, axis=2), shape=(-1, 1, 1))
            scores.insert(0, F.broadcast_axis(common, axis=2, size=first))
        current = F.sum(by_content * key, axis=2, keepdims=True) + at_zero
        scores = F.concat(*scores, dim=2) + distances
        scores = F.concat(scores, F.reshape(current, shape=(-3, 1, -1)), dim=2)
        probabilities = F.reshape(F.softmax(scores, axis=-1), shape=(0, -1, 1))

        old = F.slice_axis(probabilities, axis=1, begin=first, end=-1)
        current = F.slice_axis(probabilities, axis=1, begin=-1, end=None)
        heads = self.product(F, F.batch_dot, value_cache, old)  # (B * heads, size, 1)
        heads = heads + F.broadcast_mul(F.reshape(value, shape=(-3, 0, 1)), current)
        if first:
            common = F.slice_axis(probabilities, axis=1, begin=0, end=first)
            common = F.reshape(F.sum(common, axis=1), shape=(-1, self._num_heads, 1))
            common = F.broadcast_mul(common, F.expand_dims(first_pair[1], 0))  # (B, heads, size)
            heads = heads + F.reshape(common, shape=(-3, 0, 1))
        heads = F.reshape(heads, shape=(1, -1, self._num_heads * self._head_size))
        return self.proj(heads), F.expand_dims(key, 2), F.expand_dims(value, 3)

    @staticmethod
    def _shift(F, by_distance, mask, frame):
        """Return the scores by distance (N, L, K + 1) -> by key (N, L, K)."""
        # Query i has the key of the distance 0 one position further than query i - 1. Reading the
        # numbers in rows that are one shorter does that (appendix B). Numbers at keys ahead of a
        # query belong to the next one, and are masked.
        # (N, K + 1, L)
        numbers = F.reshape_like(by_distance, frame, lhs_begin=1, lhs_end=3, rhs_begin=0, rhs_end=2)
        numbers = F.slice_axis(numbers, axis=1, begin=1, end=None)
        return F.reshape_like(numbers, mask, lhs_begin=1, lhs_end=3, rhs_begin=2, rhs_end=4)


class RelativeCell(Cell):
    """One layer: relative attention and feed-forward, with residuals and normalization.

    Inputs
    ------
    x : (length, batch, units)
    memory : (memory, batch, units) or None
        What earlier segments gave to this layer.
    positions, mask, frame
        See `RelativeAttention`.

    Outputs
    -------
    output : (length, batch, units)
    context : (memory + length, batch, units)
        The memory and `x`.
    key, value : (heads * batch, memory + length, head_size)
    """

    def __init__(self, config, biases=None, prefix=None):
        super().__init__(prefix=prefix)
        self.pre_norm = config.pre_lnorm
        sizes, (initializer, _) = (config.d_model, config.d_inner), initializers(config)
        norm = {'epsilon': config.layer_norm_epsilon, 'in_channels': config.d_model}
        norm['gamma_initializer'] = NormalAroundOne(config.init_std)
        with self.name_scope():
            self.attention = RelativeAttention(config, biases, prefix='attention_')
            self.attention_norm = LayerNorm(**norm)
            self.ffn = FeedForward(*sizes, 'relu', initializer, config.dropout, prefix='ffn_')
            self.ffn_norm = LayerNorm(**norm)
            self.dropout = nn.Dropout(config.dropout)

    def hybrid_forward(self, F, x, memory, positions, mask, frame):
        context = x if memory is None else F.concat(memory, x, dim=0)
        source = self.before(context)
        query = source if memory is None else self.before(x)
        attended, key, value = self.attention(query, source, positions, mask, frame)
        return self.after(x, attended), context, key, value

    def remember(self, F, memory):
        """Return the keys and values of a memory; see `RelativeAttention.remember`."""
        return self.attention.remember(F, self.before(memory))

    def read(self, F, x, *arrays):
        """Return a segment after a memory of keys and values; see `RelativeAttention.read`."""
        attended, key, value = self.attention.read(F, self.before(x), *arrays)
        return self.after(x, attended), key, value

    def step(self, F, x, *arrays, first):
        """Add one more position a row; see `RelativeAttention.step`."""
        attended, key, value = self.attention.step(F, self.before(x), *arrays, first=first)
        return self.after(x, attended), key, value
