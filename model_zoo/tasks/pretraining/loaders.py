"""Samples for pre-training as batches: from files, from text, or made up."""

import collections
import concurrent.futures
import dataclasses
import itertools

import mxnet as mx
import numpy as np

from ...errors import InputError
from .batches import Buckets, check_positive, make_batch
from .create import PART_BYTES, plan_parts
from .documents import Corpus, matching_files
from .instances import SampleMaker
from .processes import Processes
from .shards import Samples, read_lengths, read_shard

__all__ = ['PretrainingLoader', 'RawTextLoader', 'SyntheticLoader']

_ROW_BITS = 32  # of a sample's number; above them is that of its part


class _Part:
    """Samples that are read together, a file or a span of a text.

    Subclasses give ``lengths()``, the samples' valid lengths, and ``read()``, the samples.
    """

    def __init__(self, number):
        self.number = number

    def ids(self):
        """Numbers of the samples."""
        return (self.number << _ROW_BITS) + np.arange(len(self.lengths()))

    def read_ahead(self):
        """Begin to read, while others are used."""

    def cancel(self):
        """Don't read what hasn't been read yet."""


class _StreamingLoader:
    """Batches of parts of which a few are in memory at a time.

    The samples of `circle_length` parts are mixed with what the parts before them have left, and
    dealt to batches by their lengths; only the last batches of an epoch aren't full. The order of
    epoch e depends on ``(seed, e)``.

    Subclasses give ``_buckets``, and ``_part(epoch, number)``.
    """

    _groups_ahead = 1
    _longest = None  # of the model's positions
    _join = staticmethod(Samples.concatenate)

    def __init__(
        self,
        batch_size,
        num_parts,
        vocab,
        ctx=None,
        seed=0,
        shuffle=True,
        workers=None,
        round_to=8,
        circle_length=2,
        accumulate=1,
    ):
        check_positive(
            batch_size=batch_size,
            round_to=round_to,
            circle_length=circle_length,
            accumulate=accumulate,
        )
        self._num_parts, self._circle_length = num_parts, circle_length
        self._pad_val = vocab[vocab.padding_token]
        self._contexts = _contexts(ctx)
        self._seed, self._shuffle = seed % 2**32, shuffle
        self._rank, self._size = (0, 1) if workers is None else (workers.rank, workers.size)
        self._accumulate = accumulate
        self._round_to = round_to

    def __iter__(self):
        return self.epoch(0)

    def epoch(self, epoch, start=0):
        """Iterate over the batches of epoch `epoch`, counted from 0, from number `start` on.

        Yields
        ------
        PretrainingBatch or None
            None where nothing of a batch is left for this worker.
        """
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        waiting = collections.deque()  # groups of parts
        try:
            yield from self._batches(self._open(epoch, waiting, rng), waiting, rng, start)
        finally:
            for part in itertools.chain(*waiting):
                part.cancel()

    def _open(self, epoch, waiting, rng):
        """Groups of parts, and whether each is the last one; the next ones are waiting."""
        order = rng.permutation(self._num_parts) if self._shuffle else np.arange(self._num_parts)
        for at in range(0, len(order), self._circle_length):
            group = order[at : at + self._circle_length].tolist()
            waiting.append([self._part(epoch, number) for number in group])
            if len(waiting) > self._groups_ahead:
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
                samples = self._join([left, *(part.read() for part in parts)])
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
                skipped = {n: skipped[n] for n in np.unique(ids[rest] >> _ROW_BITS).tolist()}
            done += len(batches)
            ids, lengths = ids[rest], lengths[rest]

    def _own(self, part):
        """Which samples of an update's batch are this worker's in a part of the update."""
        return slice(part * self._size + self._rank, None, self._size * self._accumulate)

    def _deal(self, lengths, fresh, is_last, rng):
        """Batches of samples, of which those from number `fresh` on are new ones."""
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
        ctx = self._contexts[number % len(self._contexts)]
        return make_batch(
            samples.take(rows), ids[rows], self._pad_val, self._round_to, ctx, self._longest
        )


def _gather(ids, parts):
    """Samples of several parts by their numbers, in that order."""
    owners = ids >> _ROW_BITS
    order = np.argsort(owners, kind='stable')
    rows = ids[order] & ((1 << _ROW_BITS) - 1)
    pieces = [
        parts[number].read().take(rows[owners[order] == number])
        for number in np.unique(owners).tolist()
    ]
    return Samples.concatenate([Samples.none(), *pieces]).take(np.argsort(order))


def _contexts(ctx):
    return ctx if isinstance(ctx, (list, tuple)) else [ctx or mx.cpu()]


