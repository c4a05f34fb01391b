"""Generation by a decoder, token by token, with keys and values in arrays of a fixed size."""

import mxnet as mx

from ...errors import InputError
from ...layers.attention import BLOCKED
from ...layers.locked import LockedGraph
from ...layers.sequences import vectors_at

__all__ = ['DecoderState', 'DecoderSteps', 'widen', 'write_place']


class _Graph(LockedGraph):
    """A part of the generation that is run as one graph."""

    def __init__(self, task, groups):
        super().__init__()
        self.transformer = task.transformer
        self.position_weight = task.transformer.position_weight
        self._scores = task.token_scores
        self._groups = groups

    def _by_group(self, F, arrays):
        """The layers' arrays, stacked group by group."""
        return [F.stack(*(arrays[layer] for layer in group)) for group in self._groups]


class _Prompt(_Graph):
    """The prompts: scores at their ends, and keys and values by groups of layers."""

    def hybrid_forward(self, F, words, valid_length, position_weight):
        states, presents, _ = self.transformer.encode(F, words, position_weight=position_weight)
        last = vectors_at(F, states[-1], F.cast(valid_length, 'float32') - 1)  # (B, C)
        keys, values = (
            [F.slice_axis(each, axis=0, begin=i, end=i + 1) for each in presents] for i in range(2)
        )
        keys, values = (
            [F.reshape(x, shape=(-3, 0, 0, 0)) for x in each] for each in (keys, values)
        )  # (B, heads, L, size)
        values = [F.swapaxes(value, -1, -2) for value in values]
        return self._scores(F, last), self._by_group(F, keys), self._by_group(F, values)


class _Step(_Graph):
    """One more token a row."""

    def hybrid_forward(self, F, tokens, positions, mask, keys, values, position_weight):
        hidden, keys, values = self.transformer.step(
            F, tokens, positions, mask, keys, values, position_weight
        )
        return self._scores(F, hidden), self._by_group(F, keys), self._by_group(F, values)


class DecoderState:
    """The state of a batch of generations.

    Parameters
    ----------
    keys : list of (layers, batch, heads, capacity, head_size)
        One for each number of heads, which differs between layers after pruning.
    values : list of (layers, batch, heads, head_size, capacity)
    mask : (batch, capacity)
        0 at the places in use, -10000 at the others.
    positions : (batch,)
        The next tokens' positions.
    place : int
        Where the next token's keys and values go, the same in all rows: between a short prompt
        and its continuation there is a gap, which the mask hides.
    """

    def __init__(self, keys, values, mask, positions, place):
        self.keys = keys
        self.values = values
        self.mask = mask
        self.positions = positions
        self.place = place

    @property
    def capacity(self):
        """Number of places."""
        return self.mask.shape[1]

    def select(self, rows):
        """A state whose rows are those of this one.

        Parameters
        ----------
        rows : sequence of int
            Numbers of rows; they may be repeated or left out.

        Returns
        -------
        DecoderState
            It shares nothing with this one.
        """
        index = mx.nd.array(rows, dtype='int32', ctx=self.mask.context)
        return DecoderState(
            [array.take(index, axis=1) for array in self.keys],
            [array.take(index, axis=1) for array in self.values],
            self.mask.take(index),
            self.positions.take(index),
            self.place,
        )


class DecoderSteps:
    """The graphs of a `DecoderLM`'s generation.

    Parameters
    ----------
    task : DecoderLM
    """

    def __init__(self, task):
        base = task.transformer
        by_count = {}
        for layer, attention in enumerate(base.attentions()):
            by_count.setdefault(attention.num_heads, []).append(layer)
        self._groups = list(by_count.values())
        # where each layer's arrays are: (group, number in the group)
        places = {
            layer: (number, i)
            for number, group in enumerate(self._groups)
            for i, layer in enumerate(group)
        }
        self._places = [places[layer] for layer in sorted(places)]
        self._prompt = _Prompt(task, self._groups)
        self._prompt.hybridize(static_alloc=True, static_shape=True)
        self._step = _Step(task, self._groups)
        self._step.hybridize(static_alloc=True, static_shape=True)

    def start(self, words, valid_length, capacity):
        """See `DecoderLM.start`."""
        length = words.shape[1]
        scores, keys, values = self._prompt(words, valid_length)
        keys = [widen(key, 3, capacity) for key in keys]
        values = [widen(value, 4, capacity) for value in values]
        positions = valid_length.astype('float32')
        places = mx.nd.arange(capacity, ctx=words.context).reshape((1, -1))
        mask = BLOCKED * mx.nd.broadcast_greater_equal(places, positions.reshape((-1, 1)))
        mask = mask.astype(keys[0].dtype, copy=False)
        return scores, DecoderState(keys, values, mask, positions, length)

    def step(self, tokens, state):
        """See `DecoderLM.step`."""
        place = state.place
        if place >= state.capacity:
            raise InputError(f'the state holds {state.capacity} tokens a row, and is full')
        keys, values = (
            [arrays[group][i].reshape((-3, 0, 0)) for group, i in self._places]
            for arrays in (state.keys, state.values)
        )
        scores, new_keys, new_values = self._step(
            tokens, state.positions, state.mask, keys, values
        )
        for arrays, new, axis in ((state.keys, new_keys, 3), (state.values, new_values, 4)):
            for array, part in zip(arrays, new):
                write_place(array, part, axis, place)
        write_place(state.mask, mx.nd.zeros_like(state.mask[:, :1]), 1, place)
        state.positions += 1
        state.place += 1
        return scores, state


def widen(array, axis, size):
    """`array`, padded with zeros to `size` along `axis`."""
    shape = list(array.shape)
    shape[axis] = size
    result = mx.nd.zeros(tuple(shape), ctx=array.context, dtype=array.dtype)
    end = [None] * array.ndim
    end[axis] = array.shape[axis]
    mx.nd._internal._slice_assign(result, array, begin=[None] * array.ndim, end=end, out=result)
    return result


def write_place(array, part, axis, place):
    """Write `part`, of size 1 along `axis`, to `place` of `array`."""
    begin, end = [None] * array.ndim, [None] * array.ndim
    begin[axis], end[axis] = place, place + 1
    mx.nd._internal._slice_assign(array, part, begin=begin, end=end, out=array)
