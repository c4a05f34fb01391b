"""DeBERTa's attention: products of contents, and of contents with relative positions."""

import math

import mxnet as mx
from mxnet.gluon import nn

from .attention import SelfAttention, attention_mask
from .cells import EncoderCell, EncoderStack
from .graphs import uses_standard_operators
from .precision import Dense, LayerNorm

__all__ = ['DisentangledStack']


def relative_positions(F, x, table, config):
    """Return what all layers' `DisentangledAttention` take besides.

    Parameters
    ----------
    x : (length, batch, units), or with `standard_operators` (batch, length, units)
    table : (2 * config.span, units)
        A row for each relative position.

    Returns
    -------
    vectors : (2 * length, 1, units), or the whole table as (1, 2 * config.span, units)
    rows : (2 * length,)
        Rows of the table for the positions of queries relative to keys, from -length on.
    by_query, by_key : (length, length)
        The place of the position of query i relative to key j among the positions relative to
        query i, or to key j; all queries', or keys', positions are one after the other.
    """
    standard = uses_standard_operators()
    steps = F.cast(F.contrib.arange_like(x, axis=1 if standard else 0), 'float32')  # (L,)
    distances = F.concat(-1 - F.reverse(steps, axis=0), steps, dim=0)
    rows = F.clip(_bucket(F, distances, config) + config.span, 0, 2 * config.span - 1)
    last = F.slice_axis(steps, axis=0, begin=-1, end=None)
    count = F.expand_dims(last + 1, 0)  # (1, 1)
    queries, keys = F.expand_dims(steps, 1), F.expand_dims(steps, 0)
    places = F.broadcast_add(F.broadcast_add(queries, count), -keys)
    by_query, by_key = (
        F.broadcast_add(places, F.broadcast_mul(own, 2 * count)) for own in (queries, keys)
    )
    if standard:
        vectors = F.expand_dims(table, 0)
    else:
        vectors = F.expand_dims(F.take(table, rows), 1)
    return [vectors, rows, F.BlockGrad(by_query), F.BlockGrad(by_key)]


def _bucket(F, distances, config):
    """Return distances, whole numbers, of which those above half of the buckets share one."""
    middle = config.position_buckets // 2
    if middle <= 0:
        return distances
    near = F.clip(distances, -middle, middle)
    widest = math.log((config.longest_distance - 1) / middle)
    # log(1) = 0 for near ones; the small number makes up for the rounding of the logarithms
    far = F.log(F.maximum(F.abs(distances), middle) / middle) / widest * (middle - 1)
    return near + F.clip(distances, -1, 1) * F.ceil(far - 1e-4)


#: products with relative positions -> the dense layer of the positions' own vectors
_OF_POSITIONS = {'c2p': 'pos_key', 'p2c': 'pos_query'}


