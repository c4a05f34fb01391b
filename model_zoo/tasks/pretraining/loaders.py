"""Batches of samples for pre-training, from a source or synthetic."""

import collections
import itertools

import mxnet as mx
import numpy as np

from ...batches import Batch, Loader
from ...batches.loaders import check_positive
from ...batches.sampling import Buckets
from ...errors import InputError
from .samples import Samples
from .sources import ROW_BITS

__all__ = ['NUM_BUCKETS', 'PretrainingLoader', 'SyntheticLoader', 'make_batch']

#: Buckets of batches of as many tokens: they only pay if a batch's lengths are alike.
NUM_BUCKETS = 10


class PretrainingLoader(Loader):
    """Batches of samples for pre-training.

    The samples of a few parts of the source are mixed with the rest of the parts before, and dealt
    to batches by length. Only the last batches of an epoch aren't full. The order
    of epoch e depends on ``(seed, e)``. `make_batch` makes the batches.

    Parameters
    ----------
    source : Source
    batch_size : int
        Of one worker, and one device.
    num_buckets : int
        Ranges of lengths; a batch's samples are all from one range.
    use_avg_len : bool
        The batch size is one in tokens: a batch has as many samples of the bucket's average length
        and a standard deviation, as GluonNLP has it; of a text, samples are taken for as long as
        the longest of a bucket.
    shuffle : bool
        Without it, batches come part by part, and within a part bucket by bucket.
    round_to : int
        Lengths and numbers of masks are padded to multiples of this.
    circle_length : int
        How many parts are mixed.
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
        check_positive(
            batch_size=batch_size,
            num_buckets=num_buckets,
            round_to=round_to,
            circle_length=circle_length,
            accumulate=accumulate,
        )
        super().__init__(**options)
        self._seed %= 2**32
        self._source, self._shuffle = source, shuffle
        self._pad_val = source.vocab[source.vocab.padding_token]
        self._round_to, self._accumulate = round_to, accumulate
        self._circle_length = source.num_parts if source.mixes_all else circle_length
        self._buckets = Buckets(source.shortest, source.longest, batch_size, num_buckets)
        if use_avg_len:
            self._buckets.count_tokens(source.histogram)
        self._counts = {}

    def __len__(self):
        """Number of batches of an epoch. A text's epochs differ: then that of epoch 0."""
        return self.count_batches(0)

    def count_batches(self, epoch):
        """Number of batches of an epoch; of a text, the samples are made to count them."""
        histogram = self._source.histogram_of(epoch)
        if histogram is not None:
            lengths = np.flatnonzero(histogram)
            counts = np.bincount(self._buckets.of(lengths), weights=histogram[lengths])
            of_update = self._buckets.sizes * self._size * self._accumulate
            return int(np.ceil(counts / of_update).sum()) * self._accumulate
        if epoch not in self._counts:
            self._counts[epoch] = sum(1 for _ in self.epoch(epoch))
        return self._counts[epoch]

    @property
    def num_samples(self):
        """Number of samples of an epoch, which isn't known of a text."""
        return int(self._source.histogram.sum())

    def close(self):
        self._source.close()

    def epoch(self, epoch, start=0):
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        waiting = collections.deque()  # groups of parts
        try:
            yield from self._batches(self._open(epoch, waiting, rng), waiting, rng, start)
        finally:
            for part in itertools.chain(*waiting):
                part.cancel()

    def _open(self, epoch, waiting, rng):
        """Groups of parts, and whether each is the last one; the next ones are waiting."""
        count = self._source.num_parts
        order = rng.permutation(count) if self._shuffle else np.arange(count)
        ahead = max(1, self._source.parts_ahead // self._circle_length)
        for at in range(0, len(order), self._circle_length):
            group = order[at : at + self._circle_length].tolist()
            waiting.append([self._source.part(number, epoch, self._seed) for number in group])
            if len(waiting) > ahead:
                yield waiting.popleft(), False
        while waiting:
            yield waiting.popleft(), not waiting

    def _batches(self, groups, waiting, rng, start):
        done, first = 0, start // self._accumulate  # batches of updates
        ids = lengths = np.zeros(0, np.int64)  # of what the groups before have left
        left, skipped = None, {}  # the samples themselves, or the parts that have them
        for parts, is_last in groups:
            fresh = len(ids)
            ids = np.concatenate([ids, *(part.ids() for part in parts)])
            lengths = np.concatenate([lengths, *(part.lengths() for part in parts)])
            batches, rest = self._deal(lengths, fresh, is_last, rng)
            if done + len(batches) > first:
                if left is None:
                    left = _gather(ids[:fresh], skipped)
                samples = self._source.join([left, *(part.read() for part in parts)])
                for part in itertools.chain(*waiting):
                    part.read_ahead()
                for number, rows in enumerate(batches, done):
                    for part in range(self._accumulate):
                        place = number * self._accumulate + part
                        if place >= start:
                            yield self._batch(place, samples, ids, rows[self._own(part)])
                left, skipped = samples.take(rest), {}
                del samples
            else:
                skipped.update((part.number, part) for part in parts)
                skipped = {n: skipped[n] for n in np.unique(ids[rest] >> ROW_BITS).tolist()}
            done += len(batches)
            ids, lengths = ids[rest], lengths[rest]

    def _own(self, part):
        """Which samples of an update's batch are this worker's in a part of the update."""
        return slice(part * self._size + self._rank, None, self._size * self._accumulate)

    def _deal(self, lengths, fresh, is_last, rng):
        """Batches of samples; the samples from number `fresh` on are new."""
        order = np.arange(len(lengths))
        if self._shuffle:
            rng.shuffle(order[fresh:])
        batches, rest = self._buckets.deal(
            lengths, order, self._size * self._accumulate, is_last
        )
        if self._shuffle:
            batches = [batches[at] for at in rng.permutation(len(batches))]
        return batches, rest

    def _batch(self, number, samples, ids, rows):
        if not len(rows):
            return None
        return make_batch(
            samples.take(rows),
            ids[rows],
            self._pad_val,
            self._round_to,
            self._context(number),
            self._source.max_len,
        )


def _gather(ids, parts):
    """Samples of several parts by their numbers, in that order."""
    owners = ids >> ROW_BITS
    order = np.argsort(owners, kind='stable')
    rows = ids[order] & ((1 << ROW_BITS) - 1)
    pieces = [
        parts[number].read().take(rows[owners[order] == number])
        for number in np.unique(owners).tolist()
    ]
    return Samples.concatenate([Samples.none(), *pieces]).take(np.argsort(order))


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
    ids = _fit(samples.input_ids, length)
    ids[np.arange(length) >= lengths[:, None]] = pad_val

    def put(array, dtype='int32'):
        return mx.nd.array(array, ctx=ctx, dtype=dtype)

    return Batch(
        put(ids),
        put(_fit(samples.segment_ids, length)),
        put(lengths, 'float32'),
        indices=indices,
        masked_positions=put(_fit(samples.masked_lm_positions, masks)),
        masked_ids=put(_fit(samples.masked_lm_ids, masks)),
        masked_weights=put(_fit(weights, masks), 'float32'),
        next_sentence_labels=put(samples.next_sentence_labels),
        num_masked=int(counts.sum()),
        num_tokens=int(lengths.sum()),
    )


def _fit(array, width):
    """A copy with as many columns as wanted, padded with zeros."""
    result = np.zeros((len(array), width), array.dtype)
    width = min(width, array.shape[1])
    result[:, :width] = array[:, :width]
    return result


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
