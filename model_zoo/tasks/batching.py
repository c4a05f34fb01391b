"""Features to batches of similar length, in an order set by the seed and the epoch only."""

import copy
import math
import warnings
from typing import NamedTuple, Optional

import gluonnlp as nlp
import mxnet as mx
import numpy as np

from ..errors import InputError

__all__ = ['Batch', 'BucketedLoader']


class Batch(NamedTuple):
    """A batch on the loader's context.

    Parameters
    ----------
    input_ids : NDArray, shape (batch, length), int32
    token_types : NDArray, shape (batch, length), int32
    valid_length : NDArray, shape (batch,), float32
    labels : NDArray, shape (batch,), int32 for classes and float32 for regression, or None
    indices : numpy.ndarray, shape (batch,), int64
        Places of the samples in the list that the loader was given.
    """

    input_ids: mx.nd.NDArray
    token_types: mx.nd.NDArray
    valid_length: mx.nd.NDArray
    labels: Optional[mx.nd.NDArray]
    indices: np.ndarray


class BucketedLoader:
    """Padded batches of features whose lengths are similar.

    When shuffling, samples are drawn from buckets of like length (GluonNLP's `FixedBucketSampler`),
    and the order of epoch e depends on ``(seed, e)`` only: a resumed run sees the batches that an
    unbroken one sees. As the samplers draw from NumPy's global generator, it is reseeded while the
    order is made, and its state restored after that (other threads shouldn't draw meanwhile).
    Without shuffling, samples are sorted by length, longest first (`SortedBucketSampler`), the same
    in all epochs; ``Batch.indices`` leads back to the input order.

    Parameters
    ----------
    features : sequence of Feature
        All with a label, or all without.
    batch_size : int
        Of all batches but the last one of each bucket; with several workers, of each one's part.
    shuffle : bool
    seed : int
    num_buckets : int
        At most; small data sets get fewer, so that not every other batch is an unfilled last one.
    round_to : int, optional
        Pad to a multiple of this.
    pad_val : int
        Id of the padding token (1 in GluonNLP's vocabularies, 0 in Google's).
    ctx : mxnet.Context
        Where the batches are put.
    workers : model_zoo.training.workers.Workers, optional
        With several, worker r gets the samples ``r::size`` of each batch, or None where there are
        none: together they see what a single one would with their batch sizes added.

    Raises
    ------
    InputError
        If there are no features, or a number isn't positive.
    """

    def __init__(
        self,
        features,
        batch_size,
        shuffle=False,
        seed=0,
        num_buckets=10,
        round_to=None,
        *,
        pad_val,
        ctx=None,
        workers=None,
    ):
        if not len(features):
            raise InputError('no samples to make batches of')
        sizes = {'batch_size': batch_size, 'num_buckets': num_buckets, 'round_to': round_to}
        for name, value in sizes.items():
            if value is not None and value < 1:
                raise InputError(f'{name} {value}: give 1 or more')
        self._features = features
        self._seed = seed
        self._epoch = 0
        self._ctx = ctx or mx.cpu()
        self._rank, self._size = (0, 1) if workers is None else (workers.rank, workers.size)
        batch_size *= self._size
        lengths = [feature.valid_length for feature in features]
        if shuffle:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')  # of empty buckets, which are left out
                self._sampler = nlp.data.FixedBucketSampler(
                    lengths,
                    batch_size,
                    # four batches a bucket, or more
                    num_buckets=min(num_buckets, max(1, len(features) // (4 * batch_size))),
                    shuffle=True,
                )
        else:
            self._sampler = nlp.data.SortedBucketSampler(
                lengths, batch_size, mult=math.ceil(len(features) / batch_size)
            )
        self._pad_ids = nlp.data.batchify.Pad(pad_val=pad_val, round_to=round_to, dtype='int32')
        self._pad_types = nlp.data.batchify.Pad(pad_val=0, round_to=round_to, dtype='int32')
        self._stack_lengths = nlp.data.batchify.Stack('float32')
        label = features[0].label
        self._stack_labels = None
        if label is not None:
            is_class = isinstance(label, (int, np.integer))
            self._stack_labels = nlp.data.batchify.Stack('int32' if is_class else 'float32')

    def __len__(self):
        """Number of batches of an epoch, the same in all."""
        return len(self._sampler)

    @property
    def num_samples(self):
        """Number of samples of an epoch."""
        return len(self._features)

    def set_epoch(self, epoch):
        """Let the next iteration be epoch `epoch`, counted from 0."""
        self._epoch = epoch

    def __iter__(self):
        """Iterate over the batches of the epoch set; doesn't move on to the next epoch."""
        return self.epoch(self._epoch)

    def epoch(self, epoch, start=0):
        """Iterate over the batches of epoch `epoch`, counted from 0, from number `start` on.

        Yields
        ------
        Batch or None
        """
        for indices in self.batch_indices(epoch)[start:]:
            indices = indices[self._rank :: self._size]
            yield self._batch(indices) if len(indices) else None

    def batch_indices(self, epoch):
        """The samples of each batch of epoch `epoch`, those of all workers.

        Returns
        -------
        list of numpy.ndarray, int64
        """
        # The sampler shuffles in place, by NumPy's global generator: give it a state of its own,
        # and a copy of itself so that an epoch doesn't depend on those before it.
        state = np.random.get_state()
        np.random.seed(np.random.SeedSequence([self._seed % 2**32, epoch]).generate_state(1)[0])
        try:
            batches = list(copy.deepcopy(self._sampler))
        finally:
            np.random.set_state(state)
        return [np.asarray(indices, dtype=np.int64) for indices in batches]

    def _batch(self, indices):
        samples = [self._features[index] for index in indices]
        arrays = [
            self._pad_ids([sample.input_ids for sample in samples]),
            self._pad_types([sample.token_types for sample in samples]),
            self._stack_lengths([sample.valid_length for sample in samples]),
        ]
        if self._stack_labels is not None:
            arrays.append(self._stack_labels([sample.label for sample in samples]))
        # batchify gives arrays in memory shared between processes, which nobody here needs
        arrays = [array.as_in_context(self._ctx) for array in arrays]
        return Batch(*arrays[:3], arrays[3] if len(arrays) == 4 else None, indices)
