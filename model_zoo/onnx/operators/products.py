"""Matrix products, attention, normalization, and reductions."""

from ...errors import InputError
from .table import OPERATORS, translates


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
    one, two, *added = node.inputs
    if node.attrs.get('transpose_a', False):
        one = _transposed(writer, one)
    if node.attrs.get('transpose_b', False):
        two = _transposed(writer, two)
    made = writer.add('MatMul', [one, two], rank=node.ranks[0])
    if node.attrs.get('alpha', 1) != 1:
        made = writer.add('Mul', [made, writer.constant(node.attrs['alpha'], made.dtype)])
    if added:
        beta = node.attrs.get('beta', 1)
        if beta != 1:
            added = [writer.add('Mul', [added[0], writer.constant(beta, made.dtype)])]
        made = writer.add('Add', [made, *added])
    return made


def _by_head(writer, qkv, heads, part):
    """Query, key or value (part 0, 1, 2), (B, heads, L, size), of (L, B, heads * 3 * size)."""
    shape = writer.concat(writer.shape(qkv, 0, 2), writer.ints(heads, 3, -1))
    apart = writer.reshape(qkv, shape, 5)
    axis = writer.ints(3)
    one = writer.add('Slice', [apart, writer.ints(part), writer.ints(part + 1), axis])
    one = writer.add('Squeeze', [one, axis], rank=4)
    return writer.add('Transpose', [one], perm=[1, 2, 0, 3])


def _heads_joined(writer, tensor):
    """(batch, heads, ...) as (batch * heads, ...)."""
    rest = writer.shape(tensor, 2)
    return writer.reshape(tensor, writer.concat(writer.ints(-1), rest), tensor.rank - 1)


@translates('_contrib_interleaved_matmul_selfatt_qk')
def _attention_scores(writer, node):
    qkv, heads = node.inputs[0], node.attrs['heads']
    query, key = (_by_head(writer, qkv, heads, part) for part in (0, 1))
    size = writer.cast(writer.shape(query, 3, 4), query.dtype)
    query = writer.add('Div', [query, writer.add('Sqrt', [size])])
    scores = writer.add('MatMul', [query, _transposed(writer, key)])
    return _heads_joined(writer, scores)  # (B * heads, L, L)


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
    """A reduction over one axis or several; ReduceSum alone takes the axes as an input."""

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
