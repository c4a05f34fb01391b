"""Looking up, slicing, and masking."""

from .shapes import count_along
from .table import translates


def _within(writer, ids, rows):
    """Ids as int64, clipped to the table's rows as MXNet does."""
    ids = writer.cast(ids, 'int64')
    last = writer.add('Sub', [rows, writer.ints(1)])
    ids = writer.add('Max', [ids, writer.ints(0)], rank=ids.rank)
    return writer.add('Min', [ids, last], rank=ids.rank)


@translates('Embedding')
def _embedding(writer, node):
    ids, weight = node.inputs
    if ids.name in writer.ranges:
        ids = _places(writer, ids, writer.arrays[weight.name].shape[0])
    ids = writer.cast(ids, 'int64')  # the runtime refuses ids out of range
    made = writer.add('Gather', [weight, ids], weight.dtype, ids.rank + 1, axis=0)
    writer.same_axes[made.name] = ids
    return made


def _places(writer, ids, most):
    """Positions 0, 1, 2, ... with the rank of `ids`, sliced from all positions of the table.

    PyTorch's exporter writes the positions (1, length) in the same way, and runtimes recognize an
    embedding layer by it.
    """
    tensor, axis = writer.ranges[ids.name]
    while tensor.name in writer.same_axes:
        tensor = writer.same_axes[tensor.name]
    if ids.rank == 1:
        end = writer.shape(tensor, axis, axis + 1)
        return writer.add('Slice', [writer.ints(*range(most)), writer.ints(0), end])
    sizes = writer.add('Shape', [tensor], 'int64', 1)
    size = writer.add('Gather', [sizes, writer.constant(axis, 'int64')], rank=0, axis=0)
    end = writer.add('Unsqueeze', [size, writer.ints(0)], rank=1)
    every = writer.constant([range(most)], 'int64')
    return writer.add('Slice', [every, writer.ints(0), end, writer.ints(1), writer.ints(1)])


@translates('take')
def _take(writer, node):
    weight, ids = node.inputs
    axis = node.attrs.get('axis', 0)
    ids = _within(writer, ids, writer.shape(weight, axis, axis + 1))
    return writer.add('Gather', [weight, ids], rank=node.ranks[0], axis=axis)


@translates('where')
def _where(writer, node):
    condition, one, two = node.inputs
    one, two = writer.same_type(one, two)
    condition = writer.cast(condition, 'bool')
    return writer.add('Where', [condition, one, two], one.dtype, max(one.rank, two.rank))


@translates('gather_nd')
def _gather_nd(writer, node):
    tensor, places = node.inputs
    axes = [*range(1, places.rank), 0]
    places = writer.add('Transpose', [writer.cast(places, 'int64')], perm=axes)
    return writer.add('GatherND', [tensor, places], rank=node.ranks[0])


_END = 2**31 - 1  # beyond any axis


@translates('slice')
def _slice(writer, node):
    tensor = node.inputs[0]
    begin, end = node.attrs['begin'], node.attrs['end']
    axes = [i for i, pair in enumerate(zip(begin, end)) if pair != (None, None)]
    return _sliced(
        writer, tensor, axes, [begin[i] or 0 for i in axes],
        [_END if end[i] is None else end[i] for i in axes],
    )  # fmt: skip


@translates('slice_axis')
def _slice_axis(writer, node):
    end = node.attrs['end']
    return _sliced(
        writer, node.inputs[0], [node.attrs['axis']], [node.attrs['begin']],
        [_END if end is None else end],
    )  # fmt: skip


def _sliced(writer, tensor, axes, begin, end):
    return writer.add(
        'Slice', [tensor, writer.ints(*begin), writer.ints(*end), writer.ints(*axes)]
    )


@translates('slice_like')
def _slice_like(writer, node):
    tensor, like = node.inputs
    axes = node.attrs.get('axes', ()) or tuple(range(tensor.rank))
    sizes = writer.concat(*(writer.shape(like, axis, axis + 1) for axis in axes))
    begin = writer.ints(*[0] * len(axes))
    return writer.add('Slice', [tensor, begin, sizes, writer.ints(*axes)])


@translates('reverse')
def _reverse(writer, node):
    axis = node.attrs['axis']
    axes = axis if isinstance(axis, tuple) else (axis,)
    parts = [writer.ints(*[value] * len(axes)) for value in (-1, -_END)]
    steps = writer.ints(*[-1] * len(axes))
    return writer.add('Slice', [node.inputs[0], *parts, writer.ints(*axes), steps])


@translates('SequenceMask')
def _sequence_mask(writer, node):
    """Put `value` behind the valid lengths. `axis` is 0 or 1, and the other one is the batch."""
    tensor = node.inputs[0]
    if not node.attrs.get('use_sequence_length', False):
        return tensor
    axis = node.attrs.get('axis', 0)
    lengths = writer.cast(node.inputs[1], 'float32')
    places = count_along(writer, tensor, axis, 'float32')
    places = writer.unsqueeze(places, 1 - axis)  # (L, 1) or (1, L)
    inside = writer.add('Less', [places, writer.unsqueeze(lengths, axis)], 'bool', 2)
    if tensor.rank > 2:
        inside = writer.unsqueeze(inside, *range(2, tensor.rank))
    value = writer.constant(node.attrs.get('value', 0), tensor.dtype)
    return writer.add('Where', [inside, tensor, value], tensor.dtype, tensor.rank)
