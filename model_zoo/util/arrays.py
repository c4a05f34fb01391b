"""Arrays of rows of different lengths, and one vector of many."""

import numpy as np

__all__ = ['pad_rows', 'pool']


def pad_rows(rows, pad_id=0, length=None, round_to=1):
    """Rows of ids as one array, padded on the right."""
    if length is None:
        length = -(-max(map(len, rows), default=0) // round_to) * round_to
    ids = np.full((len(rows), length), pad_id, dtype=np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids


def pool(states, mode, skip=0):
    """Pool the vectors of a text's tokens.

    Parameters
    ----------
    states : numpy.ndarray, shape (tokens, units)
    mode : {'cls', 'max', 'mean', 'mean_sqrt_len_tokens', 'weightedmean', 'lasttoken'}
        As sentence-transformers calls them. 'weightedmean' weights each token with its position,
        counted from 1.
    skip : int
        The number of tokens at the beginning that are left out.

    Returns
    -------
    numpy.ndarray, shape (units,)
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
