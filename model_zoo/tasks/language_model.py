"""Language models: blocks of a text, perplexity."""

import logging
import math
import time

import numpy as np

from ..batches import Sample, SampleLoader
from ..batches.sampling import random_state
from ..batches.windows import split_windows
from ..errors import InputError

__all__ = [
    'BlockLoader',
    'evaluate_perplexity',
    'measure_perplexity',
]

logger = logging.getLogger(__name__)


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


def measure_perplexity(loss_sum, loader, num_words, guard=None):
    """Perplexity of a text: e to the mean loss of its tokens, and of its words.

    Parameters
    ----------
    loss_sum : callable
        ``loss_sum(batch) -> NDArray`` of one number, the sum of the losses (natural logarithms) of
        the ``batch.count`` tokens that the batch predicts.
    loader : iterable of Batch
        Such as a `BlockLoader`.
    num_words : int
        Words in the text. The loss per word compares models with different tokens.
    guard : InterruptGuard, optional
        Asked before each batch.

    Returns
    -------
    dict
        ``loss`` and ``perplexity`` per token, ``word_perplexity``, and the numbers of ``tokens``
        and ``words``.
    """
    total, tokens, previous = 0.0, 0, None
    for batch in loader:
        if guard is not None:
            guard.check()
        # the device works on this batch while the last one's loss is read
        current = loss_sum(batch)
        total += 0.0 if previous is None else float(previous.asscalar())
        tokens, previous = tokens + batch.count, current
    total += float(previous.asscalar())
    with np.errstate(over='ignore'):  # infinite, then
        perplexity, word_perplexity = np.exp([total / tokens, total / num_words]).tolist()
    return {
        'loss': total / tokens,
        'perplexity': perplexity,
        'word_perplexity': word_perplexity,
        'tokens': tokens,
        'words': num_words,
    }


def evaluate_perplexity(loss_sum, loader, num_words, segment='dev', guard=None):
    """`measure_perplexity` in the form that `Evaluation` takes.

    Returns
    -------
    (float, dict)
        The mean log-likelihood of a token (the negative loss; higher is better), and segment ->
        what was measured, with ``tokens_per_second``.
    """
    started = time.perf_counter()
    metrics = measure_perplexity(loss_sum, loader, num_words, guard)
    metrics['tokens_per_second'] = metrics['tokens'] / (time.perf_counter() - started)
    logger.info(
        '%s: perplexity %.3f per token (loss %.4f), %.3f per word; %d tokens, %d words '
        '(%.0f tokens/s)',
        segment,
        metrics['perplexity'],
        metrics['loss'],
        metrics['word_perplexity'],
        metrics['tokens'],
        metrics['words'],
        metrics['tokens_per_second'],
    )
    return -metrics['loss'], {segment: metrics}
