"""Samples for pre-training, and what must be true of them, whatever file they are from."""

from typing import NamedTuple

import numpy as np

from ...errors import InputError
from ...util.arrays import pad_rows

#: name of the array of floats
WEIGHTS = 'masked_lm_weights'
#: names of the arrays with a row for each sample
MATRICES = 'input_ids', 'segment_ids', 'masked_lm_positions', 'masked_lm_ids', WEIGHTS


class Samples(NamedTuple):
    """Samples for pre-training, padded, with the names that GluonNLP's files have.

    Parameters
    ----------
    input_ids, segment_ids : numpy.ndarray, shape (samples, length), int32
    masked_lm_positions, masked_lm_ids : numpy.ndarray, shape (samples, masks), int32
        0 where a sample has no more masks.
    masked_lm_weights : numpy.ndarray, shape (samples, masks), float32
        1 for a mask, 0 for padding.
    next_sentence_labels : numpy.ndarray, shape (samples,), int32
        1 where the second segment is from another document.
    valid_lengths : numpy.ndarray, shape (samples,), int32
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    masked_lm_positions: np.ndarray
    masked_lm_ids: np.ndarray
    masked_lm_weights: np.ndarray
    next_sentence_labels: np.ndarray
    valid_lengths: np.ndarray

    @property
    def count(self):
        """Number of samples."""
        return len(self.valid_lengths)

    def take(self, rows):
        """The samples at `rows`, as copies."""
        return Samples(*(array[rows] for array in self))

    @classmethod
    def empty(cls, count, length, masks):
        """Room for samples."""
        shapes = [(count, length)] * 2 + [(count, masks)] * 3 + [count] * 2
        kinds = [np.float32 if name == WEIGHTS else np.int32 for name in cls._fields]
        return cls(*map(np.empty, shapes, kinds))

    @classmethod
    def none(cls):
        """No samples."""
        return cls.empty(0, 0, 0)

    @classmethod
    def concatenate(cls, parts):
        """Samples of several, padded with zeros to the widest of them."""
        return cls(*map(_stack_rows, zip(*parts)))

    @classmethod
    def gather(cls, owners, rows, samples_of):
        """Samples of several parts: of each of the `owners` the row beside it."""
        order, pieces = np.argsort(owners, kind='stable'), [cls.none()]
        for owner in np.unique(owners).tolist():
            own = order[owners[order] == owner]
            pieces.append(samples_of(owner).take(rows[own]))
        return cls.concatenate(pieces).take(np.argsort(order))


def _stack_rows(arrays):
    if len(arrays) == 1:
        return arrays[0]
    if arrays[0].ndim == 1:
        return np.concatenate(arrays)
    result = np.zeros(
        (sum(map(len, arrays)), max(array.shape[1] for array in arrays)), arrays[0].dtype
    )
    place = 0
    for array in arrays:
        result[place : place + len(array), : array.shape[1]] = array
        place += len(array)
    return result


def mask_weights(places, width):
    """1 for each mask of the samples, and 0 behind them."""
    rows = [np.ones(len(each)) for each in places]
    return pad_rows(rows, length=width).astype(np.float32)


def check_samples(path, samples, vocab=None, max_len=None):
    """Raise InputError if numbers of the samples of a file can't be."""

    def refuse(problem):
        raise InputError(f'{path}: {problem}; make it anew with create_pretraining_data.py')

    if not samples.count:
        refuse('it has no samples')
    ids, lengths, weights = samples.input_ids, samples.valid_lengths, samples.masked_lm_weights
    longest = lengths.max()
    if lengths.min() < 1 or longest > ids.shape[1] or ids.shape != samples.segment_ids.shape:
        refuse(f'valid_lengths of {lengths.min()} to {longest} in rows of {ids.shape[1]}')
    if max_len is not None and longest > max_len:
        refuse(f'it has sequences of {longest} tokens, and the model takes {max_len} at most')
    shapes = {samples.masked_lm_positions.shape, samples.masked_lm_ids.shape, weights.shape}
    if len(shapes) > 1:
        refuse(f'positions, ids and weights of the masks have the shapes {sorted(shapes)}')
    binary = {
        'weight of a mask': weights,
        'label of a next sentence': samples.next_sentence_labels,
        'segment': samples.segment_ids,
    }
    for name, array in binary.items():
        if not ((array == 0) | (array == 1)).all():
            refuse(f'a {name} is neither 0 nor 1')
    places = samples.masked_lm_positions
    if places.min(initial=0) < 0 or (places * (weights > 0) >= lengths[:, None]).any():
        refuse('a mask is at a position that its sequence does not have')
    if vocab is None:
        return
    most = max(ids.max(), samples.masked_lm_ids.max(initial=0))
    if min(ids.min(), samples.masked_lm_ids.min(initial=0)) < 0 or most >= len(vocab):
        refuse(f'it has the token id {most}, and the vocabulary {len(vocab)} tokens')
    first = getattr(vocab, 'cls_token', None) or vocab.bos_token  # RoBERTa's is the latter
    if (ids[:, 0] != vocab[first]).any():
        refuse(f'a sequence does not begin with {first}: it is of another vocabulary')