class _ShardPart(_Part):
    """A file."""

    def __init__(self, number, path, vocab, max_len, executor):
        super().__init__(number)
        self._path, self._vocab, self._max_len = path, vocab, max_len
        self._executor, self._future = executor, None

    def lengths(self):
        return read_lengths(self._path, self._vocab)

    def read_ahead(self):
        if self._future is None:
            self._future = self._executor.submit(self._read_file)

    def read(self):
        return self._read_file() if self._future is None else self._future.result()

    def _read_file(self):
        return read_shard(self._path, self._vocab, self._max_len)

    def cancel(self):
        if self._future is not None:
            self._future.cancel()


class PretrainingLoader(_StreamingLoader):
    """Batches of samples in files, of which a few are in memory at a time.

    All files are looked at first: their vocabulary, and the samples' lengths. While the batches of
    `circle_length` files are used, a thread reads the next ones.

    Parameters
    ----------
    files : str or sequence of str
        Wildcards, separated by commas; or paths. Of our files or GluonNLP's.
    batch_size : int
        Of one worker, and one device.
    vocab : gluonnlp.vocab.BERTVocab
        The model's.
    num_buckets : int
        Ranges of lengths, of which a batch has one.
    use_avg_len : bool
        The batch size is one in tokens: a batch has as many samples of the bucket's average length
        and a standard deviation, as GluonNLP has it.
    max_len : int, optional
        Most positions that the model has.
    **options
        The following.
    ctx : mxnet.Context or list of mxnet.Context
        Batches go to several in turn.
    seed : int, default 0
    shuffle : bool, default True
        Without it, the order is that of the files, and within them of the buckets.
    workers : object, optional
        With ``rank`` and ``size``. Of each batch of all workers together, worker r has the samples
        ``r::size``; all read all files.
    round_to : int, default 8
        Lengths and numbers of masks are padded to multiples of this.
    circle_length : int, default 2
        How many files are mixed.
    accumulate : int, default 1
        Batches of an update. The samples of an update are drawn together, and dealt out to its
        batches: they are the same for 1 x 8, 2 x 4 and 2 workers x 4.

    Attributes
    ----------
    num_samples : int

    Raises
    ------
    InputError
        If no file matches, or one can't be used; see :func:`read_shard`.
    """

    def __init__(
        self,
        files,
        batch_size,
        *,
        vocab,
        num_buckets=1,
        use_avg_len=False,
        max_len=None,
        **options,
    ):
        check_positive(num_buckets=num_buckets)
        self._files = matching_files(files) if isinstance(files, str) else sorted(files)
        super().__init__(batch_size, len(self._files), vocab, **options)
        self._vocab, self._longest = vocab, max_len
        # one thread: more would only read what is needed later
        self._executor = concurrent.futures.ThreadPoolExecutor(1)
        histogram = np.zeros(1, np.int64)
        for path in self._files:
            counts = np.bincount(read_lengths(path, vocab))
            histogram, counts = sorted((histogram, counts), key=len, reverse=True)
            histogram[: len(counts)] += counts
        lengths = np.flatnonzero(histogram)
        if max_len is not None and lengths[-1] > max_len:
            raise InputError(
                f'the samples have up to {lengths[-1]} tokens, and the model takes {max_len} at '
                'most: make them with a smaller `max_seq_length`'
            )
        self.num_samples = int(histogram.sum())
        self._buckets = Buckets(lengths[0], lengths[-1], batch_size, num_buckets)
        if use_avg_len:
            self._buckets.count_tokens(histogram)
        counts = np.bincount(self._buckets.of(lengths), weights=histogram[lengths])
        of_update = self._buckets.sizes * self._size * self._accumulate
        self._length = int(np.ceil(counts / of_update).sum()) * self._accumulate

    def __len__(self):
        """Number of batches of an epoch, the same in all."""
        return self._length

    def _part(self, epoch, number):
        path = self._files[number]
        return _ShardPart(number, path, self._vocab, self._longest, self._executor)


class _TextPart(_Part):
    """A span of a text; a process makes its samples from the beginning on."""

    def __init__(self, number, result):
        super().__init__(number)
        self._result, self._samples = result, None

    def read(self):
        if self._samples is None:
            self._samples = self._result.result()
        return self._samples

    def lengths(self):
        return self.read().valid_lengths

    def cancel(self):
        self._result.cancel()


