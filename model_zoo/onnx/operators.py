"""MXNet's operators in ONNX's: one function each, ``translate(writer, node) -> Tensor or list``.

MXNet's own translations (``mxnet.onnx``) write sizes of the example into the graph, and
``slice_like`` is wrong; these here keep every size open. The operators are those that blocks trace
with `model_zoo.layers.graphs.standard_operators`.
"""

import math

from ..errors import InputError

#: name of an MXNet operator -> its translation, ``translate(writer, node) -> Tensor or list``
OPERATORS = {}


def translates(*names):
    """Enter the decorated function into `OPERATORS` under these names."""

    def register(function):
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


@translates('_contrib_arange_like')
def _arange_like(writer, node):
    (tensor,), axis = node.inputs, node.attrs['axis']
    axis = axis + tensor.rank if axis < 0 else axis
    size = writer.add('Squeeze', [writer.shape(tensor, axis, axis + 1), writer.ints(0)], 'int64', 0)
    start, step = (writer.constant(value, 'int64') for value in (0, 1))
    made = writer.cast(writer.add('Range', [start, size, step], 'int64', 1), 'float32')
    writer.ranges[made.name] = tensor, node.attrs['axis']
    return made


@translates('transpose')
def _transpose(writer, node):
    return writer.add('Transpose', node.inputs, perm=list(node.attrs['axes']))


@translates('expand_dims')
def _expand_dims(writer, node):
    (tensor,), axis = node.inputs, node.attrs['axis']
    made = writer.unsqueeze(tensor, axis)
    if tensor.name in writer.ranges and axis == 0:
        writer.ranges[made.name] = writer.ranges[tensor.name]
    return made


@translates('squeeze')
def _squeeze(writer, node):
    axis = writer.ints(node.attrs['axis'])
    return writer.add('Squeeze', [*node.inputs, axis], rank=node.ranks[0])


@translates('Reshape')
def _reshape(writer, node):
    (tensor,), codes = node.inputs, node.attrs['shape']
    if not node.attrs.get('reverse', False) and min(codes) >= -1:
        shape = writer.ints(*codes)  # 0 and -1 mean the same in ONNX
    else:
        shape = _sizes_of_codes(writer, node, codes)
    return writer.reshape(tensor, shape, node.ranks[0])


def _sizes_of_codes(writer, node, codes):
    """Return the shape for MXNet's codes: 0 keeps an axis, -1 takes the rest, -3 joins two axes."""
    parts, (tensor,) = [], node.inputs
    # in reverse, axes count from the right
    axis = tensor.rank - len(codes) if node.attrs.get('reverse', False) else 0
    for code in codes:
        if code == 0:
            parts.append(writer.shape(tensor, axis, axis + 1))
        elif code == -3:
            pair = [writer.shape(tensor, start, start + 1) for start in (axis, axis + 1)]
            parts.append(writer.add('Mul', pair))
            axis += 1
        elif code < -1:
            raise InputError(f'Reshape to {codes} has no translation to ONNX')
        else:
            parts.append(writer.ints(code))
        axis += 1
    return writer.concat(*parts)


@translates('reshape_like')
def _reshape_like(writer, node):
    tensor, like = node.inputs
    begin, end, like_begin, like_end = (
        node.attrs.get(f'{side}_{name}') for side in ('lhs', 'rhs') for name in ('begin', 'end')
    )
    parts = [writer.shape(like, like_begin or 0, like.rank if like_end is None else like_end)]
    if begin:
        parts.insert(0, writer.shape(tensor, 0, begin))
    if end is not None and end < tensor.rank:
        parts.append(writer.shape(tensor, end))
    return writer.reshape(tensor, writer.concat(*parts), node.ranks[0])


@translates('Concat')
def _concat(writer, node):
    return writer.add('Concat', writer.same_type(*node.inputs), axis=node.attrs.get('dim', 1))


@translates('stack')
def _stack(writer, node):
    axis = node.attrs.get('axis', 0)
    parts = [writer.unsqueeze(part, axis) for part in writer.same_type(*node.inputs)]
    return writer.add('Concat', parts, axis=axis)


@translates('SliceChannel')
def _split(writer, node):
    axis, count = node.attrs.get('axis', 1), node.attrs['num_outputs']
    parts = writer.add('Split', node.inputs, outputs=count, axis=axis)
    if node.attrs.get('squeeze_axis', False):
        axis = writer.ints(axis)
        parts = [writer.add('Squeeze', [part, axis], rank=part.rank - 1) for part in parts]
    return parts


@translates('_copy', 'BlockGrad', 'Dropout')
def _same(writer, node):
    return node.inputs[0]


def _unary(op):
    return lambda writer, node: writer.add(op, node.inputs)


def _binary(op):
    def translate(writer, node):
        left, right = writer.same_type(*node.inputs)
        made = writer.add(op, [left, right], rank=max(left.rank, right.rank))
        if left.name in writer.same_axes and left.rank == made.rank:
            writer.same_axes[made.name] = left
        return made

    return translate


