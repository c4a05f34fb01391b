"""Batches for language models that read each block of a text independently."""

import math

import numpy as np

from ...batches import Sample, SampleLoader
from ...batches.sampling import random_state
from ...batches.windows import split_windows
from ...errors import InputError

__all__ = ['BlockLoader']


class BlockLoader(SampleLoader):
    """Blocks of a text that are read independently.

    The last token of a block is also the first of the next one. So an epoch predicts each token but
    the text's first one once. ``Batch.count`` counts all tokens but the first of each row. With
    `shuffle` the order of epoch e depends on ``(seed, e)`` only.

    Parameters
    ----------
    tokens : numpy.ndarray, shape (number of tokens,)
    block_size : int
        Tokens of a block; the last one of the text may have less.
    batch_size : int
    shuffle : bool
    seed : int
    ctx, workers
        See `Loader`; each of several workers has `batch_size` blocks of a batch.

    Raises
    ------
    InputError
        If there are less than two tokens, or a number is too small.
    """

    def __init__(
        self, tokens, block_size, batch_size, shuffle=False, seed=0, ctx=None, workers=None
    ):
        if block_size < 2 or batch_size < 1:
            raise InputError(
                f'block_size {block_size} and batch_size {batch_size}: give at least 2 and 1'
            )
        tokens = np.asarray(tokens, np.int32)
        if len(tokens) < 2:
            raise InputError(
                f'a text of {len(tokens)} tokens is too short: one is needed to predict another'
            )
        windows = split_windows(len(tokens), block_size, block_size - 1)
        blocks = [Sample(tokens[start : start + length]) for start, length in windows]
        super().__init__(blocks, seed=seed, ctx=ctx, workers=workers)
        self._batch_size, self._shuffle = batch_size * self._size, shuffle

    def __len__(self):
        return math.ceil(len(self.samples) / self._batch_size)

    def batch_indices(self, epoch):
        order = np.arange(len(self.samples))
        if self._shuffle:
            random_state(self._seed, epoch).shuffle(order)
        return [
            order[first : first + self._batch_size]
            for first in range(0, len(order), self._batch_size)
        ]

    def _batch(self, indices, ctx):
        batch = super()._batch(indices, ctx)
        batch.count = sum(len(self.samples[index].input_ids) - 1 for index in indices)
        return batch
