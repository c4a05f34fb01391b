"""A block's graphs: one for each combination of inputs, where Gluon keeps a single one."""

import inspect

import mxnet as mx

from ..errors import InputError
from ..layers.locked import LockedGraph
from ..layers.normalization import trains

__all__ = ['BlockGraphs']

#: what Gluon keeps of a graph
_GRAPH = ('_cached_graph', '_cached_op', '_cached_op_args', '_in_format', '_out_format')
_NO_GRAPH = ((), None, (), None, None)


def _pattern(inputs):
    """The pattern of given inputs: None or 0 for each, and tuples for lists."""
    return tuple(
        None if each is None else _pattern(each) if isinstance(each, (list, tuple)) else 0
        for each in inputs
    )


def _placeholders(pattern):
    """Inputs of a pattern, to trace a graph with."""
    return [
        None if each is None else _placeholders(each) if each else mx.nd.zeros((1,))
        for each in pattern
    ]


class BlockGraphs(LockedGraph):
    """A HybridBlock that keeps one graph for each combination of optional inputs.

    Gluon's HybridBlock has a single graph, and refuses a call with other inputs than the first one.
    The graphs of recorded calls in training mode are kept apart: they have operators with fast
    backward passes (`model_zoo.layers.normalization`).
    """

    #: names of the inputs that are the text; others are labels and the like
    text_inputs = ('words', 'token_types', 'valid_length')
    #: names of attributes that change what a graph returns
    graph_options = ()

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self._graphs = {}  # by key; the one in use is in Gluon's own attributes
        self._graph_key = None  # pattern of the inputs, whether it trains, options

    def _clear_cached_op(self):
        super()._clear_cached_op()
        self._graphs = {}
        self._graph_key = None

    def _chosen(self):
        """Values of the options."""
        return [getattr(self, name) for name in self.graph_options]

    def _use_graph(self, inputs):
        """Let Gluon use the graph for these inputs; it is built at the first call."""
        key = _pattern(inputs), trains(), *self._chosen()
        if key == self._graph_key:
            return
        if self._graph_key is not None:
            self._graphs[self._graph_key] = [getattr(self, name) for name in _GRAPH]
        for name, value in zip(_GRAPH, self._graphs.get(key, _NO_GRAPH)):
            setattr(self, name, value)
        self._graph_key = key

    def _start_graph(self, *inputs):
        self._use_graph(inputs)
        return super()._start_graph(*inputs)

    def export(self, path, epoch=0, remove_amp_cast=False):
        """Gluon's export of the last call's graph; `export.export_block` chooses, and checks it.

        If that call was one of a training, its inputs' graph for inference is exported.

        Parameters
        ----------
        path : str
            Start of the files' names.
        epoch : int
        remove_amp_cast : bool
            Whether to leave out the casts to bfloat16.

        Raises
        ------
        InputError
            If the block hasn't run hybridized, or the last call had other inputs than the text,
            such as labels, which would be inputs of the exported graph.
        """
        if not self._cached_graph:
            raise InputError('there is no graph to export: call hybridize(), and then the block')
        names = list(inspect.signature(self.hybrid_forward).parameters)[1:]  # without F
        given = [name for name, each in zip(names, self._graph_key[0]) if each is not None]
        if not {*given} <= {*self.text_inputs}:
            raise InputError(
                "the last call's graph has more inputs than the text, such as labels: call the "
                'block without them before, or use export.export_block'
            )
        with mx.autograd.pause():
            self._use_inference_graph(_placeholders(self._graph_key[0]))
        super().export(path, epoch, remove_amp_cast)

    def _use_inference_graph(self, inputs):
        self._use_graph(inputs)
        if not self._cached_graph:
            self._build_cache(*inputs)
