"""A text's tokens as batches for language models: blocks of it, or streams that are read on."""

import itertools
import math
from typing import NamedTuple

import mxnet as mx
import numpy as np

from ...errors import InputError
from .iterators import LMOrderedIterator

__all__ = ['BlockBatch', 'BlockLoader', 'StreamBatch', 'StreamLoader']


class BlockBatch(NamedTuple):
    """A batch on the loader's context.

    Parameters
    ----------
    words : NDArray, shape (batch, length), int32
    valid_length : NDArray, shape (batch,), int32
    count : int
        Tokens that are predicted: all but the first of each row.
    """

    words: mx.nd.NDArray
    valid_length: mx.nd.NDArray
    count: int


class StreamBatch(NamedTuple):
    """A batch on the loader's context; row r goes on where row r of the batch before it ended.

    Parameters
    ----------
    words : NDArray, shape (batch, extension + length), int32
    labels : NDArray, of the same shape, int32
        The token after each word; -1 where it isn't to be predicted, as in the extension, which
        shows words of the batch before again.
    count : int
        Labels that aren't -1.
    is_first : bool
        Whether the text begins here.
    """

    words: mx.nd.NDArray
    labels: mx.nd.NDArray
    count: int
    is_first: bool


class BlockLoader:
    """Blocks of a text that are read each by itself.

    The last token of a block is the first of the next one too, so that an epoch predicts each token
    of the text once, but for the first one. With `shuffle` the order of epoch e depends on
    ``(seed, e)`` only.

    Parameters
    ----------
    tokens : numpy.ndarray, shape (number of tokens,)
    block_size : int
        Tokens of a block; the last one of the text may have less.
    batch_size : int
    shuffle : bool
    seed : int
    ctx : mxnet.Context
        Where the batches are put.

    Raises
    ------
    InputError
        If there are less than two tokens, or a number is too small.
    """

    def __init__(self, tokens, block_size, batch_size, shuffle=False, seed=0, ctx=None):
        if block_size < 2 or batch_size < 1:
            raise InputError(
                f'block_size {block_size} and batch_size {batch_size}: give at least 2 and 1'
            )
        tokens = np.asarray(tokens, np.int32)
        if len(tokens) < 2:
            raise InputError(
                f'a text of {len(tokens)} tokens is too short: one is needed to predict another'
            )
        count = math.ceil((len(tokens) - 1) / (block_size - 1))
        self._blocks = np.zeros((count, block_size), np.int32)
        self._lengths = np.zeros(count, np.int32)
        for number in range(count):
            block = tokens[number * (block_size - 1) :][:block_size]
            self._blocks[number, : len(block)] = block
            self._lengths[number] = len(block)
        self._batch_size, self._shuffle, self._seed = batch_size, shuffle, seed
        self._ctx = ctx or mx.cpu()

    def __len__(self):
        """Number of batches of an epoch."""
        return math.ceil(len(self._blocks) / self._batch_size)

    def __iter__(self):
        return self.epoch(0)

    def epoch(self, epoch, start=0):
        """Iterate over the batches of epoch `epoch`, counted from 0, from number `start` on.

        Yields
        ------
        BlockBatch
        """
        order = np.arange(len(self._blocks))
        if self._shuffle:
            entropy = np.random.SeedSequence([self._seed % 2**32, epoch])
            np.random.RandomState(entropy.generate_state(1)[0]).shuffle(order)
        for first in range(start * self._batch_size, len(order), self._batch_size):
            rows = order[first : first + self._batch_size]
            lengths = self._lengths[rows]
            yield BlockBatch(
                mx.nd.array(self._blocks[rows, : lengths.max()], ctx=self._ctx, dtype='int32'),
                mx.nd.array(lengths, ctx=self._ctx, dtype='int32'),
                int(lengths.sum()) - len(rows),
            )


class StreamLoader:
    """The segments of an `LMOrderedIterator` as a training loop wants them, on a device.

    For models that remember what they have read: the text is in `batch_size` streams, which are
    read from beginning to end at once.

    Parameters
    ----------
    tokens : numpy.ndarray, shape (number of tokens,)
    batch_size : int
        Number of streams.
    length : int
        Tokens of each stream that a batch predicts; the last batch may have less.
    extension : int
        How many words before these are shown again with them.
    ctx : mxnet.Context
        Where the batches are put.

    Attributes
    ----------
    labels : numpy.ndarray, shape (batch_size, number of labels of a stream), int32
        All that the batches predict.

    Raises
    ------
    InputError
        If the text is too short for so many streams, or a number is too small.
    """

    def __init__(self, tokens, batch_size, length, extension=0, ctx=None):
        if len(tokens) < 2 * batch_size:
            raise InputError(
                f'a text of {len(tokens)} tokens is too short for a batch_size of {batch_size}'
            )
        self._segments = LMOrderedIterator(tokens, batch_size, length, extension)
        self.labels = self._segments.data[:, 1:]
        self._ctx = ctx or mx.cpu()

    def __len__(self):
        """Number of batches of an epoch."""
        return len(self._segments)

    def __iter__(self):
        return self.epoch(0)

    def epoch(self, epoch, start=0):
        """Iterate over the batches from number `start` on, which are the same in each epoch.

        Yields
        ------
        StreamBatch
        """
        segments = itertools.islice(enumerate(self._segments), start, None)
        for number, (words, labels, length) in segments:
            shown_again = words.shape[1] - length
            all_labels = np.pad(labels, ((0, 0), (shown_again, 0)), constant_values=-1)
            yield StreamBatch(
                mx.nd.array(words, ctx=self._ctx, dtype='int32'),
                mx.nd.array(all_labels, ctx=self._ctx, dtype='int32'),
                labels.size,
                number == 0,
            )
