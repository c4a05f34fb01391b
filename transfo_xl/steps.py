"""Graphs of parts of the model, for generation and for reading long texts."""

import dataclasses
import functools

import mxnet as mx

from model_zoo.blocks.stepwise import State, widen, write_at
from model_zoo.layers.attention import BLOCKED
from model_zoo.layers.graphs import LockedGraph


class _Part(LockedGraph):
    """A graph of a part of the model, which ``compute(F, *inputs)`` runs."""

    def __init__(self, compute, transformer, softmax=None):
        super().__init__()
        self.transformer, self.softmax = transformer, softmax
        self._compute = compute

    def hybrid_forward(self, F, *inputs):
        return self._compute(F, *inputs)

    def collect_params(self, select=None):
        """Return the parameters of the graph alone: Gluon warns of the others."""
        params = super().collect_params(select)
        if not self._cached_graph:
            return params
        result = mx.gluon.ParameterDict(params.prefix)
        used = {*self._cached_graph[1].list_inputs()}
        result.update({name: parameter for name, parameter in params.items() if name in used})
        return result


class _Prompt(LockedGraph):
    """Runs the prompts, and aligns their keys and values on the right.

    Outputs
    -------
    scores : (batch, vocab_size)
    keys : (layers, batch, heads, length, head_size)
    values : (layers, batch, heads, head_size, length)
    first : list of [key, value]
        For each layer the key and the value that all positions of the memory have, (heads,
        head_size) each; they are the same in all rows. Empty lists if there is no memory.
    distance_keys : list of (heads, distances, head_size)
        One per layer.
    """

    def __init__(self, task):
        super().__init__()
        self.transformer = task.transformer
        self.softmax = task.softmax
        self._heads = task.config.n_head

    def hybrid_forward(self, F, words, mems, valid_length, distances):
        x, _, keys, values = self.transformer.encode(F, words, mems, None)
        lengths = F.cast(valid_length, 'float32')
        rows = F.contrib.arange_like(lengths, axis=0)
        ends = F.cast(F.stack(lengths - 1, rows, axis=0), 'int32')
        scores = self.softmax(F.gather_nd(x, ends))
        # a row that is shorter by n takes the values n positions to the left, first the memory's
        length = F.cast(F.sum(F.ones_like(words), axis=1), 'float32')
        steps = F.expand_dims(self.transformer.steps_of(F, x), 0)
        steps = F.broadcast_minus(steps, F.expand_dims(length - lengths, 1))  # (B, L)
        steps = steps + self.transformer.mem_len
        rows = F.broadcast_like(F.expand_dims(rows, 1), steps)
        index = F.cast(F.stack(rows, F.maximum(steps, 0), axis=0), 'int32')
        first = [[] for _ in keys]
        if self.transformer.mem_len > 0:
            first = [[self._first(F, array) for array in pair] for pair in zip(keys, values)]
        keys = F.stack(*(self._move(F, each, index) for each in keys))  # (layers, B, L, heads, C)
        values = F.stack(*(self._move(F, each, index) for each in values))
        keys = F.transpose(keys, axes=(0, 1, 3, 2, 4))
        values = F.transpose(values, axes=(0, 1, 3, 4, 2))
        return scores, keys, values, first, self.transformer.distance_keys(F, distances, x)

    def _first(self, F, array):
        """Return the first position of keys or values (heads * B, K, size) in the first row."""
        array = F.reshape(F.slice_axis(array, axis=1, begin=0, end=1), shape=(self._heads, -1, 0))
        return F.reshape(F.slice_axis(array, axis=1, begin=0, end=1), shape=(0, -1))

    def _move(self, F, array, index):
        """Return the positions `index` (2, B, L) of keys or values (heads * B, K, size)."""
        by_head = F.reshape(array, shape=(-4, self._heads, -1, 0, 0))
        return F.gather_nd(F.transpose(by_head, axes=(1, 2, 0, 3)), index)


def _add_tokens(transformer, softmax, F, *inputs):
    hidden, keys, values = transformer.step(F, *inputs)
    return softmax(hidden), F.stack(*keys), F.stack(*values)


