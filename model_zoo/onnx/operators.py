"""MXNet's operators in ONNX's: one function each, ``translate(writer, node) -> Tensor or list``.

MXNet's own translations (``mxnet.onnx``) write sizes of the example into the graph, and ``repeat``
and ``slice_like`` are wrong or missing; these here keep every size open.
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


def count_along(writer, tensor, axis, dtype):
    """Return 0, 1, 2, ... along an axis of `tensor`, as a vector."""
    axis = axis + tensor.rank if axis < 0 else axis
    size = writer.add('Squeeze', [writer.shape(tensor, axis, axis + 1), writer.ints(0)], 'int64', 0)
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
    if node.attrs.get('reverse', False):  # axes count from the right
        if min(codes) < -1:
            raise InputError(f'Reshape {codes} with reverse=True has no translation to ONNX')
        shape = _sizes_of_codes(writer, tensor, codes, tensor.rank - len(codes))
    elif min(codes) < -1:
        shape = _sizes_of_codes(writer, tensor, codes, 0)
    else:
        shape = writer.ints(*codes)  # 0 and -1 mean the same in ONNX
    return writer.reshape(tensor, shape, node.ranks[0])


def _sizes_of_codes(writer, tensor, codes, axis):
    """Return the shape for MXNet's codes: 0 keeps an axis, -1 takes the rest, -2 keeps all others,
    -3 joins two axes, and -4 splits one into the two sizes that follow.
    """
    parts, codes = [], iter(codes)
    for code in codes:
        if code == 0:
            parts.append(writer.shape(tensor, axis, axis + 1))
        elif code == -2:
            parts.append(writer.shape(tensor, axis))
            axis = tensor.rank
        elif code == -3:
            pair = [writer.shape(tensor, start, start + 1) for start in (axis, axis + 1)]
            parts.append(writer.add('Mul', pair))
            axis += 1
        elif code == -4:
            whole, pair = (axis, axis + 1), (next(codes), next(codes))
            for size, factor in (pair, pair[::-1]):
                if size == -1:
                    size = writer.add('Div', [writer.shape(tensor, *whole), writer.ints(factor)])
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
    for side, side_tensor in (('lhs', tensor), ('rhs', like)):
        begin, end = (node.attrs.get(f'{side}_{name}') for name in ('begin', 'end'))
        ends.append((begin or 0, side_tensor.rank if end is None else end))
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
    for axis, like_axis in zip(axes, like_axes):
        sizes[axis] = writer.shape(like, like_axis, like_axis + 1)
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
    parts = [writer.unsqueeze(part, axis) for part in writer.same_type(*node.inputs)]
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


@translates('_copy', 'BlockGrad', 'Dropout', 'identity')
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
        pair = [tensor, writer.constant(scalar, tensor.dtype)]
        made = writer.add(
            op, pair[::-1] if swapped else pair, 'bool' if truth else tensor.dtype, tensor.rank
        )
        return writer.cast(made, 'float32') if truth else made

    return translate


for _name, _op in {
    'exp': 'Exp',
    'sin': 'Sin',
    'cos': 'Cos',
    'relu': 'Relu',
    'sqrt': 'Sqrt',
    'abs': 'Abs',
    'log': 'Log',
    'erf': 'Erf',
    'tanh': 'Tanh',
    'sigmoid': 'Sigmoid',
}.items():
    OPERATORS[_name] = _unary(_op)
for _name, _op in {'add': 'Add', 'sub': 'Sub', 'mul': 'Mul', 'div': 'Div'}.items():
    OPERATORS[f'elemwise_{_name}'] = OPERATORS[f'broadcast_{_name}'] = _binary(_op)
OPERATORS['broadcast_maximum'], OPERATORS['broadcast_minimum'] = _binary('Max'), _binary('Min')
for _name, _op in {
    'greater': 'Greater',
    'greater_equal': 'GreaterOrEqual',
    'lesser': 'Less',
    'lesser_equal': 'LessOrEqual',
    'equal': 'Equal',
}.items():
    OPERATORS[f'broadcast_{_name}'] = _comparison(_op)
    OPERATORS[f'_{_name}_scalar'] = _with_scalar(_op, truth=True)
for _name, _op in {
    'plus': 'Add',
    'minus': 'Sub',
    'mul': 'Mul',
    'div': 'Div',
    'maximum': 'Max',
    'minimum': 'Min',
    'power': 'Pow',
}.items():
    OPERATORS[f'_{_name}_scalar'] = _with_scalar(_op)
OPERATORS['_rminus_scalar'] = _with_scalar('Sub', swapped=True)
OPERATORS['_rdiv_scalar'] = _with_scalar('Div', swapped=True)


@translates('square')
def _square(writer, node):
    return writer.add('Mul', [node.inputs[0]] * 2)


@translates('add_n', 'ElementWiseSum')
def _add_n(writer, node):
    return writer.add('Sum', writer.same_type(*node.inputs))


@translates('clip')
def _clip(writer, node):
    tensor = node.inputs[0]
    bounds = [writer.constant(node.attrs[name], tensor.dtype) for name in ('a_min', 'a_max')]
    return writer.add('Clip', [tensor, *bounds])


@translates('Cast', 'amp_cast')
def _cast(writer, node):
    dtype = node.attrs['dtype']
    return writer.cast(node.inputs[0], 'int64' if dtype.startswith('int') else dtype)


def _filled_like(value):
    def translate(writer, node):
        tensor = node.inputs[0]
        filling = writer.constant(value, tensor.dtype)
        return writer.add('Expand', [filling, writer.shape(tensor)], rank=tensor.rank)

    return translate


OPERATORS['zeros_like'], OPERATORS['ones_like'] = _filled_like(0), _filled_like(1)


@translates('Activation')
def _activation(writer, node):
    names = {'tanh': 'Tanh', 'sigmoid': 'Sigmoid', 'relu': 'Relu', 'softrelu': 'Softplus'}
    return writer.add(names[node.attrs['act_type']], node.inputs)


@translates('LeakyReLU')
def _gelu(writer, node):
    """Compute the exact GELU: x / 2 (1 + erf(x / sqrt(2)))."""
    tensor = node.inputs[0]

    def number(value):
        return writer.constant(value, tensor.dtype)

    inner = writer.add('Erf', [writer.add('Div', [tensor, number(math.sqrt(2))])])
    factor = writer.add('Add', [inner, number(1)])
    return writer.add('Mul', [writer.add('Mul', [tensor, factor]), number(0.5)])


def _transposed(writer, tensor):
    """Swap the last two axes; a parameter is stored transposed."""
    if tensor.name in writer.arrays:
        return writer.initializer(
            f'{tensor.name}_transposed', writer.arrays[tensor.name].swapaxes(-1, -2)
        )
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


@translates('dot', 'batch_dot', '_linalg_gemm2', '_linalg_gemm')
def _product(writer, node):
    left, right, *added = node.inputs
    if node.attrs.get('transpose_a', False):
        left = _transposed(writer, left)
    if node.attrs.get('transpose_b', False):
        right = _transposed(writer, right)
    made = writer.add('MatMul', [left, right], rank=node.ranks[0])
    if node.attrs.get('alpha', 1) != 1:
        made = writer.add('Mul', [made, writer.constant(node.attrs['alpha'], made.dtype)])
    if added:
        beta = node.attrs.get('beta', 1)
        if beta != 1:
            added = [writer.add('Mul', [added[0], writer.constant(beta, made.dtype)])]
        made = writer.add('Add', [made, *added])
    return made


def _by_head(writer, qkv, heads, part):
    """Return query, key or value (part 0, 1, 2), (B, heads, L, size), of the fused ones."""
    shape = writer.concat(writer.shape(qkv, 0, 2), writer.ints(heads, 3, -1))
    apart = writer.reshape(qkv, shape, 5)
    axis = writer.ints(3)
    chosen = writer.add('Slice', [apart, writer.ints(part), writer.ints(part + 1), axis])
    chosen = writer.add('Squeeze', [chosen, axis], rank=4)
    return writer.add('Transpose', [chosen], perm=[1, 2, 0, 3])


@translates('_contrib_interleaved_matmul_selfatt_qk')
def _attention_scores(writer, node):
    qkv, heads = node.inputs[0], node.attrs['heads']
    query, key = (_by_head(writer, qkv, heads, part) for part in (0, 1))
    size = writer.cast(writer.shape(query, 3, 4), query.dtype)
    query = writer.add('Div', [query, writer.add('Sqrt', [size])])
    scores = writer.add('MatMul', [query, _transposed(writer, key)])
    shape = writer.concat(writer.ints(-1), writer.shape(scores, 2))
    return writer.reshape(scores, shape, scores.rank - 1)  # (B * heads, L, L)


@translates('_contrib_interleaved_matmul_selfatt_valatt')
def _attention_context(writer, node):
    (qkv, probabilities), heads = node.inputs, node.attrs['heads']
    value = _by_head(writer, qkv, heads, 2)  # (B, heads, L, size)
    shape = writer.concat(writer.ints(-1, heads), writer.shape(probabilities, 1))
    probabilities = writer.reshape(probabilities, shape, 4)
    context = writer.add('MatMul', [probabilities, value])
    context = writer.add('Transpose', [context], perm=[2, 0, 1, 3])  # (L, B, heads, size)
    return writer.reshape(context, writer.ints(0, 0, -1), 3)


@translates('LayerNorm')
def _layer_norm(writer, node):
    tensor, gamma, beta = node.inputs
    if node.attrs.get('axis', -1) not in (-1, tensor.rank - 1):
        raise InputError('LayerNorm over an axis other than the last has no translation to ONNX')
    mean = writer.add('ReduceMean', [tensor], axes=[-1], keepdims=1)
    centred = writer.add('Sub', [tensor, mean])
    squared = writer.add('Pow', [centred, writer.constant(2, tensor.dtype)])
    variance = writer.add('ReduceMean', [squared], axes=[-1], keepdims=1)
    epsilon = writer.constant(node.attrs['eps'], tensor.dtype)
    deviation = writer.add('Sqrt', [writer.add('Add', [variance, epsilon])])
    normal = writer.add('Div', [centred, deviation])
    return writer.add('Add', [writer.add('Mul', [normal, gamma]), beta])


@translates('softmax')
def _softmax(writer, node):
    return writer.add('Softmax', node.inputs[:1], axis=node.attrs.get('axis', -1))


@translates('log_softmax')
def _log_softmax(writer, node):
    return writer.add('LogSoftmax', node.inputs[:1], axis=node.attrs.get('axis', -1))


def _reduced(op):
    """Return a reduction over one axis or several; ReduceSum alone takes the axes as an input."""

    def translate(writer, node):
        tensor, axis = node.inputs[0], node.attrs.get('axis')
        axes = (axis,) if isinstance(axis, int) else tuple(axis or range(tensor.rank))
        kept = node.attrs.get('keepdims', False)
        rank = tensor.rank if kept else tensor.rank - len(axes)
        if op == 'ReduceSum':
            return writer.add(op, [tensor, writer.ints(*axes)], rank=rank, keepdims=int(kept))
        return writer.add(op, [tensor], rank=rank, axes=list(axes), keepdims=int(kept))

    return translate


for _name, _op in {'sum': 'ReduceSum', 'mean': 'ReduceMean', 'max': 'ReduceMax'}.items():
    OPERATORS[_name] = _reduced(_op)


def _within(writer, ids, rows):
    """Return the ids as int64, clipped to the table's rows as MXNet does."""
    ids = writer.cast(ids, 'int64')
    last = writer.add('Sub', [rows, writer.ints(1)])
    ids = writer.add('Max', [ids, writer.ints(0)], rank=ids.rank)
    return writer.add('Min', [ids, last], rank=ids.rank)


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
    """Return positions 0, 1, ... with the rank of `ids`, sliced from all of the table."""
    # PyTorch's exporter writes the positions (1, length) in the same way, and runtimes recognize
    # an embedding layer by it.
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
    condition, chosen, otherwise = node.inputs
    chosen, otherwise = writer.same_type(chosen, otherwise)
    condition = writer.cast(condition, 'bool')
    rank = max(chosen.rank, otherwise.rank)
    return writer.add('Where', [condition, chosen, otherwise], chosen.dtype, rank)


