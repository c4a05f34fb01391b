"""Batches of questions with several candidates, each a text of its own."""

from typing import NamedTuple, Optional, Tuple

import mxnet as mx
import numpy as np

from .batching import BucketedLoader

__all__ = ['ChoiceBatch', 'ChoiceFeature', 'ChoiceLoader']


class ChoiceFeature(NamedTuple):
    """What the model takes of one example; not padded.

    Parameters
    ----------
    choices : tuple of numpy.ndarray, each of shape (length,), int32
        As many in all examples.
    label : int or None
        Number of the right choice.
    """

    choices: Tuple[np.ndarray, ...]
    label: Optional[int]

    @property
    def valid_length(self):
        """Length of the longest choice."""
        return max(map(len, self.choices))


class ChoiceBatch(NamedTuple):
    """A batch on the loader's context.

    Parameters
    ----------
    words : NDArray, shape (batch, choices, length), int32
    valid_length : NDArray, shape (batch, choices), int32
    labels : NDArray, shape (batch,), int32; or None
    indices : numpy.ndarray, shape (batch,), int64
        Places of the samples in the list that the loader was given.
    """

    words: mx.nd.NDArray
    valid_length: mx.nd.NDArray
    labels: Optional[mx.nd.NDArray]
    indices: np.ndarray


class ChoiceLoader(BucketedLoader):
    """A `BucketedLoader` of `ChoiceFeature`; it takes the same arguments."""

    def _batch(self, indices):
        samples = [self._features[index] for index in indices]
        texts = [choice for sample in samples for choice in sample.choices]
        shape = len(samples), len(samples[0].choices)
        words = self._pad_ids(texts).reshape((*shape, -1))
        lengths = np.array([len(text) for text in texts]).reshape(shape)
        labels = None
        if self._stack_labels is not None:
            labels = np.array([sample.label for sample in samples])
            labels = mx.nd.array(labels, ctx=self._ctx, dtype='int32')
        return ChoiceBatch(
            words.as_in_context(self._ctx),
            mx.nd.array(lengths, ctx=self._ctx, dtype='int32'),
            labels,
            indices,
        )
