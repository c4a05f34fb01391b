"""A batch of texts that grow by one token per row."""

import mxnet as mx
import numpy as np

from ..util.padding import pad_rows

__all__ = ['GrowingText']


class GrowingText:
    """A batch of texts, and the model's scores of each text's next token.

    The model's memory is allocated for the whole length at once. Whenever a text is longer than the
    model's context, the model starts again from the last half of it. That costs as much as a few
    tokens, so it happens only once every half context. What the model sees of a text depends only
    on the text's length, whether prompt or generated.

    Parameters
    ----------
    block : HybridBlock
        With `start`, `step` and `context_length`; see `model_zoo.generation.generate`.
    prompts : list of list of int
    new_tokens : int
        The largest number of tokens that will be added to each row.

    Attributes
    ----------
    scores : (rows, tokens of the vocabulary) mx.nd.NDArray
        Of the next token, before the softmax.
    """

    def __init__(self, block, prompts, new_tokens):
        self._block = block
        self._context = block.context_length
        self._lengths = np.array([len(prompt) for prompt in prompts], 'int32')
        self._starts = np.zeros_like(self._lengths)  # of what the model sees of them
        self._tokens = np.zeros((len(prompts), self._lengths.max() + new_tokens), 'int32')
        for row, prompt in zip(self._tokens, prompts):
            row[: len(prompt)] = prompt
        # the last token needn't be run; multiples of 32, as other shapes need graphs of their own
        self._capacity = -(-(self._tokens.shape[1] - 1) // 32) * 32
        if self._context is not None:
            self._capacity = min(self._capacity, self._context)
        self._ctx = next(iter(block.collect_params().values())).list_ctx()[0]
        self._start()

    def _seen_from(self):
        """Start of the part of each text that the model sees."""
        if self._context is None:
            return self._starts
        stride = self._context + 1 - max(1, self._context // 2)
        return -(-np.maximum(self._lengths - self._context, 0) // stride) * stride

    def _start(self):
        self._starts = self._seen_from()
        lengths = self._lengths - self._starts
        seen = [tokens[i:j] for tokens, i, j in zip(self._tokens, self._starts, self._lengths)]
        self.scores, self._state = self._block.start(
            self._array(pad_rows(seen)), self._array(lengths), self._capacity
        )

    def _array(self, values):
        return mx.nd.array(values, ctx=self._ctx, dtype='int32')

    def select(self, rows):
        """Keep these rows, in this order; rows may be repeated.

        `scores` still belong to the previous rows until the next `append`.
        """
        self._tokens, self._lengths, self._starts = (
            each[rows] for each in (self._tokens, self._lengths, self._starts)
        )
        self._state = self._state.select(rows)

    def append(self, tokens):
        """Add a token (rows,) to each row, and run the model for the next ones' scores."""
        self._tokens[np.arange(len(tokens)), self._lengths] = tokens
        self._lengths += 1
        if (self._seen_from() > self._starts).any():
            self._start()
        else:
            self.scores, self._state = self._block.step(self._array(tokens), self._state)
