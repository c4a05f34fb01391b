"""Engines run models: they take a batch as NumPy arrays and return the model's outputs."""

import abc
import json
import threading

import mxnet as mx
import numpy as np

from ..layers.precision import BFLOAT16
from ..util.arrays import flatten

_ENDING = '_bfloat16'  # ends the names of cast weights


class Engine(abc.ABC):
    """Runs one model. An engine may be used from several threads."""

    name = None
    #: whether it computes one vector for a text, like the state of its only token
    pools = False

    def __init__(self):
        self.lock = threading.Lock()

    @abc.abstractmethod
    def run(self, words, token_types, valid_length):
        """Compute the outputs of a batch.

        Parameters
        ----------
        words, token_types : numpy.ndarray, shape (batch, length), int32
            Token ids, padded on the right, and token types. A model without token types ignores
            them.
        valid_length : numpy.ndarray, shape (batch,), int32

        Returns
        -------
        list of numpy.ndarray, float32
            Of the same batch size.
        """


class MXNetEngine(Engine):
    """Runs a Gluon block, cast to a precision. In bfloat16 the first call casts the weights once.

    Calls from several threads run one after the other: MXNet uses all processors for each.
    """

    name = 'mxnet'

    def __init__(self, block, ctx=None, precision=None):
        super().__init__()
        self.block = self.language_model = block  # for `model_zoo.generation.generate`
        self._ctx = ctx or mx.cpu()
        if precision not in (None, block.precision):
            block.cast(precision)
        self._cast = None  # the graph of a block in bfloat16
        # without static_alloc, which plans the memory anew for each shape of a batch
        block.hybridize()

    def run(self, words, token_types, valid_length):
        arrays = {'words': words, 'token_types': token_types}
        arrays['valid_length'] = valid_length.astype(np.float32)
        if self.block.word_axes == 3:  # each choice is a separate text
            arrays = {name: np.expand_dims(array, 1) for name, array in arrays.items()}
        with self.lock:
            for name, array in arrays.items():
                arrays[name] = mx.nd.array(array, self._ctx, array.dtype)
            if self.block.precision == 'bfloat16':
                self._cast = self._cast or cast_graph(self.block)
                outputs = self._cast(*(arrays[name] for name in self.block.export_inputs))
            else:
                outputs = self.block(**arrays)
            return [array.astype('float32', copy=False).asnumpy() for array in flatten(outputs)]


def cast_graph(block):
    """Return a graph that computes what a block of bfloat16 does; its weights are cast once.

    The block keeps its weights in float32, so that it can be trained. Later changes of them aren't
    seen here.
    """
    inputs = [mx.sym.var(name) for name in block.export_inputs]
    with mx.autograd.pause():
        traced = mx.sym.Group(flatten(block(**dict(zip(block.export_inputs, inputs)))))
    parameters = {name: parameter.data() for name, parameter in block.collect_params().items()}
    symbol, parameters = _cast_once(traced, parameters)
    graph = mx.gluon.SymbolBlock(symbol, inputs)
    for name, parameter in graph.collect_params().items():
        value = parameters[name]
        parameter.shape, parameter.dtype = value.shape, value.dtype
        parameter._load_init(value, value.context)
    graph.hybridize()
    return graph


def _cast_once(symbol, parameters):
    """The symbol, with variables of bfloat16 instead of casts of parameters, and their values."""
    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    nodes, made = graph['nodes'], {}  # name of a parameter -> number of its cast
    replaced = {}
    for number, node in enumerate(nodes):
        node['inputs'] = [[replaced.get(i, i), *rest] for i, *rest in node['inputs']]
        source = nodes[node['inputs'][0][0]]['name'] if node['op'] == 'amp_cast' else None
        if source in parameters and node['attrs']['dtype'] == 'bfloat16':
            replaced[number] = made.setdefault(source, number)
            node.update(op='null', name=f'{source}{_ENDING}', inputs=[], attrs={})
    graph['arg_nodes'] = [i for i, node in enumerate(nodes) if node['op'] == 'null']
    symbol = mx.sym.load_json(json.dumps(graph))
    halves = {name: mx.nd.amp_cast(parameters[name], dtype=BFLOAT16) for name in made}
    values = {**parameters, **{f'{name}{_ENDING}': half for name, half in halves.items()}}
    return symbol, {name: values[name] for name in symbol.list_arguments() if name in values}
