"""Batches of questions with several candidates, each a text of its own."""

from typing import NamedTuple, Optional, Tuple

import mxnet as mx
import numpy as np

from ..batching import BucketedLoader

__all__ = ['ChoiceBatch', 'ChoiceFeature', 'ChoiceLoader']


class ChoiceFeature(NamedTuple):
    """What the model takes of one example; not padded.

    Parameters
    ----------
    choices : tuple of numpy.ndarray, each of shape (length,), int32
        As many in all examples.
    label : int or None
        Number of the right choice.
    token_types : tuple of numpy.ndarray, of the same shapes, int32; or None
    """

    choices: Tuple[np.ndarray, ...]
    label: Optional[int]
    token_types: Optional[Tuple[np.ndarray, ...]] = None

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
    token_types : NDArray, shape (batch, choices, length), int32; or None if the features have none
    """

    words: mx.nd.NDArray
    valid_length: mx.nd.NDArray
    labels: Optional[mx.nd.NDArray]
    indices: np.ndarray
    token_types: Optional[mx.nd.NDArray] = None


class ChoiceLoader(BucketedLoader):
    """A `BucketedLoader` of `ChoiceFeature`; it takes the same arguments."""

    def _batch(self, indices):
        samples = [self._features[index] for index in indices]
        texts = [choice for sample in samples for choice in sample.choices]
        shape = len(samples), len(samples[0].choices)
        lengths = np.array([len(text) for text in texts]).reshape(shape)
        token_types = labels = None
        if samples[0].token_types is not None:
            rows = [row for sample in samples for row in sample.token_types]
            token_types = self._pad_types(rows).reshape((*shape, -1)).as_in_context(self._ctx)
        if self._stack_labels is not None:
            labels = np.array([sample.label for sample in samples])
            labels = mx.nd.array(labels, ctx=self._ctx, dtype='int32')
        return ChoiceBatch(
            self._pad_ids(texts).reshape((*shape, -1)).as_in_context(self._ctx),
            mx.nd.array(lengths, ctx=self._ctx, dtype='int32'),
            labels,
            indices,
            token_types,
        )
