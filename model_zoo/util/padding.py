"""Rows of different lengths as one array."""

import numpy as np

__all__ = ['pad_rows']


def pad_rows(rows, pad_id=0, length=None, round_to=1):
    """Rows of ids as one array, padded on the right.

    Parameters
    ----------
    rows : list of (list of int, or np.ndarray)
    pad_id : int
    length : int, optional
        Default: the longest row's, rounded up to a multiple of `round_to`.
    round_to : int

    Returns
    -------
    np.ndarray
        int32, shape (rows, length).
    """
    if length is None:
        length = -(-max(map(len, rows), default=0) // round_to) * round_to
    ids = np.full((len(rows), length), pad_id, dtype=np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids
