"""The vectors that are nearest to others."""

import numpy as np

from ..errors import InputError, MissingExtraError, UnknownNameError

__all__ = ['INDEXES', 'nearest', 'unit_vectors']

#: what searches: NumPy, or the library faiss
INDEXES = ('exact', 'faiss')
BLOCK = 4096  # vectors of the corpus whose products are in memory at once
QUERIES = 1024  # and the queries of those products


def unit_vectors(vectors):
    """Vectors scaled to Euclidean length 1; zeros stay zeros.

    Parameters
    ----------
    vectors : array-like, shape (count, units)

    Returns
    -------
    numpy.ndarray, shape (count, units), float32
    """
    vectors = np.asarray(vectors, np.float32)
    if vectors.ndim != 2:
        raise InputError(f'vectors have the shape (count, units), not {vectors.shape}')
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def nearest(queries, blocks, k, index='exact'):
    """The vectors of a corpus that are most similar to queries, by their cosine.

    Parameters
    ----------
    queries : array-like, shape (queries, units)
    blocks : array-like, shape (corpus, units); or iterable of such arrays
        The corpus. Of an iterable one array is in memory at a time, and of a memory-mapped array
        some thousand vectors.
    k : int
        How many for each query.
    index : {'exact', 'faiss'}
        'faiss' searches with that library (the extra ``search``), which finds the same, and has all
        vectors in memory.

    Returns
    -------
    numbers : numpy.ndarray, shape (queries, min(k, corpus)), int64
        Places in the corpus, the nearest first.
    cosines : numpy.ndarray, of the same shape, float32
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f'k is {k!r}; it must be an integer of at least 1')
    if index not in INDEXES:
        raise UnknownNameError.of('index', index, INDEXES)
    queries = unit_vectors(queries)
    if not len(queries):
        raise InputError('there are no queries')
    find = _nearest_by_faiss if index == 'faiss' else _nearest_exactly
    return find(queries, _units_of_blocks(blocks, queries.shape[1]), int(k))


def _units_of_blocks(blocks, units):
    """The corpus in arrays of at most BLOCK vectors of length 1."""
    for block in [blocks] if isinstance(blocks, np.ndarray) else blocks:
        for start in range(0, len(block), BLOCK):
            part = unit_vectors(block[start : start + BLOCK])
            if part.shape[1] != units:
                raise InputError(
                    f'the queries have {units} units and the corpus {part.shape[1]}: take vectors '
                    'of one model'
                )
            yield part


def _nearest_exactly(queries, blocks, k):
    numbers = np.empty((len(queries), 0), np.int64)
    cosines = np.empty((len(queries), 0), np.float32)
    start = 0
    for block in blocks:
        parts = (queries[first : first + QUERIES] for first in range(0, len(queries), QUERIES))
        found = [_best(part @ block.T, k) for part in parts]
        places, values = map(np.concatenate, zip(*found))
        numbers = np.concatenate([numbers, places + start], axis=1)
        order, cosines = _best(np.concatenate([cosines, values], axis=1), k)
        numbers = np.take_along_axis(numbers, order, axis=1)
        start += len(block)
    return numbers, cosines


def _best(scores, k):
    """Columns and values of the k largest of each row, the largest first."""
    k = min(k, scores.shape[1])
    columns = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.lexsort((columns, -values), axis=1)  # of equal ones the first
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def _nearest_by_faiss(queries, blocks, k):
    try:
        import faiss
    except ImportError:
        raise MissingExtraError.of('faiss', 'search') from None
    index = faiss.IndexFlatIP(queries.shape[1])
    for block in blocks:
        index.add(np.ascontiguousarray(block))
    k = min(k, index.ntotal)
    if not k:
        return np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0), np.float32)
    cosines, numbers = index.search(queries, k)
    return numbers, cosines