@translates('gather_nd')
def _gather_nd(writer, node):
    tensor, indices = node.inputs
    axes = [*range(1, indices.rank), 0]
    indices = writer.add('Transpose', [writer.cast(indices, 'int64')], perm=axes)
    return writer.add('GatherND', [tensor, indices], rank=node.ranks[0])


_END = 2**31 - 1  # beyond any axis


@translates('slice')
def _slice(writer, node):
    pairs = enumerate(zip(node.attrs['begin'], node.attrs['end']))
    return _sliced(writer, node, {axis: pair for axis, pair in pairs if pair != (None, None)})


@translates('slice_axis')
def _slice_axis(writer, node):
    return _sliced(writer, node, {node.attrs['axis']: (node.attrs['begin'], node.attrs['end'])})


def _sliced(writer, node, ranges):
    """Return the input from begin to end of some axes; `ranges` has axis -> (begin, end)."""
    begin = writer.ints(*(begin or 0 for begin, _ in ranges.values()))
    end = writer.ints(*(_END if end is None else end for _, end in ranges.values()))
    return writer.add('Slice', [node.inputs[0], begin, end, writer.ints(*ranges)])


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
    positions = count_along(writer, tensor, axis, 'float32')
    positions = writer.unsqueeze(positions, 1 - axis)  # (L, 1) or (1, L)
    inside = writer.add('Less', [positions, writer.unsqueeze(lengths, axis)], 'bool', 2)
    if tensor.rank > 2:
        inside = writer.unsqueeze(inside, *range(2, tensor.rank))
    value = writer.constant(node.attrs.get('value', 0), tensor.dtype)
    return writer.add('Where', [inside, tensor, value], tensor.dtype, tensor.rank)