def _comparison(op):
    def translate(writer, node):
        left, right = writer.same_type(*node.inputs)
        truth = writer.add(op, [left, right], 'bool', max(left.rank, right.rank))
        return writer.cast(truth, 'float32' if left.dtype == 'int64' else left.dtype)

    return translate


def _with_scalar(op, swapped=False, truth=False):
    def translate(writer, node):
        scalar, tensor = node.attrs['scalar'], node.inputs[0]
        if tensor.dtype == 'bool' or (tensor.dtype == 'int64' and scalar != int(scalar)):
            tensor = writer.cast(tensor, 'float32')
        pair = [tensor, writer.constant(scalar, tensor.dtype)][:: -1 if swapped else 1]
        made = writer.add(op, pair, 'bool' if truth else tensor.dtype, tensor.rank)
        return writer.cast(made, 'float32') if truth else made

    return translate


_UNARY = 'relu sqrt tanh sigmoid exp log abs floor ceil cos sin'
for _name in _UNARY.split():
    OPERATORS[_name] = _unary(_name.capitalize())
for _name, _op in {'add': 'Add', 'sub': 'Sub', 'mul': 'Mul', 'div': 'Div'}.items():
    OPERATORS[f'elemwise_{_name}'] = OPERATORS[f'broadcast_{_name}'] = _binary(_op)
OPERATORS['broadcast_maximum'] = _binary('Max')
OPERATORS['broadcast_minimum'] = _binary('Min')
_COMPARED = {'lesser': 'Less', 'lesser_equal': 'LessOrEqual', 'equal': 'Equal'}
_COMPARED['greater'] = 'Greater'
for _name, _op in _COMPARED.items():
    OPERATORS[f'broadcast_{_name}'] = _comparison(_op)
    OPERATORS[f'_{_name}_scalar'] = _with_scalar(_op, truth=True)
_SCALARS = {'plus': 'Add', 'minus': 'Sub', 'mul': 'Mul', 'div': 'Div'}
_SCALARS.update(maximum='Max', power='Pow')
for _name, _op in _SCALARS.items():
    OPERATORS[f'_{_name}_scalar'] = _with_scalar(_op)
for _name, _op in {'rminus': 'Sub', 'rdiv': 'Div', 'rpower': 'Pow'}.items():
    OPERATORS[f'_{_name}_scalar'] = _with_scalar(_op, swapped=True)


@translates('square')
def _square(writer, node):
    return writer.add('Mul', [node.inputs[0]] * 2)


@translates('clip')
def _clip(writer, node):
    (tensor,) = node.inputs
    bounds = [writer.constant(node.attrs[name], tensor.dtype) for name in ('a_min', 'a_max')]
    return writer.add('Clip', [tensor, *bounds])


@translates('Cast')
def _cast(writer, node):
    dtype = node.attrs['dtype']
    return writer.cast(node.inputs[0], 'int64' if dtype.startswith('int') else dtype)


@translates('Activation')
def _activation(writer, node):
    return writer.add(node.attrs['act_type'].capitalize(), node.inputs)  # Tanh or Sigmoid


@translates('LeakyReLU')
def _gelu(writer, node):
    """Compute the exact GELU: x / 2 (1 + erf(x / sqrt(2)))."""
    (tensor,) = node.inputs
    root, one, half = (writer.constant(value, tensor.dtype) for value in (math.sqrt(2), 1, 0.5))
    inner = writer.add('Erf', [writer.add('Div', [tensor, root])])
    return writer.add('Mul', [writer.add('Mul', [tensor, writer.add('Add', [inner, one])]), half])


def _transposed(writer, tensor):
    """Swap the last two axes; a parameter is stored transposed."""
    if tensor.name in writer.arrays:
        array = writer.arrays[tensor.name].swapaxes(-1, -2)
        return writer.initializer(f'{tensor.name}_transposed', array)
    axes = [*range(tensor.rank - 2), tensor.rank - 1, tensor.rank - 2]
    return writer.add('Transpose', [tensor], perm=axes)


@translates('FullyConnected')
def _fully_connected(writer, node):
    tensor, weight, *bias = node.inputs
    if node.attrs.get('flatten', True) and tensor.rank > 2:
        tensor = writer.add('Flatten', [tensor], rank=2, axis=1)
    tensor = writer.cast(tensor, weight.dtype)
    product = writer.add('MatMul', [tensor, _transposed(writer, weight)], rank=tensor.rank)
    return writer.add('Add', [product, *bias], rank=tensor.rank) if bias else product


@translates('dot', '_linalg_gemm2', 'batch_dot')
def _product(writer, node):
    left, right = node.inputs
    right = _transposed(writer, right) if node.attrs.get('transpose_b', False) else right
    return writer.add('MatMul', [left, right], rank=node.ranks[0])


