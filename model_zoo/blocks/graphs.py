"""A block's graphs: one for each pattern of inputs."""

import mxnet as mx
from mxnet.gluon import HybridBlock

from ..environment import set_meanwhile
from ..layers.graphs import LOCK, with_attributes
from ..mxnet_private import GRAPH, flatten

__all__ = ['BlockGraphs', 'without_graphs', 'without_subgraphs']


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
            key = repr(flatten(inputs, 'input')[1]), trains, *options
            if key != self._graph_key:
                if self._graph_key is not None:
                    self._graphs[self._graph_key] = {name: getattr(self, name) for name in GRAPH}
                for name, value in self._graphs.get(key, GRAPH).items():
                    setattr(self, name, value)
                self._graph_key = key
            return super()._call_cached_op(*inputs)


def without_graphs(block):
    """Open a context in which a block runs operator by operator."""
    parts = []
    block.apply(lambda part: parts.append(part) if part._active else None)
    return with_attributes(parts, _active=False)


def without_subgraphs():
    """Open a context in which executors fuse no operators, as they do on the CPU."""
    return set_meanwhile('MXNET_SUBGRAPH_BACKEND', 'NONE')
