"""Batches for pre-training: of samples from a source, of pairs of text, of random tokens.

Pairs of text are read on the fly, from a single file, as Pytorchic BERT's pretrain.py reads them.
"""

import collections
import itertools
import random

import mxnet as mx
import numpy as np

from ...batches import Batch, Loader
from ...batches.sampling import Buckets
from ...errors import InputError
from ...util.arrays import pad_rows
from .samples import Samples, mask_weights
from .sources import ROW_BITS, Sharing

__all__ = [
    'NUM_BUCKETS',
    'PairLoader',
    'PretrainingLoader',
    'SyntheticLoader',
    'make_batch',
]

#: Buckets of batches of as many tokens: they only pay if a batch's lengths are alike.
NUM_BUCKETS = 10


class PretrainingLoader(Loader):
    """Batches of samples for pre-training.

    The samples of a few parts of the source are mixed with the rest of the parts before, and dealt
    to batches by length. Only the last batches of an epoch aren't full. The order
    of epoch e depends on ``(seed, e)``. `make_batch` makes the batches.

    Several workers each read their own parts: worker r the parts r, r + size, ... of the source.
    Which samples make a batch follows from their lengths, which the workers tell one another, so it
    is the same for any number of workers. Of each few parts that are mixed, a worker then gets the
    samples of its own rows from those that have read them; all workers have to use the batches in
    the same order. Mapped samples each worker takes for itself.

    Parameters
    ----------
    use_avg_len : bool
        The batch size is one in tokens: a batch has as many samples of the bucket's average length
        and a standard deviation, as GluonNLP has it; of a text, samples are taken for as long as
        the longest of a bucket.
    accumulate : int
        Batches per update. The samples of an update are drawn together, so they are the same for
        1 x 8, 2 x 4 and 2 workers x 4.
    **options
        `seed`, `ctx` and `workers`, see `Loader`. Workers without a method ``exchange`` each read
        all parts.
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
        self._circle_length = source.num_parts if source.mixes_all else circle_length
        self._buckets = Buckets(source.shortest, source.longest, batch_size, num_buckets)
        if use_avg_len:
            self._buckets.count_tokens(source.histogram)
        self._counts = {}
        self._sharing = Sharing(None if source.mixes_all else options.get('workers'))

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
        # of each worker's own parts as many wait, whatever the number of workers
        ahead = max(1, self._source.parts_ahead * self._sharing.size // self._circle_length)
        for at in range(0, len(order), self._circle_length):
            group = order[at : at + self._circle_length].tolist()
            waiting.append([self._source.part(number, epoch, self._seed) for number in group])
            for part in self._own_parts(waiting[-1]):
                part.begin()
            if len(waiting) > ahead:
                yield waiting.popleft(), False
        while waiting:
            yield waiting.popleft(), not waiting

    def _batches(self, groups, waiting, rng, start):
        done, first = 0, start // self._accumulate  # batches of updates
        ids = lengths = np.zeros(0, np.int64)  # of what the groups before have left
        left, skipped = None, {}  # the own samples themselves, or the parts that have them
        for parts, is_last in groups:
            fresh, own = len(ids), self._own_parts(parts)
            ids, lengths = self._add(parts, ids, lengths)
            batches, rest = self._deal(lengths, fresh, is_last, rng)
            is_own = self._sharing.is_own(ids >> ROW_BITS)
            kept = rest[is_own[rest]]
            if done + len(batches) > first:
                if left is None:
                    left = _gather(ids[:fresh][is_own[:fresh]], skipped)
                samples = self._read([left, *own], waiting)
                wanted = [list(self._shares(batches, done, start, r)) for r in range(self._size)]
                pool, places = self._sharing.give(samples, ids, wanted)
                for place, rows in wanted[self._rank]:
                    yield self._batch(place, pool, places[rows], ids[rows])
                left, skipped = samples.take((np.cumsum(is_own) - 1)[kept]), {}
                del samples, pool
            else:
                skipped.update((part.number, part) for part in own)
                skipped = {n: skipped[n] for n in np.unique(ids[kept] >> ROW_BITS).tolist()}
            done += len(batches)
            ids, lengths = ids[rest], lengths[rest]

    def _own_parts(self, parts):
        return [part for part in parts if self._sharing.is_own(part.number)]

    def _add(self, parts, ids, lengths):
        """Numbers and lengths of samples, with those of more parts."""
        of_number = {part.number: part for part in parts}
        found = self._sharing.of_all(list(of_number), lambda n: of_number[n].lengths())
        fresh = [(n << ROW_BITS) + np.arange(len(each)) for n, each in zip(of_number, found)]
        return np.concatenate([ids, *fresh]), np.concatenate([lengths, *found])

    def _read(self, parts, waiting):
        """The samples of this worker's parts."""

        def read():
            return self._source.join([parts[0], *(part.read() for part in parts[1:])])

        samples = self._sharing.attempt(read)
        for part in self._own_parts(itertools.chain(*waiting)):
            part.read_ahead()
        return samples

    def _shares(self, batches, done, start, rank):
        """A worker's rows of each part of updates' batches, and their numbers from `start` on."""
        for number, rows in enumerate(batches, done):
            for part in range(self._accumulate):
                place = number * self._accumulate + part
                if place >= start:
                    yield place, rows[part * self._size + rank :: self._size * self._accumulate]

    def _deal(self, lengths, fresh, is_last, rng):
        """Batches of samples; the samples from number `fresh` on are new."""
        order = np.arange(len(lengths))
        if self._shuffle:
            rng.shuffle(order[fresh:])
        batches, rest = self._buckets.deal(lengths, order, self._size * self._accumulate, is_last)
        if self._shuffle:
            batches = [batches[at] for at in rng.permutation(len(batches))]
        return batches, rest

    def _batch(self, number, samples, rows, ids):
        if not len(rows):
            return None
        return make_batch(
            samples.take(rows),
            ids,
            self._pad_val,
            self._round_to,
            self._context(number),
            self._source.max_len,
        )


