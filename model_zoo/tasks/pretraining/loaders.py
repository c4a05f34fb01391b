"""Batches for pre-training: of samples from a source, or of random tokens."""

import collections
import itertools

import mxnet as mx
import numpy as np

from ...batches import Batch, Loader
from ...batches.sampling import Buckets
from .files import Samples, fit_columns
from .processes import result_of

#: bits of a sample's number; the higher ones are the number of its part
ROW_BITS = 32


class PretrainingLoader(Loader):
    """Batches of samples for pre-training.

    The samples of a few parts of the source are mixed with what the parts before have left, and
    dealt to batches by length. Only the last batches of an epoch aren't full. The order of epoch e
    depends on ``(seed, e)``. `make_batch` makes the batches. Which samples make a batch follows
    from their lengths, so they are the same for any number of workers; each worker makes its rows.

    Parameters
    ----------
    use_avg_len : bool
        `batch_size` counts tokens. As in GluonNLP, a batch is full if its samples have the bucket's
        average length plus a standard deviation; samples of a text count as long as the longest of
        a bucket.
    accumulate : int
        Batches per update. The samples of an update are drawn together, so they are the same for
        1 x 8, 2 x 4 and 2 workers x 4.
    **options
        `seed`, `ctx` and `workers`, see `Loader`.
    """

    def __init__(
        self,
        source,
        batch_size,
        *,
        num_buckets=1,
        use_avg_len=False,
        shuffle=True,
        round_to=8,
        circle_length=2,
        accumulate=1,
        **options,
    ):
        super().__init__(**options)
        self._seed %= 2**32
        self._source, self._shuffle = source, shuffle
        self._pad_val = source.vocab[source.vocab.padding_token]
        self._round_to, self._accumulate = round_to, accumulate
        self._circle_length = circle_length
        self._buckets = Buckets(source.shortest, source.longest, batch_size, num_buckets)
        if use_avg_len:
            self._buckets.count_tokens(source.histogram)
        self._counts = {}

    def __len__(self):
        """Return the number of batches of an epoch; of a text, of epoch 0."""
        return self.count_batches(0)

    def count_batches(self, epoch):
        """Return the number of batches of an epoch; samples of a text are made to count them."""
        histogram = self._source.histogram_of(epoch)
        if histogram is not None:
            lengths = np.flatnonzero(histogram)
            counts = np.bincount(self._buckets.of(lengths), weights=histogram[lengths])
            of_update = self._buckets.sizes * self._size * self._accumulate
            return int(np.ceil(counts / of_update).sum()) * self._accumulate
        if epoch not in self._counts:
            self._counts[epoch] = sum(1 for _ in self.epoch(epoch))
        return self._counts[epoch]

    def close(self):
        self._source.close()

    def epoch(self, epoch, start=0):
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        source, size = self._source, self._circle_length
        order = np.array(source.parts(epoch))
        if self._shuffle:
            order = order[rng.permutation(len(order))]
        groups = [order[at : at + size].tolist() for at in range(0, len(order), size)]
        coming, reading = iter(groups), collections.deque()
        done, ids, left = 0, np.zeros(0, np.int64), Samples.empty()  # of the groups before
        try:
            for group in groups:
                free = 1 + max(1, source.parts_ahead // size) - len(reading)
                for numbers in itertools.islice(coming, free):
                    reading.append([source.read(n, epoch, self._seed) for n in numbers])
                fresh, parts = len(ids), [result_of(future) for future in reading.popleft()]
                new = [(n << ROW_BITS) + np.arange(p.count) for n, p in zip(group, parts)]
                ids, samples = np.concatenate([ids, *new]), Samples.concatenate([left, *parts])
                batches, rest = self._deal(samples.valid_lengths, fresh, group is groups[-1], rng)
                yield from self._shares(batches, done, start, samples, ids)
                done, ids, left = done + len(batches), ids[rest], samples.take(rest)
                del parts, samples
        finally:
            for future in itertools.chain(*reading):
                future.cancel()

    def _deal(self, lengths, fresh, is_last, rng):
        """Deal samples to batches; the samples from number `fresh` on are new."""
        order = np.arange(len(lengths))
        if self._shuffle:
            rng.shuffle(order[fresh:])
        batches, rest = self._buckets.deal(lengths, order, self._size * self._accumulate, is_last)
        if self._shuffle:
            batches = [batches[at] for at in rng.permutation(len(batches))]
        return batches, rest

    def _shares(self, batches, done, start, samples, ids):
        """Yield this worker's part of each batch from number `start` on."""
        step = self._size * self._accumulate
        for number, rows in enumerate(batches, done):
            for part in range(self._accumulate):
                index = number * self._accumulate + part
                mine = rows[part * self._size + self._rank :: step]
                if index >= start and not len(mine):
                    yield None
                elif index >= start:
                    options = self._pad_val, self._round_to, self._context(index)
                    yield make_batch(samples.take(mine), ids[mine], *options, self._source.max_len)


def make_batch(samples, indices, pad_val, round_to, ctx, longest=None):
    """Make a batch of samples, as narrow as they and `round_to` allow.

    Parameters
    ----------
    indices : numpy.ndarray, shape (samples,), int64

    Returns
    -------
    Batch
        Besides `words`, `token_types`, `valid_length` and `indices` (``part << 32 | row``, the
        files sorted by name) it has:

        - `masked_positions`, `masked_ids`, shape (batch, masks), int32: 0 where a sample has no
          more masks;
        - `masked_weights`, shape (batch, masks), float32: 1 for a mask, 0 for padding;
        - `next_sentence_labels`, shape (batch,), int32: 1 where the second segment is from another
          document;
        - `num_masked`, `num_tokens`, int: how many masks and tokens there are, padding not counted.
    """
    lengths, weights = samples.valid_lengths, samples.masked_lm_weights
    counts = weights.sum(axis=1).astype(int)
    length = -(-int(lengths.max()) // round_to) * round_to
    if longest is not None:
        length = min(length, longest)
    masks = -(-max(1, int(counts.max())) // round_to) * round_to
    ids = fit_columns(samples.input_ids, length)
    ids[np.arange(length) >= lengths[:, None]] = pad_val

    def put(array, dtype='int32'):
        return mx.nd.array(array, ctx=ctx, dtype=dtype)

    return Batch(
        put(ids),
        put(fit_columns(samples.segment_ids, length)),
        put(lengths, 'float32'),
        indices=indices,
        masked_positions=put(fit_columns(samples.masked_lm_positions, masks)),
        masked_ids=put(fit_columns(samples.masked_lm_ids, masks)),
        masked_weights=put(fit_columns(weights, masks), 'float32'),
        next_sentence_labels=put(samples.next_sentence_labels),
        num_masked=int(counts.sum()),
        num_tokens=int(lengths.sum()),
    )


_SYNTHETIC = 1000  # batches of an epoch


class SyntheticLoader(Loader):
    """One batch of random tokens per context, repeated: to measure a training's speed."""

    def __init__(self, batch_size, max_seq_length, max_predictions, vocab, **options):
        super().__init__(**options)
        rng = np.random.default_rng([self._seed % 2**32, self._rank])
        shape = batch_size, max_seq_length
        masks = batch_size, max_predictions
        positions = np.argsort(rng.random(shape), axis=1)[:, :max_predictions]
        segments = np.zeros(shape, np.int32)
        segments[:, max_seq_length // 2 :] = 1
        samples = Samples(
            rng.integers(len(vocab), size=shape, dtype=np.int32),
            segments,
            np.sort(positions, axis=1).astype(np.int32),
            rng.integers(len(vocab), size=masks, dtype=np.int32),
            np.ones(masks, np.float32),
            rng.integers(2, size=batch_size, dtype=np.int32),
            np.full(batch_size, max_seq_length, np.int32),
        )
        indices = np.arange(batch_size)
        # neither the length nor the number of masks is rounded: they are as asked for
        self._batches = [make_batch(samples, indices, 0, 1, ctx) for ctx in self._contexts]

    def __len__(self):
        return _SYNTHETIC

    def epoch(self, epoch, start=0):
        for number in range(start, len(self)):
            yield self._batches[number % len(self._batches)]
