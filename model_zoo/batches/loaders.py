"""The family of loaders: batches of samples, always the same ones for a seed and an epoch."""

import mxnet as mx

from ..errors import InputError
from .batch import make_batch
from .sampling import bucket_batches, longest_first, random_state


class Loader:
    """Batches of data; `TrainingLoop` and `predict` take any loader.

    Subclasses give ``epoch`` and ``__len__``.

    Parameters
    ----------
    seed : int
    ctx : mxnet.Context or list of mxnet.Context, optional
        The batches' devices; several take turns.
    workers : object, optional
        With ``rank`` and ``size``. Worker r has the samples ``r::size`` of each batch, so that all
        workers together see what a single one would with the sum of their batch sizes.
    """

    def __init__(self, seed=0, ctx=None, workers=None):
        self._seed = seed
        self._contexts = list(ctx) if isinstance(ctx, (list, tuple)) else [ctx or mx.cpu()]
        self._rank, self._size = (0, 1) if workers is None else (workers.rank, workers.size)

    def __len__(self):
        """Return the number of batches of an epoch."""

    def count_batches(self, epoch):
        """Return the number of batches of epoch `epoch`, if epochs have different numbers."""
        return len(self)

    def epoch(self, epoch, start=0):
        """Iterate over the batches of epoch `epoch`, counted from 0, from number `start` on.

        Yields
        ------
        Batch or None
            None for a batch that has no part for this worker.
        """

    def __iter__(self):
        """Iterate over the batches of epoch 0."""
        return self.epoch(0)

    def _context(self, number):
        """Return the device of batch `number`."""
        return self._contexts[number % len(self._contexts)]

    def close(self):
        """End the loader's processes, and remove its temporary files."""


class SampleLoader(Loader):
    """Batches of samples that are in memory or made on demand.

    Subclasses give ``batch_indices``, and set ``_pad_val`` and ``_round_to``.
    """

    _pad_val, _round_to = 0, None

    def __init__(self, samples, **options):
        super().__init__(**options)
        self.samples = samples

    @property
    def num_samples(self):
        """Number of samples of an epoch."""
        return len(self.samples)

    def batch_indices(self, epoch):
        """Return the samples of each batch of epoch `epoch`, for all workers."""

    def epoch(self, epoch, start=0):
        for number, indices in enumerate(self.batch_indices(epoch)[start:], start):
            indices = indices[self._rank :: self._size]
            yield self._batch(indices, self._context(number)) if len(indices) else None

    def _batch(self, indices, ctx):
        samples = [self.samples[index] for index in indices]
        return make_batch(samples, self._pad_val, self._round_to, ctx, indices)


class BucketedLoader(SampleLoader):
    """Padded batches of samples of similar length.

    When shuffling, samples are drawn from buckets of like length (GluonNLP's `FixedBucketSampler`),
    and the order of epoch e depends on ``(seed, e)`` only: a resumed run sees the batches of an
    unbroken one. The sampler draws from NumPy's global generator, whose state is set meanwhile and
    restored afterwards (other threads shouldn't draw then). Without shuffling, samples are sorted
    by length, longest first, the same in all epochs; ``Batch.indices`` leads back to the input
    order.

    Parameters
    ----------
    features : sequence of Sample
        All with a label, or all without.
    batch_size : int
        Samples of a batch, the last one of each bucket apart; with several workers, of each part.
    shuffle : bool
    seed : int
    num_buckets : int, optional
        At most; small data sets get fewer, so that not every other batch is an unfilled last one.
        Default: 10, with `batch_tokens` 20.
    round_to : int, optional
        Pad to a multiple of this.
    pad_val : int
        Id of the padding token (1 in GluonNLP's vocabularies, 0 in Google's).
    ctx, workers
        See `Loader`.
    batch_tokens : int, optional
        Used instead of `batch_size`: a batch has at most this many tokens, padding and all choices
        of a sample included, unless it is a single sample. A bucket's batches have as many samples
        as fit if all are as long as its longest one. With several workers it is the limit of each
        part; one part may have a sample more, because the samples are dealt out one by one, so that
        the batches are the same as for a single worker with the sum of the limits.
    """

    def __init__(
        self,
        features,
        batch_size=None,
        shuffle=False,
        seed=0,
        num_buckets=None,
        round_to=None,
        *,
        pad_val,
        ctx=None,
        workers=None,
        batch_tokens=None,
    ):
        if not len(features):
            raise InputError('no samples to make batches of')
        super().__init__(features, seed=seed, ctx=ctx, workers=workers)
        self._pad_val, self._round_to = pad_val, round_to
        if num_buckets is None:
            num_buckets = 10 if batch_tokens is None else 20
        if batch_tokens is None:
            lengths = [feature.valid_length for feature in features]
            batch_size *= self._size
        else:
            lengths = [feature.padded_size(round_to) for feature in features]
            batch_size, batch_tokens = len(features), batch_tokens * self._size
        if shuffle:
            self._draw = bucket_batches(lengths, batch_size, num_buckets, batch_tokens)
        else:
            batches = longest_first(lengths, batch_size, batch_tokens)
            self._draw = lambda random: batches
        self._length = len(self.batch_indices(0))

    def __len__(self):
        """Return the number of batches of an epoch, the same in all."""
        return self._length

    def batch_indices(self, epoch):
        return self._draw(random_state(self._seed, epoch))