def _gather(ids, parts):
    """Samples of several parts by their numbers, in that order."""
    rows = ids & ((1 << ROW_BITS) - 1)
    return Samples.gather(ids >> ROW_BITS, rows, lambda number: parts[number].read())


def make_batch(samples, indices, pad_val, round_to, ctx, longest=None):
    """A batch of samples, as narrow as they and `round_to` allow.

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


_MARGIN = 2000  # bytes at the end of the file where no random text begins


class PairLoader:
    """Batches of pairs of texts with masked words, from a text too large to be in memory.

    The text has one sentence per line, and an empty line between documents. The first text of a
    pair is read where the last pair ended. The second one follows it or, as often, is read at a
    random place. An epoch ends where the text does, or where a random place is too near to its
    end; the pairs of a batch that isn't full are left out.

    The random numbers are those of Python's ``random`` with the seed, drawn as in the original, so
    that its batches are these.
    """

    def __init__(
        self,
        path,
        tokenizer,
        batch_size,
        max_seq_length=512,
        max_predictions_per_seq=20,
        masked_lm_prob=0.15,
        short_seq_prob=0.1,
        seed=0,
        ctx=None,
    ):
        try:
            # both at once, since pairs are read from two places
            self._text, self._elsewhere = (
                open(path, encoding='utf-8', errors='ignore')  # noqa: SIM115 (see `close`)
                for _ in range(2)
            )
            size = self._elsewhere.seek(0, 2)
        except OSError as error:
            raise InputError(f'cannot read the text {path!r}: {error.strerror}') from error
        if size < _MARGIN:
            self.close()
            raise InputError(
                f'the text {path!r} has {size} bytes: at least {_MARGIN} are needed, as pairs of '
                'texts from random places are made of it'
            )
        self._last_place = size - _MARGIN
        self._tokenizer, self._batch_size = tokenizer, batch_size
        self._max_length, self._short = max_seq_length, short_seq_prob
        self._max_masks, self._mask_prob = max_predictions_per_seq, masked_lm_prob
        self._seed = seed
        self._contexts = list(ctx) if isinstance(ctx, (list, tuple)) else [ctx]
        self._tokens = list(dict.fromkeys(tokenizer.vocab.idx_to_token))
        self._rewind()

    def _rewind(self):
        self._random = random.Random(self._seed)
        self._text.seek(0)
        self._at = (0, 0)  # epoch and number of the next batch

    def close(self):
        """Close the file."""
        self._text.close()
        self._elsewhere.close()

    def epoch(self, epoch, start=0):
        """Iterate over the batches of an epoch from number `start` on: see `Loader`.

        What comes before them is read again, unless the last batch was the one before.
        """
        if self._at != (epoch, start):
            self._rewind()
            while self._at != (epoch, start):
                if self._at[0] > epoch:
                    return
                self._read_batch()
        while True:
            pairs = self._read_batch()
            if pairs is None:
                return
            yield self._batch(pairs, self._contexts[(self._at[1] - 1) % len(self._contexts)])

    def position(self):
        """Where the next batch begins, as plain JSON for `go_to`."""
        return [*self._at, self._text.tell(), self._random.getstate()]

    def go_to(self, position):
        """Go on where another loader of the same text was."""
        epoch, number, place, (version, state, gauss) = position
        self._at = (epoch, number)
        self._text.seek(place)
        self._random.setstate((version, tuple(state), gauss))

    def _read_batch(self):
        """The pairs of a batch, or None at the end of the epoch."""
        pairs = []
        for _ in range(self._batch_size):
            pair = self._read_pair()
            if pair is None:
                self._text.seek(0)
                self._at = (self._at[0] + 1, 0)
                return None
            pairs.append(self._mask(*pair))
        self._at = (self._at[0], self._at[1] + 1)
        return pairs

    def _read_pair(self):
        draw = self._random
        half = int(self._max_length / 2)
        length = draw.randint(1, half) if draw.random() < self._short else half
        follows = draw.random() < 0.5
        first = self._read_tokens(self._text, length, restarts=True)
        self._elsewhere.seek(draw.randint(0, self._last_place))
        self._elsewhere.readline()  # the rest of a sentence
        second = self._read_tokens(self._text if follows else self._elsewhere, length)
        return None if first is None or second is None else (follows, first, second)

    def _read_tokens(self, file, length, restarts=False):
        """Sentences with at least that many tokens; None at the end of the text."""
        tokens = []
        while len(tokens) < length:
            line = file.readline()
            if not line:
                return None
            line = line.strip()
            if line:
                tokens += self._tokenizer.tokenize(line)
            elif restarts:
                tokens = []
            else:
                break
        return tokens

    def _mask(self, follows, first, second):
        """Ids, token types, places of masks, words there, and whether the second text follows."""
        while len(first) + len(second) > self._max_length - 3:
            (first if len(first) > len(second) else second).pop()
        tokens = ['[CLS]', *first, '[SEP]', *second, '[SEP]']
        types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        draw = self._random
        count = min(self._max_masks, max(1, int(round(len(tokens) * self._mask_prob))))
        places = [n for n, token in enumerate(tokens) if token not in ('[CLS]', '[SEP]')]
        draw.shuffle(places)
        places = places[:count]
        words = [tokens[place] for place in places]
        for place in places:
            if draw.random() < 0.8:
                tokens[place] = '[MASK]'
            elif draw.random() < 0.5:
                tokens[place] = self._tokens[draw.randint(0, len(self._tokens) - 1)]
        ids = self._tokenizer.convert_tokens_to_ids
        return ids(tokens), types, places, ids(words), follows

    def _batch(self, pairs, ctx):
        ids, types, places, words, follows = zip(*pairs)
        samples = Samples(
            pad_rows(ids),
            pad_rows(types),
            pad_rows(places, length=self._max_masks),
            pad_rows(words, length=self._max_masks),
            mask_weights(places, self._max_masks),
            1 - np.array(follows, np.int32),
            np.array(list(map(len, ids)), np.int32),
        )
        pad = self._tokenizer.pad_token_id
        return make_batch(samples, np.arange(len(pairs)), pad, 1, ctx)


_SYNTHETIC = 1000  # batches of an epoch


class SyntheticLoader(Loader):
    """One batch of random tokens per context, repeated: to measure a training's speed."""

    def __init__(self, batch_size, max_seq_length, max_predictions, vocab, **options):
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

    def __len__(self):
        return _SYNTHETIC

    def epoch(self, epoch, start=0):
        for number in range(start, len(self)):
            yield self._batches[number % len(self._batches)]