class DisentangledAttention(SelfAttention):
    """Self-attention whose scores also have products with relative positions (He et al. 2021).

    A score is the sum of query times key, query times position's key ("c2p"), and key times
    position's query ("p2c").

    Inputs
    ------
    x, head_mask
        See `SelfAttention`.
    mask : (num_heads, batch, length, length) or None
    *positions
        See `relative_positions`.
    """

    def __init__(self, config, layer, initializer, prefix=None):
        self._kinds = config.pos_att_type
        if not config.share_att_key:
            self.of_heads = ('qkv', *map(_OF_POSITIONS.get, self._kinds))
        super().__init__(config, layer, initializer, prefix)
        with self.name_scope():
            self.position_dropout = nn.Dropout(config.dropout)

    def _make_projections(self, num_heads):
        super()._make_projections(num_heads)
        options = {'in_units': self._units, 'weight_initializer': self._initializer}
        with self.name_scope():
            for name in self.of_heads[1:]:
                dense = Dense(num_heads * self._head_size, prefix=f'{name}_', **options)
                setattr(self, name, dense)

    def hybrid_forward(self, F, x, mask, head_mask, vectors, rows, *places):
        vectors, standard = self.position_dropout(vectors), uses_standard_operators()
        query, key, value = self._parts(F, x)  # (heads, B, L, size)
        scale = 1 / math.sqrt(self._head_size * (1 + len(self._kinds)))
        query = query * scale
        scores = self._dot(F, query, key, transpose_b=True)  # (heads, B, L, L)
        positions = self._positions(F, vectors)
        for kind, part, factor, place in zip(('c2p', 'p2c'), (query, key), (1, scale), places):
            if kind in self._kinds:
                other = positions[kind] * factor  # (heads, 1, positions, size)
                if standard:
                    other = F.take(other, rows, axis=2)
                pair = (F.reshape(each, shape=(0, -1, self._head_size)) for each in (part, other))
                products = self.product(F, F.batch_dot, *pair, transpose_b=True)
                by_row = {'lhs_begin': 0, 'lhs_end': 2, 'rhs_begin': 0, 'rhs_end': 3}
                products = F.reshape_like(products, part, **by_row)  # (heads, B, L, 2 * L)
                products = F.reshape(products, shape=(0, 0, -1))
                scores = scores + F.take(products, place, axis=2)
        probabilities = self._by_axes(F, scores, mask, head_mask, (-1, 1, 1, 1))
        context = self._dot(F, probabilities, value)
        axes = (1, 2, 0, 3) if standard else (2, 1, 0, 3)
        context = F.reshape(F.transpose(context, axes=axes), shape=(0, 0, -1))
        return self._project(context), F.transpose(probabilities, axes=(1, 0, 2, 3))

    def _dot(self, F, left, right, **options):
        """Return the products of (heads, B, rows, inner) and (heads, B, inner, columns)."""
        if uses_standard_operators():
            return F.linalg.gemm2(left, right, **options)
        pair = (F.reshape(each, shape=(-3, 0, 0)) for each in (left, right))
        result = self.product(F, F.batch_dot, *pair, **options)
        return F.reshape(result, shape=(-4, self.num_heads, -1, 0, 0))

    def _by_head(self, F, x):
        """Return (L, B, inner), or (B, L, inner) of standard operators, as (heads, B, L, ...)."""
        axes = (2, 0, 1, 3) if uses_standard_operators() else (2, 1, 0, 3)
        return F.transpose(F.reshape(x, shape=(0, 0, self.num_heads, -1)), axes=axes)

    def _parts(self, F, x):
        """Return query, key and value, each (heads, B, L, size)."""
        if uses_standard_operators():
            return self._standard_parts(F, x, [(2, 0, 1, 3)] * 3)
        return self._split(F, self.qkv(x), (3, 2, 1, 0, 4))

    def _positions(self, F, vectors):
        """Return the positions' keys and queries."""
        if len(self.of_heads) > 1:
            dense = {kind: getattr(self, _OF_POSITIONS[kind]) for kind in self._kinds}
            return {kind: self._by_head(F, layer(vectors)) for kind, layer in dense.items()}
        query, key, _ = self._parts(F, vectors)
        return {'c2p': key, 'p2c': query}


class DisentangledCell(EncoderCell):
    """One layer with `DisentangledAttention`."""

    attention_class = DisentangledAttention


class DisentangledStack(EncoderStack):
    """The layers of a DeBERTa, and the table of relative positions."""

    cell_class = DisentangledCell

    def __init__(self, config):
        super().__init__(config)
        normalizes = 'layer_norm' in config.norm_rel_ebd.lower().replace(' ', '').split('|')
        norm = {'epsilon': config.layer_norm_eps, 'in_channels': config.units}
        shape, init = (2 * config.span, config.units), mx.init.Normal(config.initializer_range)
        with self.name_scope():
            self.relative_weight = self.params.get('relative_weight', shape=shape, init=init)
            self.position_norm = LayerNorm(**norm) if normalizes else None

    def _inputs(self, F, x, *inputs, relative_weight):
        vectors, *others = relative_positions(F, x, relative_weight, self._config)
        vectors = vectors if self.position_norm is None else self.position_norm(vectors)
        return [*super()._inputs(F, x, *inputs), vectors, *others]

    def _mask(self, F, x, valid_length, heads, dtype):
        if valid_length is None:
            return None
        mask = attention_mask(F, valid_length, x, 1, dtype)  # (B, L, L), or (B, 1, 1, L)
        if uses_standard_operators():
            return F.reshape(mask, shape=(1, -1, 1, 0))
        mask = F.tile(mask, reps=(len(heads), 1, 1))
        return F.reshape(mask, shape=(-4, len(heads), -1, 0, 0))
