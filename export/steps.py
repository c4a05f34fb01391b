"""Export one step of generation to symbol.json, with keys and values in arrays of a fixed size."""

import warnings

import mxnet as mx
import numpy as np

from model_zoo.blocks.decoder_heads import DecoderLM
from model_zoo.errors import InputError
from model_zoo.layers.attention import BLOCKED
from model_zoo.layers.sequences import without_nan
from model_zoo.util.arrays import flatten
from transfo_xl.heads import TransfoXLLMHeadModel

from . import comparison

TOLERANCE = 1e-4  # of the scores, relative to the largest


def export_steps(block, directory, name, capacity):
    """Write ``<name>-symbol.json`` and ``<name>-0000.params``: one step of generation.

    The graph reads a prompt token by token, and continues it the same way. All rows of a batch are
    at the same position; shorter prompts begin later, with any tokens before.

    ======================  ========================================================================
    input                   what it is
    ======================  ========================================================================
    ``data0``               tokens, (batch,)
    ``data1``               position, (1,): how many steps there were before
    ``data2``               begins, (batch,): each row's first position
    ``data3``, ``data4``    keys (batch, heads, capacity, head size) and values (batch, heads, head
                            size, capacity) of the first layer, zeros in the first step
    ``data5``, ...          keys and values of the further layers
    ======================  ========================================================================

    The outputs are the scores of the next tokens, (batch, vocabulary), and the keys and values for
    the next step, in the inputs' order and shapes. Don't hybridize the loaded graph with
    ``static_alloc``: its outputs, which are the next inputs, would then be overwritten. Returns
    the paths.

    Parameters
    ----------
    block : DecoderLM or TransfoXLLMHeadModel
        In float32, with its parameters. Transformer-XL generates after the memory of `init_mems`.
    capacity : int
        Maximum number of tokens per row.

    Raises
    ------
    InputError
        If the block isn't a language model in float32, or its context is shorter.
    ExportError
        If the reloaded files don't give the block's scores.
    """
    comparison.check_exportable(block, name, ['float32'])
    if not isinstance(block, (DecoderLM, TransfoXLLMHeadModel)):
        raise InputError(f'{type(block).__name__} is not a language model: only these generate')
    if not 1 <= capacity <= (block.context_length or capacity):
        raise InputError(f'capacity is {capacity}: the model takes 1 to {block.context_length}')
    step = step_of(block, capacity)
    return comparison.write_symbol(
        directory, name, step.symbol(), step.parameters(), lambda *paths: _compare(step, *paths)
    )


def step_of(block, capacity):
    """The step of a language model."""
    step_class = _TransfoXLStep if isinstance(block, TransfoXLLMHeadModel) else _DecoderStep
    return step_class(block, capacity)


class _Step:
    """One step of a block: its graph, the parameters, and shapes of the caches."""

    first = 0  # positions of the mask before the caches' positions

    def __init__(self, block, capacity):
        self.block, self.capacity = block, capacity

    def caches(self, rows):
        """Empty keys and values of all layers, in the graph's order."""
        shapes = [
            shape
            for heads, size in self.heads()
            for shape in ((rows, heads, self.capacity, size), (rows, heads, size, self.capacity))
        ]
        return [mx.nd.zeros(shape) for shape in shapes]

    def symbol(self):
        layers = self.heads()
        names = [f'data{number}' for number in range(3 + 2 * len(layers))]
        tokens, position, begins, *caches = map(mx.sym.var, names)
        position = mx.sym.clip(without_nan(mx.sym, position), 0, self.capacity - 1)
        begins = mx.sym.clip(without_nan(mx.sym, begins), 0, self.capacity)
        positions = mx.sym.arange(self.first + self.capacity)  # of memory and caches
        seen = mx.sym.broadcast_lesser(positions, position + self.first)
        seen = mx.sym.broadcast_mul(
            mx.sym.expand_dims(seen * self.near(positions, position), 0),
            mx.sym.broadcast_greater_equal(
                mx.sym.expand_dims(positions, 0), mx.sym.expand_dims(begins, 1)
            ),
        )  # (B, first + capacity)
        flat = [mx.sym.reshape(cache, shape=(-3, 0, 0)) for cache in caches]
        scores, keys, values = self.run(
            tokens, position, begins, positions, BLOCKED * (1 - seen), flat[::2], flat[1::2]
        )
        here = mx.sym.broadcast_equal(mx.sym.arange(self.capacity), position)  # (capacity,)
        made = []
        for layer, pair in enumerate(zip(keys, values)):
            for part, (new, shape) in enumerate(zip(pair, ((1, 1, -1, 1), (1, 1, 1, -1)))):
                cache = caches[2 * layer + part]
                change = mx.sym.broadcast_sub(new, cache)
                change = mx.sym.broadcast_mul(change, mx.sym.reshape(here, shape=shape))
                made.append(cache + change)
        return mx.sym.Group([scores, *made])

    def near(self, positions, position):
        """1 where the model doesn't look too far back."""
        return mx.sym.ones_like(positions)

    def parameters(self):
        return comparison.parameters_of(self.block)


