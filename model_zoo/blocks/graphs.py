"""A block's graphs: one for each pattern of inputs."""

import contextlib
import inspect
import os

import mxnet as mx
from mxnet.gluon import HybridBlock
from mxnet.gluon.block import _flatten

from ..errors import InputError
from ..layers.graphs import LOCK

__all__ = ['BlockGraphs', 'without_subgraphs']

#: Gluon's attributes of a graph
_GRAPH = ('_cached_graph', '_cached_op', '_cached_op_args', '_in_format', '_out_format')
_NO_GRAPH = ((), None, (), None, None)


def _placeholders(form):
    """Return the inputs of a form as Gluon has it, to trace a graph with."""
    return [
        None if part == -1 else mx.nd.zeros((1,)) if part == 0 else _placeholders(part)
        for part in form
    ]


def _has_arrays(form):
    """Return whether an input has arrays, by its form."""
    return form != -1 and (form == 0 or any(map(_has_arrays, form)))


class BlockGraphs(HybridBlock):
    """A HybridBlock that keeps one graph for each combination of optional inputs.

    Gluon's HybridBlock has a single graph, and refuses calls with other inputs than in the first
    call. The graphs of recorded calls in training mode are kept apart: they have operators with
    fast backward passes (`model_zoo.layers.precision`).
    """

    #: names of the inputs that are the text; others are labels and the like
    text_inputs = ('words', 'token_types', 'valid_length')
    #: names of attributes that change what a graph returns
    graph_options = ()

    def _clear_cached_op(self):  # Gluon calls it for each part, and in `hybridize`
        super()._clear_cached_op()
        # by key; the one in use is in Gluon's attributes. 'watched': see `AttentionBlock`
        self._graphs = {}
        self._graph_key = None  # form of the inputs, whether it trains, options

    def _use_graph(self, inputs):
        """Make Gluon use the graph for these inputs; it is built at the first call."""
        options = (getattr(self, name) for name in self.graph_options)
        trains = mx.autograd.is_recording() and mx.autograd.is_training()
        key = repr(_flatten(inputs, 'input')[1]), trains, *options
        if key == self._graph_key:
            return
        if self._graph_key is not None:
            self._graphs[self._graph_key] = [getattr(self, name) for name in _GRAPH]
        for name, value in zip(_GRAPH, self._graphs.get(key, _NO_GRAPH)):
            setattr(self, name, value)
        self._graph_key = key

    def _call_cached_op(self, *inputs):
        with LOCK:
            self._use_graph(inputs)
            return super()._call_cached_op(*inputs)

    def export(self, path, epoch=0, remove_amp_cast=False):
        """Export the last call's graph as Gluon does; `export.export_block` also checks it.

        After a training's call the graph for inference of the same inputs is exported.
        """
        if self._cached_graph:
            names = list(inspect.signature(self.hybrid_forward).parameters)[1:]  # without F
            given = [name for name, form in zip(names, self._in_format) if _has_arrays(form)]
            if not {*given} <= {*self.text_inputs}:
                raise InputError(
                    "the last call's graph has more inputs than the text, such as labels: call "
                    'the block without them before, or use export.export_block'
                )
            with mx.autograd.pause():
                inputs = _placeholders(self._in_format)
                self._use_graph(inputs)
                if not self._cached_graph:
                    self._build_cache(*inputs)
        super().export(path, epoch, remove_amp_cast)


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
