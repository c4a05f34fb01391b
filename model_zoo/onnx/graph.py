"""A symbol's graph as an ONNX graph, and as files."""

import ast
import collections
import contextlib
import copy
import hashlib
import itertools
import json
import logging
import os
import tempfile
from typing import NamedTuple

import numpy as np

from ..blocks.graphs import without_subgraphs
from ..errors import InputError, reporting

#: weights from this number of bytes on get a separate file: one file ends at 2 GB
EXTERNAL_FROM = 2**31 - 2**24
_FUSED = 'com.microsoft'  # the domain of ONNX Runtime's own operators
_SMALL = 1024  # bytes of a weight that stays in the graph's file


def save(model, path):
    """Write a model, large weights to ``<path>_data``; returns the paths."""
    import onnx

    external = weight_bytes(model) >= EXTERNAL_FROM
    model = copy.deepcopy(model) if external else model  # which would lose its weights
    location = f'{os.path.basename(path)}_data'
    with reporting(f'cannot write {path!r}'):
        options = {'location': location, 'size_threshold': _SMALL}
        onnx.save_model(model, path, save_as_external_data=external, **options)
    if not external:
        return [path]
    onnx.checker.check_model(path)  # `to_onnx` couldn't
    return [path, f'{path}_data']


def weight_bytes(model):
    """Return the size of a model's weights."""
    return sum(len(array.raw_data) for array in model.graph.initializer)


def fuse(model, num_heads, hidden_size):
    """Join the operators of a BERT's layers with ONNX Runtime's optimizer."""
    # The attention mask stays as it is, so that padding may be anywhere.
    from onnx import helper
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    fusion = FusionOptions('bert')
    fusion.use_raw_attention_mask(True)
    sizes = {'num_heads': num_heads, 'hidden_size': hidden_size}
    options = {**sizes, 'optimization_options': fusion, 'opt_level': 0}
    with quiet(), tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.onnx')
        save(model, path)
        model = optimizer.optimize_model(path, 'bert', **options).model
    _share_weights(model)
    if all(opset.domain != _FUSED for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_FUSED, 1))
    return model


def _share_weights(model):
    """Store equal weights once, such as the joined ones of layers that share parameters."""
    from onnx import numpy_helper

    first, same, graph = {}, {}, model.graph
    for weight in graph.initializer:
        array = np.ascontiguousarray(numpy_helper.to_array(weight))
        content = hashlib.blake2b(array).digest()
        same[weight.name] = first.setdefault((array.dtype, *weight.dims, content), weight)
    for node in graph.node:
        node.input[:] = [same[name].name if name in same else name for name in node.input]
    kept = list(first.values())
    del graph.initializer[:]
    graph.initializer.extend(kept)


def transpose_shared(model):
    """Store the matrices that several layers share as dense layers have them, (outputs, inputs).

    OpenVINO turns each matrix of a product around for itself, and would keep a copy for each layer.
    """
    from onnx import helper, numpy_helper

    nodes, initializers = model.graph.node, model.graph.initializer
    products = [node for node in nodes if node.op_type in ('MatMul', 'Attention')]
    uses = collections.Counter(node.input[1] for node in products)
    shared = [each for each in initializers if uses[each.name] > 1 and len(each.dims) == 2]
    for number, weight in enumerate(shared):
        array = np.ascontiguousarray(numpy_helper.to_array(weight).T)
        name = f'{weight.name}_shared'
        nodes.insert(number, helper.make_node('Transpose', [name], [weight.name], name=name))
        weight.CopyFrom(numpy_helper.from_array(array, name))


@contextlib.contextmanager
def quiet():
    """Silence the messages of ONNX Runtime's tools about each operator."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


#: version of ONNX's operators
OPSET = 13
_IR_VERSION = 7  # released with this opset, so that older runtimes read the files, too


class Tensor(NamedTuple):
    """A value in the ONNX graph."""

    name: str
    dtype: str
    rank: int


class Node(NamedTuple):
    """A node of the symbol's graph."""

    op: str
    attrs: dict
    inputs: list
    ranks: list


