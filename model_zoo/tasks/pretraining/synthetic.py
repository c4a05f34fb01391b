"""Batches of random tokens for pre-training."""

import numpy as np

from ...batches import Loader
from ...batches.loaders import check_positive
from ...errors import InputError
from .loaders import make_batch
from .samples import Samples

__all__ = ['SyntheticLoader']


class SyntheticLoader(Loader):
    """One batch of random tokens per context, repeated: to measure a training's speed.

    Parameters
    ----------
    batch_size : int
        Of one worker, and one device.
    max_seq_length : int
        Of all sequences.
    max_predictions : int
        Masks of each.
    vocab : gluonnlp.vocab.BERTVocab
    num_batches : int
        Of an epoch.
    **options
        `seed`, `ctx` and `workers`, see `Loader`; each worker has a batch of its own.
    """

    def __init__(
        self,
        batch_size,
        max_seq_length,
        max_predictions,
        vocab,
        *,
        num_batches=1000,
        **options,
    ):
        check_positive(
            batch_size=batch_size,
            max_seq_length=max_seq_length,
            max_predictions=max_predictions,
            num_batches=num_batches,
        )
        if max_predictions > max_seq_length:
            raise InputError(f'{max_predictions} masks in sequences of {max_seq_length} tokens')
        super().__init__(**options)
        rng = np.random.default_rng([self._seed % 2**32, self._rank])
        shape = batch_size, max_seq_length
        masks = batch_size, max_predictions
        places = np.argsort(rng.random(shape), axis=1)[:, :max_predictions]
        segments = np.zeros(shape, np.int32)
        segments[:, max_seq_length // 2 :] = 1
        samples = Samples(
            rng.integers(len(vocab), size=shape, dtype=np.int32),
            segments,
            np.sort(places, axis=1).astype(np.int32),
            rng.integers(len(vocab), size=masks, dtype=np.int32),
            np.ones(masks, np.float32),
            rng.integers(2, size=batch_size, dtype=np.int32),
            np.full(batch_size, max_seq_length, np.int32),
        )
        indices = np.arange(batch_size)
        # neither the length nor the number of masks is rounded: they are as asked for
        self._batches = [make_batch(samples, indices, 0, 1, each) for each in self._contexts]
        self._num_batches = num_batches

    def __len__(self):
        return self._num_batches

    def epoch(self, epoch, start=0):
        for number in range(start, self._num_batches):
            yield self._batches[number % len(self._batches)]
