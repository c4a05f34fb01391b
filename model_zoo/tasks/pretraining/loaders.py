"""Batches of samples for pre-training, from a source."""

import collections
import itertools

import mxnet as mx
import numpy as np

from ...batches import Batch, Loader
from ...batches.loaders import check_positive
from ...batches.sampling import Buckets
from .dealing import Group, Held, deal, of_part, owners_of
from .parts import ROW_BITS
from .samples import Samples

__all__ = ['PretrainingLoader', 'make_batch']


class PretrainingLoader(Loader):
    """Batches of samples for pre-training.

    The samples of a few parts of the source are mixed with the rest of the parts before, and dealt
    to batches by length. Only the last batches of an epoch aren't full. The order
    of epoch e depends on ``(seed, e)``. `make_batch` makes the batches.

    Each batch has samples of all parts that are mixed, each row from its own stretch of them (see
    `spread_rows`). So each of 2, 4, 8, ... workers reads its own of these parts alone, or shares
    one with others; an update's samples are the same for any number of workers. Without `shuffle`
    all workers read all parts.

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
        How many parts are mixed; give as many as workers, or more, for each to read other ones.
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
        groups, waiting, held = collections.deque(), collections.deque(), {}
        ahead = 0 if self._source.histogram_of(epoch) is None else 1  # else the first would wait
        try:
            for group in self._groups(epoch, start, groups, held):
                waiting.append(group)
                if len(waiting) > ahead:
                    yield from self._use(waiting, start, held)
            while waiting:
                yield from self._use(waiting, start, held)
        finally:
            for part in itertools.chain(*groups, (each.part for each in held.values())):
                part.cancel()

    def _use(self, waiting, start, held):
        """The batches of the first group that waits."""
        group = waiting.popleft()
        for number in owners_of(group.own):
            held[number].read()
        for each in waiting:
            for number in owners_of(each.own):
                held[number].part.read_ahead()
        for number, (bucket, codes) in enumerate(group.batches, group.first):
            for part in range(self._accumulate):
                place = number * self._accumulate + part
                if place >= start:
                    yield self._batch(place, bucket, codes[self._own(part)], held)
        left = owners_of(group.left)
        needed = left.union(*(owners_of(each.own + each.left) for each in waiting))
        for number in set(held).difference(needed):
            del held[number]
        for number in left:
            held[number].shrink(of_part(number, group.left))

    def _own(self, part):
        """Which samples of an update's batch are this worker's in a part of the update."""
        return slice(part * self._size + self._rank, None, self._size * self._accumulate)

    def _open(self, epoch, rng, groups):
        """Groups of parts, and whether each is the last one; the next ones are in `groups`."""
        count = self._source.num_parts
        order = rng.permutation(count) if self._shuffle else np.arange(count)
        ahead = max(1, self._source.parts_ahead // self._circle_length)
        for at in range(0, len(order), self._circle_length):
            numbers = order[at : at + self._circle_length].tolist()
            groups.append([self._source.part(number, epoch, self._seed) for number in numbers])
            if len(groups) > ahead:
                yield groups.popleft(), False
        while groups:
            yield groups.popleft(), not groups

    def _groups(self, epoch, start, groups, held):
        """Deal the samples of a few parts at a time; `held` gets the parts that are needed here.

        Samples are known by buckets and codes, ``part << 32 | number``, where the number counts a
        part's samples of a bucket. So of the parts that other workers read, nothing need be known
        but how many samples they have.
        """
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        sizes = (self._buckets.sizes * self._size * self._accumulate).tolist()
        left, done = [np.zeros(0, np.int64)] * len(sizes), 0
        for parts, is_last in self._open(epoch, rng, groups):
            counts = np.array([part.counts(self._buckets) for part in parts])
            batches = []
            for bucket, size in enumerate(sizes):
                fresh = [
                    (part.number << ROW_BITS) + np.arange(count)
                    for part, count in zip(parts, counts[:, bucket].tolist())
                ]
                cut, left[bucket] = deal(
                    left[bucket], np.concatenate(fresh), size, self._shuffle, is_last
                )
                batches += [(bucket, codes) for codes in cut]
            if self._shuffle:
                batches = [batches[at] for at in rng.permutation(len(batches))]
            skipped = min(len(batches), max(0, start // self._accumulate - done))
            group = Group(
                batches[skipped:],
                done + skipped,
                self._shares(batches[skipped:]),
                self._shares(enumerate(left)),
            )
            done += len(batches)
            for part in parts:
                wanted = of_part(part.number, group.own + group.left)
                if wanted:
                    held[part.number] = self._held(part, wanted, epoch)
            yield group

    def _shares(self, batches):
        """What is this worker's of batches, or of what is left over for each bucket."""
        return [(bucket, codes[self._rank :: self._size]) for bucket, codes in batches]

    def _held(self, part, wanted, epoch):
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, epoch, part.number]))
        # what is mapped isn't in memory, and a single worker wants all
        keeps_all = self._source.mixes_all or self._size == 1
        return Held(part, self._buckets, rng if self._shuffle else None, wanted, keeps_all)

    def _batch(self, place, bucket, codes, held):
        if not len(codes):
            return None
        owners = codes >> ROW_BITS
        found = [
            held[number].take(bucket, codes[owners == number])
            for number in np.unique(owners).tolist()
        ]
        back = np.argsort(np.argsort(owners, kind='stable'))
        return make_batch(
            Samples.concatenate([samples for _, samples in found]).take(back),
            np.concatenate([ids for ids, _ in found])[back],
            self._pad_val,
            self._round_to,
            self._context(place),
            self._source.max_len,
        )


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
