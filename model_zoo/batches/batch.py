"""Batches for models, and the samples that they are made of."""

from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..util.arrays import pad_rows

NO_LABEL = -1  # losses ignore it


class Sample(NamedTuple):
    """An example as a model takes it, not padded: the arrays of its encoding, and its label.

    Parameters
    ----------
    input_ids : numpy.ndarray, shape (length,), int32
        For multiple choice a tuple of arrays, one per choice; all samples have the same number.
    token_types : numpy.ndarray, shape (length,), int32; or None
        For multiple choice a tuple of arrays.
    label : int, float, numpy.ndarray or None
        Number of the class or of the right choice; the value of a regression; the tags' numbers at
        all `positions`; None without a label.
    positions : numpy.ndarray, int32, optional
        The tokens that the numbers in `label` belong to, for tags of words.
    """

    input_ids: np.ndarray | tuple[np.ndarray, ...]
    token_types: np.ndarray | tuple[np.ndarray, ...] | None = None
    label: int | float | np.ndarray | None = None
    positions: np.ndarray | None = None

    @property
    def valid_length(self):
        """The length; for multiple choice, the longest choice's."""
        return max(map(len, _rows(self.input_ids)))

    def padded_size(self, round_to=None):
        """Return the number of tokens in a batch of this sample alone, with all choices."""
        round_to = round_to or 1
        return len(_rows(self.input_ids)) * -(-self.valid_length // round_to) * round_to

    @property
    def content(self):
        """The arrays of ids and the label, for a checksum of the training data."""
        return (*_rows(self.input_ids), self.label)


def _rows(arrays):
    return arrays if isinstance(arrays, tuple) else (arrays,)


class Batch:
    """Samples as arrays on a device. An array has the same name in all tasks.

    Parameters
    ----------
    words : NDArray, shape (batch, length), int32
        For multiple choice (batch, choices, length).
    token_types : NDArray, of the same shape, int32; or None
    valid_length : NDArray, shape (batch,), float32; or None
        For multiple choice (batch, choices).
    labels : NDArray, or None
        (batch,), int32 for classes and float32 for a regression; or int32 of the shape of `words`,
        -1 where there is no label.
    indices : numpy.ndarray, shape (batch,), int64; or None
        Positions of the samples in the list that the loader was given.
    count : int, optional
        How many things the batch's loss is the mean over; by default the samples.
    **extras
        Further attributes of the task, such as ``masked_positions``.
    """

    def __init__(
        self,
        words,
        token_types=None,
        valid_length=None,
        labels=None,
        indices=None,
        count=None,
        **extras,
    ):
        self.words, self.token_types, self.valid_length = words, token_types, valid_length
        self.labels, self.indices = labels, indices
        self.count = len(words) if count is None else count
        self.__dict__.update(extras)

    @property
    def inputs(self):
        """(words, token_types, valid_length)."""
        return self.words, self.token_types, self.valid_length

    @property
    def input_ids(self):
        """The name of `words` in version 0.1."""
        return self.words

    def keys(self):
        """Return the names of a block's inputs that the batch has, for ``block(**batch)``."""
        names = ('words', 'token_types', 'valid_length', 'labels')
        return [name for name in names if getattr(self, name) is not None]

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, name):
        if not isinstance(name, str) or not hasattr(self, name):
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self):
        shown = {name: getattr(value, 'shape', value) for name, value in vars(self).items()}
        shown = ', '.join(f'{name}={value}' for name, value in shown.items() if value is not None)
        return f'Batch({shown})'


def make_batch(samples, pad_val, round_to=None, ctx=None, indices=None):
    """Pad samples to a batch."""
    ctx = ctx or mx.cpu()
    texts = [row for sample in samples for row in _rows(sample.input_ids)]
    is_choice = isinstance(samples[0].input_ids, tuple)
    shape = (len(samples), len(samples[0].input_ids)) if is_choice else (len(samples),)

    def pad(rows, value):
        padded = pad_rows(rows, value, round_to=round_to or 1).reshape(*shape, -1)
        return mx.nd.array(padded, ctx=ctx, dtype='int32')

    token_types = None
    if samples[0].token_types is not None:
        token_types = pad([row for sample in samples for row in _rows(sample.token_types)], 0)
    words = pad(texts, pad_val or 0)
    lengths = np.reshape([len(text) for text in texts], shape)
    lengths = mx.nd.array(lengths, ctx=ctx, dtype='float32')
    labels, count = _labels(samples, words.shape)
    if labels is not None:
        labels = mx.nd.array(labels, ctx=ctx, dtype=labels.dtype)
    return Batch(words, token_types, lengths, labels, indices, count)


def _labels(samples, shape):
    """Return the labels of samples, and the batch's `count`."""
    labels = [getattr(sample, 'label', None) for sample in samples]
    positions = getattr(samples[0], 'positions', None)
    count = len(samples)
    if any(label is None for label in labels):
        return None, count
    if positions is None:
        is_class = isinstance(labels[0], (int, np.integer))
        return np.array(labels, np.int32 if is_class else np.float32), count
    spread = np.full(shape, NO_LABEL, np.int32)
    for row, sample in zip(spread, samples):
        row[sample.positions] = sample.label
    return spread, int((spread != NO_LABEL).sum())
