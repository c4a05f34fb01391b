"""A block's graphs: one for each pattern of inputs."""

import contextlib
import os

import mxnet as mx
from mxnet.gluon import HybridBlock
from mxnet.gluon.block import _flatten

from ..layers.graphs import LOCK

__all__ = ['BlockGraphs', 'without_graphs', 'without_subgraphs']

#: Gluon's attributes of a graph
_GRAPH = ('_cached_graph', '_cached_op', '_cached_op_args', '_in_format', '_out_format')
_NO_GRAPH = ((), None, (), None, None)


class BlockGraphs(HybridBlock):
    """A HybridBlock that keeps one graph for each combination of optional inputs.

    Gluon's HybridBlock has a single graph, and refuses calls with other inputs than in the first
    call. The graphs of recorded calls in training mode are kept apart: they have operators with
    fast backward passes (`model_zoo.layers.precision`).
    """

    #: names of attributes that change what a graph returns
    graph_options = ()

    def _clear_cached_op(self):  # Gluon calls it for each part, and in `hybridize`
        super()._clear_cached_op()
        self._graphs = {}  # by key; the one in use is in Gluon's attributes
        self._graph_key = None  # form of the inputs, whether it trains, options

    def _call_cached_op(self, *inputs):
        with LOCK:
            options = (getattr(self, name) for name in self.graph_options)
            trains = mx.autograd.is_recording() and mx.autograd.is_training()
            key = repr(_flatten(inputs, 'input')[1]), trains, *options
            if key != self._graph_key:
                if self._graph_key is not None:
                    self._graphs[self._graph_key] = [getattr(self, name) for name in _GRAPH]
                for name, value in zip(_GRAPH, self._graphs.get(key, _NO_GRAPH)):
                    setattr(self, name, value)
                self._graph_key = key
            return super()._call_cached_op(*inputs)


@contextlib.contextmanager
def without_graphs(block):
    """Open a context in which a block runs operator by operator."""
    parts = []
    block.apply(lambda part: parts.append(part) if part._active else None)
    for part in parts:
        part._active = False
    try:
        yield
    finally:
        for part in parts:
            part._active = True


@contextlib.contextmanager
def without_subgraphs():
    """Open a context in which executors fuse no operators, as they do on the CPU."""
    name = 'MXNET_SUBGRAPH_BACKEND'
    before = os.environ.get(name)
    os.environ[name] = 'NONE'
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
