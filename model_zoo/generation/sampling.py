"""Draws one token per row from the scores of a language model."""

import numpy as np

from ..errors import InputError

__all__ = ['Sampler', 'log_normalizer', 'row_generators']


def log_normalizer(scores):
    """Logarithm of the sum of the scores' exponentials, (rows, tokens) -> (rows, 1).

    Raises
    ------
    InputError
        If scores are NaN or infinite, as those of damaged weights are.
    """
    top = scores.max(axis=1, keepdims=True)
    result = top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    if not np.isfinite(result).all():
        raise InputError('the model returned scores that are not finite: check its weights')
    return result


def row_generators(prompts, num_return_sequences, seed):
    """A random generator for each sequence, prompt by prompt.

    They are seeded with the prompt itself, so a continuation depends neither on the other prompts
    nor on the place among them. Equal prompts have different generators.

    Parameters
    ----------
    prompts : list of list of int
    num_return_sequences : int
    seed : int or None
        None: different ones each time.

    Returns
    -------
    list of np.random.Generator
    """
    if seed is None:
        seed = np.random.SeedSequence().entropy
    seen = {}
    generators = []
    for prompt in map(tuple, prompts):
        for _ in range(num_return_sequences):
            number = seen[prompt] = seen.get(prompt, -1) + 1
            generators.append(np.random.default_rng([seed, number, *prompt]))
    return generators


class Sampler:
    """Draws tokens at random, from the likely ones.

    The filters are applied in the order of the parameters. Tokens that are as likely as the last
    one kept are kept too. A row needs about 0.3 ms for 50000 tokens (0.1 with `top_k` alone).

    Parameters
    ----------
    temperature : float
        The scores are divided by this.
    top_k : int or None
        Draw from this many most likely tokens.
    top_p : float or None
        Draw from the smallest set of most likely tokens whose probabilities sum to this (Holtzman
        et al., "The Curious Case of Neural Text Degeneration", section 3.1).
    """

    def __init__(self, temperature=1.0, top_k=None, top_p=None):
        self._temperature = temperature
        self._top_k = top_k
        self._top_p = top_p

    def __call__(self, scores, generators):
        """Tokens (rows,) from scores (rows, tokens), each row with a generator of its own."""
        return np.array([self._draw(*pair) for pair in zip(scores, generators)], 'int32')

    def _draw(self, scores, generator):
        tokens = self._kept(scores)
        scores = scores[tokens].astype('float64') / self._temperature
        cumulative = np.cumsum(np.exp(scores - scores.max()))
        place = np.searchsorted(cumulative, generator.random() * cumulative[-1], side='right')
        return tokens[min(place, len(tokens) - 1)]  # rounding may go beyond the last

    def _kept(self, scores):
        """The tokens that may be drawn, in ascending order."""
        least = -np.inf
        if self._top_k is not None:
            least = np.partition(scores, -self._top_k)[-self._top_k]
        if self._top_p is not None:
            # scores in order, without their tokens: sorting those as well takes ten times as long
            likeliest = np.sort(scores[scores >= least])[::-1]
            odds = np.exp((likeliest - likeliest[0]).astype('float64') / self._temperature)
            cumulative = np.cumsum(odds)
            last = np.searchsorted(cumulative, self._top_p * cumulative[-1])
            least = likeliest[min(last, len(likeliest) - 1)]
        return np.flatnonzero(scores >= least)