class TransfoXLSteps:
    """The graphs of a `TransfoXLLMHeadModel`'s generation."""

    def __init__(self, task):
        self._config = task.config
        self._mem_len = task.transformer.mem_len
        parts = task.transformer, task.softmax
        self._prompt = _Prompt(task)
        self._step = _Part(functools.partial(_add_tokens, *parts), *parts)
        for block in (self._prompt, self._step):
            block.hybridize(static_alloc=True, static_shape=True)

    def start(self, inputs, capacity):
        """See `TransfoXLLMHeadModel.start`."""
        words, mems, valid_length = (inputs[name] for name in ('words', 'mems', 'valid_length'))
        ctx, length = words.context, words.shape[1]
        size = self._mem_len + capacity
        furthest = size
        if self._config.clamp_len > 0:
            furthest = min(furthest, self._config.clamp_len)
        distances = mx.nd.arange(furthest + 1, ctx=ctx)
        scores, keys, values, *of_layers = self._prompt(words, mems, valid_length, distances)
        missing = (length - valid_length.astype('float32')).reshape((-1, 1))
        numbers = mx.nd.arange(size, ctx=ctx).reshape((1, -1))
        seen = mx.nd.broadcast_greater_equal(numbers, missing)
        seen = seen * (numbers < self._mem_len + length)
        if self._config.same_length:
            seen = seen * (numbers > length)
        layers = [[key, *pair] for pair, key in zip(*of_layers)]
        keys, values = [widen(keys, 3, capacity)], [widen(values, 4, capacity)]
        return scores, State(keys, values, BLOCKED * (1 - seen), length, shared=layers)

    def step(self, tokens, state):
        """See `TransfoXLLMHeadModel.step`."""
        position, (keys,), (values,) = state.position, state.keys, state.values
        furthest = state.shared[0][0].shape[1] - 1
        numbers = mx.nd.arange(state.mask.shape[1], ctx=tokens.context)
        index = (self._mem_len + position - numbers).clip(0, furthest)
        layers = []
        for layer, (distance_key, *first) in enumerate(state.shared):
            # views; in the graph a reshaped input would be copied
            cache = [array[layer].reshape((-3, 0, 0)) for array in (keys, values)]
            layers.append([distance_key, *cache, *first])
        scores, key, value = self._step(tokens, state.mask, index, layers)
        write_at(keys, key, 3, position)
        write_at(values, value, 4, position)
        column = mx.nd.zeros_like(state.mask[:, :1])
        write_at(state.mask, column, 1, self._mem_len + position)
        if self._config.same_length:  # hides what is too far for the next token
            write_at(state.mask, column + BLOCKED, 1, position + 1)
        state.position += 1
        return scores, state


@dataclasses.dataclass
class SegmentState:
    """The state of reading a text: the memory, and the keys of distances."""

    counts: mx.nd.NDArray
    keys: list
    values: list
    distance_keys: list


def _remember(transformer, F, memories):
    """Compute keys and values of a memory of hidden states."""
    pairs = [cell.remember(F, memory) for cell, memory in zip(transformer.layers, memories)]
    return [list(arrays) for arrays in zip(*pairs)]


def _read(transformer, F, *inputs):
    """Compute hidden states (batch * length, d_model) of a segment, and the memory after it."""
    x, counts, keys, values = transformer.read(F, *inputs)
    hidden = F.reshape(F.transpose(x, axes=(1, 0, 2)), shape=(-3, 0))
    return hidden, counts, list(keys), list(values)


class TransfoXLSegments:
    """The graphs of `TransfoXLLMHeadModel.read`."""

    def __init__(self, transformer):
        self._mem_len, self._units = transformer.mem_len, transformer.config.d_model
        remember, read = (functools.partial(f, transformer) for f in (_remember, _read))
        functions = remember, transformer.distance_keys, read
        parts = [_Part(function, transformer) for function in functions]
        for part in parts:
            part.hybridize(static_alloc=True, static_shape=True)
        self._memory, self._distances, self._segment = parts

    def start(self, words, mems):
        """Return the state before a text, with the memory `mems` of `TransfoXLModel`."""
        *memories, counts = mems
        keys, values = self._memory(memories)
        return SegmentState(counts, keys, values, self._distance_keys(words))

    def read(self, words, state):
        """Hidden states of a segment (batch * length, d_model), and the state after it."""
        distances = self._mem_len + words.shape[1] + 1
        known = state.distance_keys
        if known[0].shape[1] < distances:
            known = self._distance_keys(words)
        near = [keys[:, -distances:] for keys in known] if known[0].shape[1] > distances else known
        memory = state.counts, state.keys, state.values
        hidden, counts, keys, values = self._segment(words, *memory, near)
        return hidden, SegmentState(counts, keys, values, known)

    def _distance_keys(self, words):
        furthest, ctx = self._mem_len + words.shape[1], words.context
        distances = mx.nd.arange(furthest, -1, -1, ctx=ctx)
        return self._distances(distances, mx.nd.zeros((1, self._units), ctx))
