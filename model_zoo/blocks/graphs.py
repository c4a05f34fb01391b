"""A block's graphs: one for each pattern of inputs, and training with less memory."""

import contextlib
import inspect
import os

import mxnet as mx
from mxnet.gluon import HybridBlock
from mxnet.gluon.block import _flatten, _regroup

from ..errors import InputError
from ..layers.cells import MirroredCell
from ..layers.graphs import LOCK

__all__ = ['BlockGraphs', 'finish_backward', 'without_subgraphs']

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
    _mirrors = False
    _tied = frozenset()  # names of parameters whose gradients another graph adds to

    def _clear_cached_op(self):  # Gluon calls it for each part, and in `hybridize`
        super()._clear_cached_op()
        # by key; the one in use is in Gluon's attributes. 'watched': see `AttentionBlock`
        self._graphs = {}
        self._graph_key = None  # form of the inputs, whether it trains, options
        self._mirrored = {}  # MirroredGraph by combination of inputs

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
            if not (self._mirrors and self._graph_key[1]):
                return super()._call_cached_op(*inputs)
            return self._call_mirrored(inputs)

    def _call_mirrored(self, inputs):
        if self._cached_op is None:
            self._build_cache(*inputs)
        if self._graph_key not in self._mirrored:
            data, outputs = self._cached_graph
            names = [variable.name for variable in data]
            parameters = dict(self.collect_params().items())
            self._mirrored[self._graph_key] = MirroredGraph(outputs, names, parameters, self._tied)
        arrays = [array for array in _flatten(inputs, 'input')[0] if array is not None]
        return _regroup(self._mirrored[self._graph_key].forward(arrays), self._out_format)

    def mirror(self, active=True):
        """Train with less memory: recompute the layers' intermediate results in the backward pass.

        Works for hybridized blocks. Call `model_zoo.blocks.graphs.finish_backward` after each
        ``backward()``, before gradients are read or used.
        """
        cells = []
        self.apply(lambda part: cells.append(part) if isinstance(part, MirroredCell) else None)
        for cell in cells:
            cell.mirrors = active
        self._mirrors = active
        self._clear_cached_op()

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


_pending = []  # passes whose outputs have no gradients yet


class MirroredGraph:
    """A block's graph, run for training with little memory."""

    def __init__(self, symbol, data_names, parameters, tied=()):
        self._symbol = symbol
        self._used = set(symbol.list_arguments())
        self._data_names = data_names
        self._parameters = {
            name: parameter for name, parameter in parameters.items() if name in self._used
        }
        self._tied = [parameter for name, parameter in self._parameters.items() if name in tied]
        self._executors = {}  # by context, shapes and types of the inputs
        self._arrays = {}  # by context: the parameters' arrays that its executors were made with

    def forward(self, arrays):
        ctx = arrays[0].context
        if any(executor._ctx == ctx for executor, *_ in _pending):
            _pending.clear()
            raise InputError(
                'a block that mirrors runs once a backward pass: call '
                'model_zoo.blocks.graphs.finish_backward() after each backward()'
            )
        with mx.autograd.pause(train_mode=True):
            inputs = {
                name: array for name, array in zip(self._data_names, arrays) if name in self._used
            }
            executor = self._executor(ctx, inputs)
            # copies: the executor overwrites its own in the next pass
            outputs = [output.copy() for output in executor.forward(is_train=True, **inputs)]
            for parameter in self._tied:
                if parameter.grad_req == 'write':  # of the last pass
                    parameter.grad(ctx)[:] = 0
        for output in outputs:
            output.attach_grad()
        trained = [p.data(ctx) for p in self._parameters.values() if p.grad_req != 'null']
        _pending.append((executor, outputs, trained))
        return outputs

    def _executor(self, ctx, inputs):
        """Return the executor for the inputs' shapes; all of a context share memory."""
        arrays = [
            array
            for parameter in self._parameters.values()
            for array in (
                parameter.data(ctx),
                parameter.grad(ctx) if parameter.grad_req != 'null' else None,
                parameter.grad_req,
            )
        ]
        known = self._arrays.get(ctx, [])
        if len(known) != len(arrays) or any(one is not two for one, two in zip(known, arrays)):
            self._executors = {key: e for key, e in self._executors.items() if key[0] != ctx}
            self._arrays[ctx] = arrays
        key = (ctx, *((array.shape, array.dtype) for array in inputs.values()))
        if key not in self._executors:
            others = [executor for other, executor in self._executors.items() if other[0] == ctx]
            self._executors[key] = self._bind(ctx, inputs, others[-1] if others else None)
        return self._executors[key]

    def _bind(self, ctx, inputs, shared):
        arguments = {name: array.copy() for name, array in inputs.items()}
        requests, gradients = dict.fromkeys(arguments, 'null'), {}
        for name, parameter in self._parameters.items():
            arguments[name] = parameter.data(ctx)
            is_added = parameter.grad_req == 'write' and parameter in self._tied
            requests[name] = 'add' if is_added else parameter.grad_req
            if parameter.grad_req != 'null':
                gradients[name] = parameter.grad(ctx)
        with without_subgraphs():
            return self._symbol.bind(ctx, arguments, gradients, requests, shared_exec=shared)


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


def finish_backward():
    """Pass the gradients of mirrored blocks' outputs on to the blocks' parameters.

    Call it after each ``backward()``; without mirrored blocks it does nothing.
    """
    while _pending:
        executor, outputs, trained = _pending.pop()
        executor.backward([output.grad for output in outputs])
        for array in trained:
            array._fresh_grad = True  # for Gluon's Trainer