class Writer:
    """Collects the nodes and constants of an ONNX graph."""

    def __init__(self):
        self.nodes = []
        self.arrays = {}  #: name of a constant or parameter -> its value
        #: name of 0, 1, 2, ... -> the tensor and the axis that they count
        self.ranges = {}
        #: name of a tensor -> another one with the same sizes of its first axes
        self.same_axes = {}
        self._constants, self._numbers = {}, itertools.count(1)

    def add(self, op, inputs, dtype=None, rank=None, outputs=1, **attrs):
        """Add a node; `inputs` are tensors, or None for one that is left out."""
        from onnx import helper

        first = next(tensor for tensor in inputs if tensor is not None)
        dtype, rank = dtype or first.dtype, first.rank if rank is None else rank
        made = [Tensor(f'{op}_{next(self._numbers)}', dtype, rank) for _ in range(outputs)]
        names = ['' if tensor is None else tensor.name for tensor in inputs]
        new = [tensor.name for tensor in made]
        self.nodes.append(helper.make_node(op, names, new, new[0], **attrs))
        return made[0] if outputs == 1 else made

    def constant(self, value, dtype):
        """Add a constant; equal ones are written once."""
        array = np.array(value, dtype)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.initializer(f'constant_{len(self._constants)}', array)
        return self._constants[key]

    def initializer(self, name, array):
        """Add a parameter of this name."""
        self.arrays[name] = array
        return Tensor(name, str(array.dtype), array.ndim)

    def ints(self, *values):
        """Return a constant vector of int64, as shapes and axes are."""
        return self.constant(values, 'int64')

    def cast(self, tensor, dtype):
        """Cast `tensor` to a type, if it has another."""
        from onnx import helper

        if tensor.dtype == dtype:
            return tensor
        number = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        return self.add('Cast', [tensor], dtype, to=number)

    def same_type(self, *tensors):
        """Cast all to the widest of their types; a truth value counts as a number."""
        order = ('int64', 'float16', 'float32', 'float64')
        types = [tensor.dtype for tensor in tensors if tensor.dtype != 'bool']
        dtype = max(types, key=order.index, default='float32')
        return [self.cast(tensor, dtype) for tensor in tensors]

    def shape(self, tensor, begin=0, end=None):
        """Return the sizes of the axes from `begin` to `end`, a vector of int64."""
        sizes = self.add('Shape', [tensor], 'int64', 1)
        if begin == 0 and end is None:
            return sizes
        stop = tensor.rank if end is None else end
        return self.add('Slice', [sizes, self.ints(begin), self.ints(stop)])

    def concat(self, *vectors):
        """Concatenate vectors of int64."""
        return vectors[0] if len(vectors) == 1 else self.add('Concat', vectors, axis=0)

    def reshape(self, tensor, shape, rank):
        """Reshape `tensor` to the shape in a vector of int64."""
        return self.add('Reshape', [tensor, shape], rank=rank)

    def unsqueeze(self, tensor, *axes):
        """Insert axes of size 1."""
        return self.add('Unsqueeze', [tensor, self.ints(*axes)], rank=tensor.rank + len(axes))


def _parse(value):
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def to_onnx(symbol, params, inputs, outputs):
    """Translate a symbol and its parameters to an ONNX model.

    Axes of inputs and outputs are dynamic where they are named. Nothing of the graph depends on
    the sizes of an example.

    Parameters
    ----------
    inputs : dict of str to (str, str, tuple)
        Name of the symbol's input -> name in ONNX, type, and axes: names of the dynamic ones and
        sizes of the others. ``'a + b'`` is as long as the axes ``'a'`` and ``'b'`` together.
    outputs : dict of str to tuple
        Name in ONNX -> axes, in the order of the symbol's outputs.
    """
    from onnx import checker, helper, numpy_helper

    from .operators import OPERATORS

    symbol = _joined(symbol)
    writer, values, graph = Writer(), {}, json.loads(symbol.tojson())
    nodes, ranks, data = graph['nodes'], _ranks(symbol, params, inputs), {}
    folded = _folded(symbol, nodes, graph['heads'], params)
    for number, node in enumerate(nodes):
        name, op = node['name'], node['op']
        given = [values[i, k] for i, k, *_ in node['inputs'] if (i, k) in values]
        made = []  # nothing of what only folded nodes use
        if number in folded:
            names = [name if op == 'null' else f'{name}_{k}' for k in range(len(folded[number]))]
            made = map(writer.initializer, names, folded[number])
        elif name in inputs:
            theirs, dtype, axes = inputs[name]
            made = [Tensor(theirs, dtype, len(axes))]
            data[name] = _value_info(made[0], axes)
        elif given:
            if op not in OPERATORS:
                raise InputError(f'the operator {op!r} of node {name!r} has no translation to ONNX')
            attrs = {key: _parse(value) for key, value in node.get('attrs', {}).items()}
            made = OPERATORS[op](writer, Node(op, attrs, given, ranks[name]))
        made = [made] if isinstance(made, Tensor) else made
        values.update(((number, output), tensor) for output, tensor in enumerate(made))
    results = []
    for (i, k, *_), (name, axes) in zip(graph['heads'], outputs.items()):
        tensor = writer.add('Identity', [values[i, k]])
        writer.nodes[-1].output[0] = name
        results.append(_value_info(tensor._replace(name=name), axes))
    used = {name for node in writer.nodes for name in node.input}
    arrays = {n: np.array(each, order='C') for n, each in writer.arrays.items() if n in used}
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    sources = [data[name] for name in inputs if name in data]
    model = helper.make_model(
        helper.make_graph(writer.nodes, 'gluon_transformer_zoo', sources, results, weights),
        producer_name='gluon-transformer-zoo',
        opset_imports=[helper.make_opsetid('', OPSET)],
        ir_version=_IR_VERSION,
    )
    if weight_bytes(model) < EXTERNAL_FROM:  # a larger one is checked once it is saved
        checker.check_model(model, full_check=True)
    return model