class _DecoderStep(_Step):
    def heads(self):
        config = self.block.config
        return [(len(config.kept_heads(i)), config.head_size) for i in range(config.num_layers)]

    def run(self, tokens, position, begins, positions, mask, keys, values):
        base = self.block.transformer
        of_rows = mx.sym.maximum(mx.sym.broadcast_sub(position, begins), 0)
        hidden, keys, values = base.step(
            mx.sym, tokens, of_rows, mask, keys, values, base.position_weight.var()
        )
        return self.block.token_scores(mx.sym, hidden), keys, values


class _TransfoXLStep(_Step):
    def __init__(self, block, capacity):
        super().__init__(block, capacity)
        self.first = block.transformer.mem_len
        clamp = block.config.clamp_len
        size = self.first + capacity
        self.furthest = min(size, clamp) if clamp > 0 else size
        words = mx.nd.zeros((1, 1))
        with comparison.plain_calls(block):
            # a state that holds what is the same in each step
            _, state = block.start(words, mx.nd.ones((1,)), 1)
            like = mx.nd.zeros((1, block.config.d_model))
            keys = block.transformer.distance_keys(mx.nd, mx.nd.arange(self.furthest + 1), like)
        self.constants = [
            {'distance_key': key, **dict(zip(('first_key', 'first_value'), first))}
            for key, (_, *first) in zip(keys, state.layers)
        ]

    def heads(self):
        config = self.block.config
        return [(config.n_head, config.d_head)] * config.n_layer

    def near(self, positions, position):
        if not self.block.config.same_length:
            return super().near(positions, position)
        return mx.sym.broadcast_greater(positions, position)

    def run(self, tokens, position, begins, positions, mask, keys, values):
        constants = [
            [mx.sym.var(f'step_{name}_{layer}') for name in of_layer]
            for layer, of_layer in enumerate(self.constants)
        ]
        index = mx.sym.clip(
            mx.sym.broadcast_sub(position + self.first, positions), 0, self.furthest
        )
        layers = [
            [distance, key, value, *first]
            for (distance, *first), key, value in zip(constants, keys, values)
        ]
        hidden, keys, values = self.block.transformer.step(mx.sym, tokens, mask, index, layers)
        if self.first:  # before a row begins, its positions are the memory's
            began = mx.sym.broadcast_lesser_equal(begins, position)  # (B,)
            began = mx.sym.reshape(began, shape=(-1, 1, 1, 1))
            firsts = zip(*(first for _, *first in constants))
            shapes = (1, 0, 1, -1), (1, 0, -1, 1)
            keys, values = (
                [
                    mx.sym.broadcast_add(
                        mx.sym.broadcast_mul(new, began),
                        mx.sym.broadcast_mul(
                            mx.sym.expand_dims(
                                mx.sym.expand_dims(fixed, 1 if shape[-1] == -1 else 2), 0
                            ),
                            1 - began,
                        ),
                    )
                    for new, fixed in zip(arrays, of_part)
                ]
                for arrays, of_part, shape in zip((keys, values), firsts, shapes)
            )
        return self.block.softmax(hidden), keys, values

    def parameters(self):
        constants = {
            f'step_{name}_{layer}': array.asnumpy()
            for layer, of_layer in enumerate(self.constants)
            for name, array in of_layer.items()
        }
        return {**super().parameters(), **constants}


def _compare(step, symbol_path, params_path):
    """Raise ExportError unless the files give the block's scores for whole texts."""
    block, random = step.block, np.random.RandomState(0)
    rows, length = 3, min(step.capacity, 6)
    words = comparison.make_batch(block, ['words'], rows, length, 'float32', random)['words']
    begins = np.minimum([0, 2, 1], length - 1)
    wanted = []
    with comparison.plain_calls(block):
        for row, begin in enumerate(begins):
            text = words[row : row + 1, int(begin) :]
            wanted.append(flatten(block(text))[0].asnumpy()[0])
    caches = step.caches(rows)
    names = [f'data{number}' for number in range(3 + len(caches))]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # on the inputs' types, which the graph leaves open
        loaded = mx.gluon.SymbolBlock.imports(symbol_path, names, params_path)
        for position in range(length):
            scores, *caches = loaded(
                words[:, position], mx.nd.array([position]), mx.nd.array(begins), *caches
            )
            scores = scores.asnumpy()
            for row, begin in enumerate(begins):
                if position < begin:
                    continue
                expected = wanted[row][position - begin]
                difference = np.abs(scores[row] - expected).max()
                if not difference <= TOLERANCE * max(1, np.abs(expected).max()):  # NaN is not
                    raise comparison.ExportError(
                        f'the exported step differs from the block by {difference:.2g} at position '
                        f'{position}; nothing was written'
                    )
