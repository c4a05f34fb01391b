"""What the loaders share: samples to batches, in buckets of like length."""

from typing import NamedTuple

import gluonnlp as nlp
import mxnet as mx
import numpy as np

from ...errors import InputError

__all__ = ['Buckets', 'PretrainingBatch', 'check_positive', 'make_batch']


class PretrainingBatch(NamedTuple):
    """A batch on its context, or one worker's part of it.

    Parameters
    ----------
    input_ids, token_types : NDArray, shape (batch, length), int32
    valid_length : NDArray, shape (batch,), float32
    masked_positions, masked_ids : NDArray, shape (batch, masks), int32
        0 where a sample has no more masks.
    masked_weights : NDArray, shape (batch, masks), float32
        1 for a mask, 0 for padding.
    next_sentence_labels : NDArray, shape (batch,), int32
        1 where the second segment is from another document.
    indices : numpy.ndarray, shape (batch,), int64
        What tells the samples apart: ``file << 32 | row``, the files sorted by name.
    num_masked, num_tokens : int
        How many masks and tokens there are, padding not counted.
    """

    input_ids: mx.nd.NDArray
    token_types: mx.nd.NDArray
    valid_length: mx.nd.NDArray
    masked_positions: mx.nd.NDArray
    masked_ids: mx.nd.NDArray
    masked_weights: mx.nd.NDArray
    next_sentence_labels: mx.nd.NDArray
    indices: np.ndarray
    num_masked: int
    num_tokens: int


def make_batch(samples, indices, pad_val, round_to, ctx, longest=None):
    """A batch of samples, as narrow as they and `round_to` allow.

    Parameters
    ----------
    samples : Samples
    indices : numpy.ndarray, shape (samples,), int64
    pad_val : int
        Id of the padding token.
    round_to : int
        Lengths and numbers of masks are multiples of this.
    ctx : mxnet.Context
    longest : int, optional
        To which lengths are rounded up at most: the positions that a model has.

    Returns
    -------
    PretrainingBatch
    """
    lengths, weights = samples.valid_lengths, samples.masked_lm_weights
    counts = weights.sum(axis=1).astype(int)
    length = -(-int(lengths.max()) // round_to) * round_to
    if longest is not None:
        length = min(length, longest)
    masks = -(-max(1, int(counts.max())) // round_to) * round_to
    ids = _fit(samples.input_ids, length)
    ids[np.arange(length) >= lengths[:, None]] = pad_val

    def put(array, dtype='int32'):
        return mx.nd.array(array, ctx=ctx, dtype=dtype)

    return PretrainingBatch(
        put(ids),
        put(_fit(samples.segment_ids, length)),
        put(lengths, 'float32'),
        put(_fit(samples.masked_lm_positions, masks)),
        put(_fit(samples.masked_lm_ids, masks)),
        put(_fit(weights, masks), 'float32'),
        put(samples.next_sentence_labels),
        indices,
        int(counts.sum()),
        int(lengths.sum()),
    )


def _fit(array, width):
    """A copy with as many columns as wanted, padded with zeros."""
    result = np.zeros((len(array), width), array.dtype)
    width = min(width, array.shape[1])
    result[:, :width] = array[:, :width]
    return result


class Buckets:
    """Ranges of lengths of one width, and the batch size of each.

    Parameters
    ----------
    shortest, longest : int
    batch_size : int
    num_buckets : int
    """

    def __init__(self, shortest, longest, batch_size, num_buckets):
        keys = [longest]
        if num_buckets > 1 and shortest < longest:
            keys = nlp.data.ConstWidthBucket()(longest, shortest, num_buckets)
        self.keys = np.unique(keys)  # the longest length of each
        self.sizes = np.full(len(self.keys), batch_size)

    def of(self, lengths):
        """Number of each length's bucket."""
        return np.searchsorted(self.keys, lengths)

    def count_tokens(self, histogram=None):
        """Take the batch size for one in tokens, as GluonNLP's ``use_average_length`` does.

        Parameters
        ----------
        histogram : numpy.ndarray, optional
            Number of samples of each length; without it, those of a bucket are taken for as long
            as the longest.
        """
        usual = self.keys.astype(float)
        if histogram is not None:
            lengths = np.arange(len(histogram))
            bucket_of = self.of(lengths)
            for bucket in range(len(self.keys)):
                count = np.where(bucket_of == bucket, histogram, 0)
                if count.any():
                    mean = np.average(lengths, weights=count)
                    variance = np.average((lengths - mean) ** 2, weights=count)
                    usual[bucket] = mean + np.sqrt(variance)
        self.sizes = np.maximum(1, (self.sizes / usual).astype(int))

    def deal(self, lengths, order, parts, is_last):
        """Cut samples into batches.

        Parameters
        ----------
        lengths : numpy.ndarray
        order : numpy.ndarray
            In which the samples are dealt out.
        parts : int
            How many workers share a batch.
        is_last : bool
            Make batches of what doesn't fill one, too.

        Returns
        -------
        list of numpy.ndarray
            Samples of each batch.
        numpy.ndarray
            Those that are left, in order.
        """
        bucket_of, batches, left = self.of(lengths[order]), [], []
        for bucket, size in enumerate(self.sizes * parts):
            members = np.flatnonzero(bucket_of == bucket)
            full = len(members) if is_last else len(members) // size * size
            batches += [order[members[at : min(at + size, full)]] for at in range(0, full, size)]
            left.append(members[full:])
        return batches, order[np.sort(np.concatenate(left))]


def check_positive(**numbers):
    """Raise InputError, naming the argument, if one is less than 1."""
    for name, value in numbers.items():
        if value < 1:
            raise InputError(f'{name} {value}: give 1 or more')
