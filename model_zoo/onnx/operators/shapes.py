"""Axes and sizes: reshaping, joining, splitting, and numbering."""

from ...errors import InputError
from .table import translates

__all__ = ['count_along']


def count_along(writer, tensor, axis, dtype):
    """0, 1, 2, ... along an axis of `tensor`, as a vector."""
    axis = axis + tensor.rank if axis < 0 else axis
    size = writer.add(
        'Squeeze', [writer.shape(tensor, axis, axis + 1), writer.ints(0)], 'int64', 0
    )
    numbers = [writer.constant(value, 'int64') for value in (0, 1)]
    return writer.cast(writer.add('Range', [numbers[0], size, numbers[1]], 'int64', 1), dtype)


@translates('_contrib_arange_like')
def _arange_like(writer, node):
    made = count_along(writer, node.inputs[0], node.attrs['axis'], 'float32')
    writer.ranges[made.name] = node.inputs[0], node.attrs['axis']
    start, step = node.attrs.get('start', 0), node.attrs.get('step', 1)
    if step != 1:
        made = writer.add('Mul', [made, writer.constant(step, 'float32')])
    return writer.add('Add', [made, writer.constant(start, 'float32')]) if start else made


@translates('transpose')
def _transpose(writer, node):
    tensor = node.inputs[0]
    axes = node.attrs.get('axes') or tuple(reversed(range(tensor.rank)))
    return writer.add('Transpose', [tensor], perm=list(axes))


@translates('expand_dims')
def _expand_dims(writer, node):
    tensor, axis = node.inputs[0], node.attrs['axis']
    made = writer.unsqueeze(tensor, axis)
    if tensor.name in writer.ranges and axis == 0:
        writer.ranges[made.name] = writer.ranges[tensor.name]
    return made


@translates('squeeze')
def _squeeze(writer, node):
    axis = node.attrs['axis']
    axes = axis if isinstance(axis, tuple) else (axis,)
    return writer.add('Squeeze', [node.inputs[0], writer.ints(*axes)], rank=node.ranks[0])


@translates('Reshape')
def _reshape(writer, node):
    tensor, codes = node.inputs[0], list(node.attrs['shape'])
    if node.attrs.get('reverse', False):
        shape = _sizes_from_the_right(writer, tensor, codes)
    elif min(codes) < -1:
        return writer.reshape(tensor, _sizes_of_codes(writer, tensor, codes), node.ranks[0])
    else:
        shape = writer.ints(*codes)  # 0 and -1 mean the same in ONNX
    return writer.reshape(tensor, shape, len(codes))


def _sizes_from_the_right(writer, tensor, codes):
    if min(codes) < -1:
        raise InputError(f'Reshape {codes} with reverse=True has no translation to ONNX')
    shift = tensor.rank - len(codes)
    return writer.concat(*(
        writer.shape(tensor, axis, axis + 1) if code == 0 else writer.ints(code)
        for axis, code in enumerate(codes, shift)
    ))  # fmt: skip


def _sizes_of_codes(writer, tensor, codes):
    """MXNet's codes: 0 keeps an axis, -1 takes the rest, -2 keeps all axes that are left, -3 joins
    two axes, and -4 splits one into the two sizes that follow."""
    parts, axis, codes = [], 0, iter(codes)
    for code in codes:
        if code == 0:
            parts.append(writer.shape(tensor, axis, axis + 1))
        elif code == -2:
            parts.append(writer.shape(tensor, axis))
            axis = tensor.rank
        elif code == -3:
            pair = [writer.shape(tensor, each, each + 1) for each in (axis, axis + 1)]
            parts.append(writer.add('Mul', pair))
            axis += 1
        elif code == -4:
            whole, pair = (axis, axis + 1), (next(codes), next(codes))
            for size, other in (pair, pair[::-1]):
                if size == -1:
                    size = writer.add('Div', [writer.shape(tensor, *whole), writer.ints(other)])
                else:
                    size = writer.ints(size)
                parts.append(size)
        else:
            parts.append(writer.ints(code))
        axis += 1
    return writer.concat(*parts)


@translates('reshape_like')
def _reshape_like(writer, node):
    tensor, like = node.inputs
    ends = []
    for side, each in (('lhs', tensor), ('rhs', like)):
        begin, end = (node.attrs.get(f'{side}_{name}') for name in ('begin', 'end'))
        ends.append((begin or 0, each.rank if end is None else end))
    (begin, end), (like_begin, like_end) = ends
    parts = [writer.shape(like, like_begin, like_end)]
    if begin > 0:
        parts.insert(0, writer.shape(tensor, 0, begin))
    if end < tensor.rank:
        parts.append(writer.shape(tensor, end))
    return writer.reshape(tensor, writer.concat(*parts), node.ranks[0])


@translates('broadcast_like')
def _broadcast_like(writer, node):
    tensor, like = node.inputs
    axes, like_axes = node.attrs.get('lhs_axes'), node.attrs.get('rhs_axes')
    if not axes:
        return writer.add('Expand', [tensor, writer.shape(like)], rank=like.rank)
    sizes = [writer.ints(1)] * tensor.rank  # 1 leaves an axis as it is
    for axis, other in zip(axes, like_axes):
        sizes[axis] = writer.shape(like, other, other + 1)
    return writer.add('Expand', [tensor, writer.concat(*sizes)])


@translates('repeat')
def _repeat(writer, node):
    """Repeat each element, along an axis or over the flattened tensor."""
    tensor, count, axis = node.inputs[0], node.attrs['repeats'], node.attrs.get('axis')
    if axis is None:
        tensor, axis = writer.reshape(tensor, writer.ints(-1), 1), 0
    apart = writer.unsqueeze(tensor, axis + 1)
    sizes = [1] * apart.rank
    sizes[axis + 1] = count
    apart = writer.add('Expand', [apart, writer.ints(*sizes)])
    parts = [writer.shape(tensor, 0, axis)] if axis else []
    parts.append(writer.ints(-1))
    if axis + 1 < tensor.rank:
        parts.append(writer.shape(tensor, axis + 1))
    return writer.reshape(apart, writer.concat(*parts), tensor.rank)


@translates('Concat', 'concat')
def _concat(writer, node):
    return writer.add('Concat', writer.same_type(*node.inputs), axis=node.attrs.get('dim', 1))


@translates('stack')
def _stack(writer, node):
    axis = node.attrs.get('axis', 0)
    parts = [writer.unsqueeze(each, axis) for each in writer.same_type(*node.inputs)]
    return writer.add('Concat', parts, axis=axis)


@translates('SliceChannel', 'split')
def _split(writer, node):
    tensor, count = node.inputs[0], node.attrs['num_outputs']
    axis = node.attrs.get('axis', 1)
    parts = writer.add('Split', [tensor], outputs=count, axis=axis)
    if node.attrs.get('squeeze_axis', False):
        parts = [
            writer.add('Squeeze', [part, writer.ints(axis)], rank=part.rank - 1) for part in parts
        ]
    return parts