def _value_info(tensor, axes):
    from onnx import helper

    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
    return helper.make_tensor_value_info(tensor.name, dtype, axes or [None] * tensor.rank)


def _joined(symbol):
    """Join nodes that compute the same, and give each of the others a unique name."""
    # A layer that computes several times gives its parameters and names to the graph each time.
    import mxnet as mx

    graph = json.loads(symbol.tojson())
    first, same, names = {}, [], set()  # same: the number of a node -> of the first one like it
    for number, node in enumerate(graph['nodes']):
        node['inputs'] = [[same[i], *rest] for i, *rest in node['inputs']]
        about = node['name'] if node['op'] == 'null' else node['inputs']
        key = json.dumps([node['op'], node.get('attrs'), about], sort_keys=True)
        same.append(first.setdefault(key, number))
        node['name'] += f'_{number}' if node['name'] in names else ''
        names.add(node['name'])
    graph['heads'] = [[same[i], *rest] for i, *rest in graph['heads']]
    return mx.sym.load_json(json.dumps(graph))


def _folded(symbol, nodes, heads, params):
    """Compute the nodes that depend on parameters alone: their numbers -> values that are used."""
    # Only values that another node or the result uses. So a weight that the graph slices or
    # transposes first, such as the fused one of an attention, is stored in its final form.
    import mxnet as mx

    constant = set()
    for number, node in enumerate(nodes):
        inputs = [i for i, *_ in node['inputs']]
        if node['name'] in params or (inputs and constant.issuperset(inputs)):
            constant.add(number)
    used = {i for i, *_ in heads if i in constant}
    for number, node in enumerate(nodes):
        if number not in constant:
            used.update(i for i, *_ in node['inputs'] if i in constant)
    names = {number: nodes[number]['name'] for number in used}
    result = {number: [params[name]] for number, name in names.items() if name in params}
    made = {name: number for number, name in names.items() if number not in result}
    outputs = [node for node in symbol.get_internals() if node.name in made]
    if outputs:
        group = mx.sym.Group(outputs)
        given = ((name, params[name]) for name in group.list_arguments())
        arrays = {name: mx.nd.array(array, dtype=array.dtype) for name, array in given}
        with without_subgraphs(), mx.autograd.pause():
            values = group.eval(mx.cpu(), **arrays)
        for output, value in zip(outputs, values):
            result.setdefault(made[output.name], []).append(value.asnumpy())
    return {**dict.fromkeys(constant, ()), **result}


def _ranks(symbol, params, inputs):
    """Return, by small sizes, each node's name -> the number of axes of each of its outputs."""
    sizes = {}
    shapes = {name: array.shape for name, array in params.items()}

    def size_of(axis):
        parts = axis.split(' + ') if isinstance(axis, str) else ()
        return sum(sizes.setdefault(part, 2 + len(sizes)) for part in parts) if parts else axis

    shapes.update((name, tuple(map(size_of, axes))) for name, (_, _, axes) in inputs.items())
    internals = symbol.get_internals()
    known = set(internals.list_inputs())
    given = {name: shape for name, shape in shapes.items() if name in known}
    _, out_shapes, _ = internals.infer_shape(**given)
    result = {}
    for node, shape in zip(internals, out_shapes):
        result.setdefault(node.name, []).append(len(shape))
    return result
