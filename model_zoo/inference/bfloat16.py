"""A block of bfloat16 as a graph whose weights are bfloat16, cast once."""

import json

import mxnet as mx

from ..layers.precision import BFLOAT16

__all__ = ['CastBlock']

_ENDING = '_bfloat16'  # of the names of cast weights


class CastBlock:
    """Computes what a block of bfloat16 does, without casting its weights at each call.

    The block keeps its weights in float32, so that it can be trained; what is changed in them
    later isn't seen here.

    Parameters
    ----------
    block : ZooBlock
        In bfloat16, with its parameters, on the CPU.

    Attributes
    ----------
    symbol : mxnet.symbol.Symbol
        Its inputs are called as those of the block.
    parameters : dict of str to NDArray
        Those of matrix products are bfloat16.
    """

    def __init__(self, block):
        names = block.export_inputs
        inputs = {name: mx.sym.var(name) for name in names}
        with mx.autograd.pause():
            traced = mx.sym.Group(_flatten(block(**inputs)))
        parameters = {name: each.data() for name, each in block.collect_params().items()}
        self.symbol, self.parameters = _cast_once(traced, parameters)
        self._names = names
        self._graph = mx.gluon.SymbolBlock(self.symbol, list(inputs.values()))
        for name, parameter in self._graph.collect_params().items():
            value = self.parameters[name]
            parameter.shape, parameter.dtype = value.shape, value.dtype
            parameter._load_init(value, value.context)
        self._graph.hybridize()

    def __call__(self, words, token_types, valid_length):
        """The block's outputs, those in lists among the others."""
        given = {'words': words, 'token_types': token_types, 'valid_length': valid_length}
        outputs = self._graph(*(given[name] for name in self._names))
        return outputs if isinstance(outputs, (list, tuple)) else [outputs]


def _cast_once(symbol, parameters):
    """The symbol with variables of bfloat16 for casts of parameters, and their values."""
    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    nodes, made = graph['nodes'], {}  # name of a parameter -> number of its cast
    places = {}
    for number, node in enumerate(nodes):
        node['inputs'] = [[places.get(i, i), *rest] for i, *rest in node['inputs']]
        source = nodes[node['inputs'][0][0]]['name'] if node['op'] == 'amp_cast' else None
        if source in parameters and node['attrs']['dtype'] == 'bfloat16':
            places[number] = made.setdefault(source, number)
            node.update(op='null', name=f'{source}{_ENDING}', inputs=[], attrs={})
    graph['arg_nodes'] = [i for i, node in enumerate(nodes) if node['op'] == 'null']
    symbol = mx.sym.load_json(json.dumps(graph))
    values = {**parameters, **{
        f'{name}{_ENDING}': mx.nd.amp_cast(parameters[name], dtype=BFLOAT16) for name in made
    }}  # fmt: skip
    return symbol, {name: values[name] for name in symbol.list_arguments() if name in values}


def _flatten(outputs):
    if not isinstance(outputs, (list, tuple)):
        return [outputs]
    return [each for output in outputs for each in _flatten(output)]