class RawTextLoader(_StreamingLoader):
    """Batches of samples that are made from text meanwhile, in each epoch others.

    Worker processes make the samples of the next parts of the text while those of these are used.
    Epoch e always has the same ones; to begin at its batch `start`, those before are made again.
    Several workers all make the same samples, each to take its part: where there are many of them,
    files of samples are cheaper.

    Parameters
    ----------
    files : str or sequence of str
        Text; wildcards, separated by commas, or paths. See :class:`Corpus`.
    batch_size : int
        Of one worker, and one device.
    tokenizer : object
        As of :class:`SampleMaker`.
    options : SampleOptions
        The text is gone through once in an epoch, whatever `dupe_factor` says.
    num_workers : int
        Processes that make samples; 0 to do it in this one.
    num_buckets : int
        As of :class:`PretrainingLoader`.
    use_avg_len : bool
        The batch size is one in tokens; samples are taken for as long as the longest of a bucket.
    part_bytes : int
        Of the text that samples are made of at a time.
    **options_of_batches
        The `options` of :class:`PretrainingLoader`; `circle_length` parts of the text are mixed.

    Raises
    ------
    InputError
        If no file matches, or a number isn't positive; later, if the text can't be read or has
        fewer than two documents.
    """

    def __init__(
        self,
        files,
        batch_size,
        tokenizer,
        options,
        *,
        num_workers=4,
        num_buckets=1,
        use_avg_len=False,
        part_bytes=PART_BYTES,
        **options_of_batches,
    ):
        check_positive(num_buckets=num_buckets, part_bytes=part_bytes)
        if num_workers < 0:
            raise InputError(f'num_workers {num_workers}: give 0 or more')
        corpus = Corpus(matching_files(files) if isinstance(files, str) else sorted(files))
        num_parts = plan_parts(corpus, part_bytes=part_bytes)
        super().__init__(batch_size, num_parts, tokenizer.vocab, **options_of_batches)
        maker = SampleMaker(corpus, tokenizer, dataclasses.replace(options, dupe_factor=1))
        self._processes = Processes(_TextJob(maker, num_parts, self._seed), num_workers)
        self._groups_ahead = max(1, num_workers // self._circle_length)
        self._counts = {}
        self._longest = options.max_seq_length
        self._buckets = Buckets(1, options.max_seq_length, batch_size, num_buckets)
        if use_avg_len:
            self._buckets.count_tokens()

    def _part(self, epoch, number):
        return _TextPart(number, self._processes.submit(epoch, number))

    def __len__(self):
        """Number of batches of epoch 0."""
        return self.count_batches(0)

    def count_batches(self, epoch):
        """Number of batches of an epoch, whose samples are made to count them."""
        if epoch not in self._counts:
            self._counts[epoch] = sum(1 for _ in self.epoch(epoch))
        return self._counts[epoch]

    def close(self):
        """End the processes."""
        self._processes.close()


class _TextJob:
    """Makes the samples of a part of the text in an epoch; for a worker process."""

    def __init__(self, maker, num_parts, seed):
        self._maker, self._num_parts, self._seed = maker, num_parts, seed

    def __call__(self, epoch, number):
        span = self._maker.corpus.span(number, self._num_parts)
        return self._maker.make(*span, self._seed, epoch, number)


class SyntheticLoader:
    """One batch of random tokens for each context, again and again: to measure a training's speed.

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
    ctx : mxnet.Context or list of mxnet.Context
    seed : int
    workers : object, optional
        With ``rank``: each has a batch of its own.

    Raises
    ------
    InputError
        If a number isn't positive, or there are more masks than tokens.
    """

    def __init__(
        self,
        batch_size,
        max_seq_length,
        max_predictions,
        vocab,
        *,
        num_batches=1000,
        ctx=None,
        seed=0,
        workers=None,
    ):
        check_positive(
            batch_size=batch_size,
            max_seq_length=max_seq_length,
            max_predictions=max_predictions,
            num_batches=num_batches,
        )
        if max_predictions > max_seq_length:
            raise InputError(f'{max_predictions} masks in sequences of {max_seq_length} tokens')
        rank = 0 if workers is None else workers.rank
        rng = np.random.default_rng([seed % 2**32, rank])
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
        self._batches = [make_batch(samples, indices, 0, 1, each) for each in _contexts(ctx)]
        self._num_batches = num_batches

    def __len__(self):
        """Number of batches of an epoch."""
        return self._num_batches

    def __iter__(self):
        return self.epoch(0)

    def epoch(self, epoch, start=0):
        """Iterate over the batches of an epoch, from number `start` on.

        Yields
        ------
        PretrainingBatch
        """
        for number in range(start, self._num_batches):
            yield self._batches[number % len(self._batches)]
