"""Language models that read prompts, and then one token after the other."""

import dataclasses
from collections.abc import Sequence

import mxnet as mx

from ..mxnet_private import write_slice
from ..util.arrays import check_array

__all__ = ['Stepwise']


@dataclasses.dataclass
class State:
    """The state of a batch of generations.

    Parameters
    ----------
    keys, values : list of mx.nd.NDArray, shape (layers, batch, ...)
    mask : mx.nd.NDArray, shape (batch, capacity)
    position : int
        Where the next token's keys and values are written.
    positions : mx.nd.NDArray, shape (batch,), optional
        The next tokens' positions.
    shared : sequence
        What all rows have in common.
    """

    keys: Sequence
    values: Sequence
    mask: mx.nd.NDArray
    position: int
    positions: mx.nd.NDArray | None = None
    shared: Sequence = ()

    def select(self, rows):
        """Return a state of these rows."""
        index = mx.nd.array(rows, dtype='int32', ctx=self.mask.context)
        changes = {'mask': self.mask.take(index)}
        if self.positions is not None:
            changes['positions'] = self.positions.take(index)
        for name, arrays in (('keys', self.keys), ('values', self.values)):
            changes[name] = [array.take(index, axis=1) for array in arrays]
        return dataclasses.replace(self, **changes)


class Stepwise:
    """The mixin of language models with `start` and `step`; it goes before their family's block.

    The graphs are made by `steps_class`. Its objects have ``start(inputs, capacity)`` and
    ``step(tokens, state)``.
    """

    steps_class = None
    _steps = None

    def _clear_cached_op(self):
        super()._clear_cached_op()
        self._steps = None  # made of the layers as they were

    def get_steps(self):
        """Return the graphs, an object of `steps_class`."""
        if self._steps is None:
            self._steps = self.steps_class(self)
        return self._steps

    def checked_start(self, words, valid_length=None):
        """Return the inputs of a text's beginning, checked."""
        inputs = {'words': words, 'mems': None, 'valid_length': valid_length}
        check_array('words', words, (-1, -1))
        self.check(inputs)
        return inputs

    def start(self, words, valid_length, capacity):
        """Run the prompts, and allocate memory for their continuations.

        Parameters
        ----------
        words : (batch, length)
            Token ids.
        valid_length : (batch,)
            Lengths of the prompts, at least 1.
        capacity : int
            Maximum number of tokens per row, prompt and continuation together; at most the
            context. `step` doesn't check it.

        Returns
        -------
        scores : (batch, tokens)
            For the token after each prompt.
        state
            For `step`.
        """
        return self.get_steps().start(self.checked_start(words, valid_length), capacity)

    def step(self, tokens, state):
        """Add one token (batch,) to each row, and change `state` in place.

        Returns the scores (batch, tokens) for the next token, and the state.
        """
        return self.get_steps().step(tokens, state)


def widen(array, axis, size):
    """Pad `array` with zeros to `size` along `axis`."""
    shape = list(array.shape)
    shape[axis] = size
    result = mx.nd.zeros(tuple(shape), ctx=array.context, dtype=array.dtype)
    end = [None] * array.ndim
    end[axis] = array.shape[axis]
    write_slice(result, array, [None] * array.ndim, end)
    return result


def write_at(array, part, axis, position):
    """Write `part`, of size 1 along `axis`, to `position` of `array`."""
    begin, end = [None] * array.ndim, [None] * array.ndim
    begin[axis], end[axis] = position, position + 1
    write_slice(array, part, begin, end)