@translates('LayerNorm')
def _layer_norm(writer, node):
    tensor, gamma, beta = node.inputs
    two, epsilon = (writer.constant(value, tensor.dtype) for value in (2, node.attrs['eps']))
    mean = writer.add('ReduceMean', [tensor], axes=[-1], keepdims=1)
    centred = writer.add('Sub', [tensor, mean])
    squared = writer.add('Pow', [centred, two])
    variance = writer.add('ReduceMean', [squared], axes=[-1], keepdims=1)
    deviation = writer.add('Sqrt', [writer.add('Add', [variance, epsilon])])
    normal = writer.add('Div', [centred, deviation])
    return writer.add('Add', [writer.add('Mul', [normal, gamma]), beta])


@translates('softmax')
def _softmax(writer, node):
    return writer.add('Softmax', node.inputs[:1], axis=node.attrs.get('axis', -1))


@translates('sum', 'max')
def _reduced(writer, node):
    """Reduce over an axis; ReduceSum alone takes the axes as an input."""
    tensor, axis = node.inputs[0], node.attrs['axis']
    kept = {'keepdims': int(node.attrs.get('keepdims', False)), 'rank': node.ranks[0]}
    if node.op == 'sum':
        return writer.add('ReduceSum', [tensor, writer.ints(axis)], **kept)
    return writer.add('ReduceMax', [tensor], axes=[axis], **kept)


@translates('Embedding')
def _embedding(writer, node):
    ids, weight = node.inputs
    if ids.name in writer.ranges:
        ids = _positions(writer, ids, writer.arrays[weight.name].shape[0])
    ids = writer.cast(ids, 'int64')  # the runtime refuses ids out of range
    made = writer.add('Gather', [weight, ids], weight.dtype, ids.rank + 1, axis=0)
    writer.same_axes[made.name] = ids
    return made


def _positions(writer, ids, most):
    """Return positions 0, 1, ... (1, length), sliced from all of the table."""
    # PyTorch's exporter writes the positions in the same way, and runtimes recognize an embedding
    # layer by it.
    tensor, axis = writer.ranges[ids.name]
    while tensor.name in writer.same_axes:
        tensor = writer.same_axes[tensor.name]
    sizes = writer.add('Shape', [tensor], 'int64', 1)
    size = writer.add('Gather', [sizes, writer.constant(axis, 'int64')], rank=0, axis=0)
    end = writer.add('Unsqueeze', [size, writer.ints(0)], rank=1)
    every = writer.constant([range(most)], 'int64')
    return writer.add('Slice', [every, writer.ints(0), end, writer.ints(1), writer.ints(1)])


@translates('gather_nd')
def _gather_nd(writer, node):
    tensor, indices = node.inputs
    axes = [*range(1, indices.rank), 0]
    indices = writer.add('Transpose', [writer.cast(indices, 'int64')], perm=axes)
    return writer.add('GatherND', [tensor, indices], rank=node.ranks[0])


_END = 2**31 - 1  # beyond any axis


@translates('slice_axis')
def _slice_axis(writer, node):
    begin, end = node.attrs['begin'], node.attrs['end']
    ends = writer.ints(begin or 0), writer.ints(_END if end is None else end)
    return writer.add('Slice', [*node.inputs, *ends, writer.ints(node.attrs['axis'])])


@translates('slice')
def _slice(writer, node):
    begins, ends = node.attrs['begin'], node.attrs['end']
    steps = node.attrs.get('step') or (1,) * len(begins)
    begins = writer.ints(*(begin or 0 for begin in begins))
    ends = writer.ints(*(_END if end is None else end for end in ends))
    axes = writer.ints(*range(len(steps)))
    return writer.add('Slice', [*node.inputs, begins, ends, axes, writer.ints(*steps)])


@translates('slice_like')
def _slice_like(writer, node):
    tensor, like = node.inputs
    (axis,) = node.attrs['axes']
    end = writer.shape(like, axis, axis + 1)
    return writer.add('Slice', [tensor, writer.ints(0), end, writer.ints(axis)])


@translates('Pad')
def _pad(writer, node):
    (tensor,), width = node.inputs, node.attrs['pad_width']
    value = writer.constant(node.attrs['constant_value'], tensor.dtype)
    return writer.add('Pad', [tensor, writer.ints(*width[::2], *width[1::2]), value])


@translates('tile')
def _tile(writer, node):
    return writer.add('Tile', [*node.inputs, writer.ints(*node.attrs['reps'])])


@translates('take')
def _take(writer, node):
    tensor, places = node.inputs
    places = writer.cast(places, 'int64')
    return writer.add('Gather', [tensor, places], rank=node.ranks[0], axis=node.attrs['axis'])


@translates('reverse')
def _reverse(writer, node):
    parts = [writer.ints(value) for value in (-1, -_END)]
    axes, steps = writer.ints(node.attrs['axis']), writer.ints(-1)
    return writer.add('Slice', [*node.inputs, *parts, axes, steps])
