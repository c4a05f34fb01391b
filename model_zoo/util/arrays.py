"""Arrays of rows of different lengths, one vector of many, and probabilities."""

import numpy as np

from ..errors import InputError

__all__ = ['POOLINGS', 'flatten', 'pad_rows', 'pool', 'sigmoid', 'softmax']

#: the ways of `pool` that users choose from; other models of sentence-transformers have more
POOLINGS = ('mean', 'cls', 'max')


def flatten(outputs):
    """The arrays of nested lists, in their order."""
    if not isinstance(outputs, (list, tuple)):
        return [outputs]
    return [array for output in outputs for array in flatten(output)]


def pad_rows(rows, pad_id=0, length=None, round_to=1):
    """Rows of ids as one array, padded on the right."""
    if length is None:
        length = -(-max(map(len, rows), default=0) // round_to) * round_to
    try:
        ids = np.full((len(rows), length), pad_id, dtype=np.int32)
    except (MemoryError, OverflowError, ValueError) as error:
        raise InputError(
            f'{len(rows)} rows of {length} ids do not fit the memory: '
            'give fewer texts at once, or cut them'
        ) from error
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids


def pool(states, mode, skip=0):
    """The vector, (units,), of a text whose tokens have `states`, (tokens, units).

    `mode` is as sentence-transformers calls it; 'weightedmean' weights each token with its
    position, counted from 1. The first `skip` tokens are left out.
    """
    kept = states[skip:]
    if mode == 'cls':
        return kept[0].copy()
    if mode == 'lasttoken':
        return kept[-1].copy()
    if mode == 'max':
        return kept.max(axis=0)
    if mode == 'mean_sqrt_len_tokens':
        return kept.sum(axis=0) / np.sqrt(np.float32(len(kept)))
    if mode == 'weightedmean':
        weights = np.arange(skip + 1, len(states) + 1, dtype=np.float32)[:, None]
        return (kept * weights).sum(axis=0) / weights.sum()
    return kept.mean(axis=0)


def softmax(outputs):
    """Probabilities, float64, of a model's scores."""
    from scipy.special import softmax as scipy_softmax

    return scipy_softmax(outputs.astype(np.float64), axis=-1)


def sigmoid(outputs):
    """Probabilities, float64, of independent scores."""
    from scipy.special import expit

    return expit(outputs.astype(np.float64))
