"""How well a language model predicts a text."""

import logging
import time

import numpy as np

__all__ = ['evaluate_perplexity', 'measure_perplexity']

logger = logging.getLogger(__name__)


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
