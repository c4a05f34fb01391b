"""Operators that work on each element."""

import math

from .table import OPERATORS, translates


@translates('_copy', 'BlockGrad', 'Dropout', 'identity')
def _same(writer, node):
    return node.inputs[0]


def _unary(op):
    return lambda writer, node: writer.add(op, node.inputs)


def _binary(op):
    def translate(writer, node):
        one, two = writer.same_type(*node.inputs)
        made = writer.add(op, [one, two], rank=max(one.rank, two.rank))
        if one.name in writer.same_axes and one.rank == made.rank:
            writer.same_axes[made.name] = one
        return made

    return translate


def _comparison(op):
    def translate(writer, node):
        one, two = writer.same_type(*node.inputs)
        found = writer.add(op, [one, two], 'bool', max(one.rank, two.rank))
        return writer.cast(found, 'float32' if one.dtype == 'int64' else one.dtype)

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


for _name, _op in {'exp': 'Exp', 'sin': 'Sin', 'cos': 'Cos', 'relu': 'Relu', 'sqrt': 'Sqrt',
                   'abs': 'Abs', 'log': 'Log', 'erf': 'Erf', 'tanh': 'Tanh',
                   'sigmoid': 'Sigmoid'}.items():  # fmt: skip
    OPERATORS[_name] = _unary(_op)
for _name, _op in {'add': 'Add', 'sub': 'Sub', 'mul': 'Mul', 'div': 'Div'}.items():
    OPERATORS[f'elemwise_{_name}'] = OPERATORS[f'broadcast_{_name}'] = _binary(_op)
OPERATORS['broadcast_maximum'], OPERATORS['broadcast_minimum'] = _binary('Max'), _binary('Min')
for _name, _op in {'greater': 'Greater', 'greater_equal': 'GreaterOrEqual', 'lesser': 'Less',
                   'lesser_equal': 'LessOrEqual', 'equal': 'Equal'}.items():  # fmt: skip
    OPERATORS[f'broadcast_{_name}'] = _comparison(_op)
    OPERATORS[f'_{_name}_scalar'] = _with_scalar(_op, truth=True)
for _name, _op in {'plus': 'Add', 'minus': 'Sub', 'mul': 'Mul', 'div': 'Div', 'maximum': 'Max',
                   'minimum': 'Min', 'power': 'Pow'}.items():  # fmt: skip
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
    """The exact GELU: x / 2 (1 + erf(x / sqrt(2)))."""
    tensor = node.inputs[0]

    def number(value):
        return writer.constant(value, tensor.dtype)

    inner = writer.add('Erf', [writer.add('Div', [tensor, number(math.sqrt(2))])])
    factor = writer.add('Add', [inner, number(1)])
    return writer.add('Mul', [writer.add('Mul', [tensor, factor]), number(0.5)])
