"""Sources of samples for pre-training: files of samples, or text.

The parts are shared out to the workers of a training.
"""

import concurrent.futures
import dataclasses
import functools

import numpy as np

from ...errors import InputError
from ...training.workers import Workers
from .create import PART_BYTES, plan_parts
from .files import WEIGHTS, Samples, epoch_of, read_lengths, read_shard
from .processes import Processes, result_of
from .text import Corpus, SampleMaker, matching_files

#: bits of a sample's number; the higher ones are the number of its part
ROW_BITS = 32
_NONE = np.zeros(0, np.int64)


class Sharing:
    """Each worker reads its own parts, number rank, rank + size, ..., and gives rows to the others.

    All workers have to call the methods, in the same order.
    """

    def __init__(self, workers=None):
        self._workers = workers or Workers()
        self._rank, self.size = self._workers.rank, self._workers.size

    def is_own(self, number):
        """Return whether a part, or each of an array of parts, is this worker's to read."""
        return number % self.size == self._rank

    def of_all(self, numbers, compute):
        """Return ``compute(number)``, an array of whole numbers, for each part in order."""
        if self.size == 1:
            return [compute(number) for number in numbers]
        computed = [compute(number) for number in numbers if self.is_own(number)]
        packed = np.concatenate([[], *(part for row in computed for part in ([len(row)], row))])
        given, result = self._workers.exchange([packed.astype(np.int32)] * self.size), []
        for number in numbers:
            owner = number % self.size
            count = 1 + given[owner][0]
            result.append(given[owner][1:count])
            given[owner] = given[owner][count:]
        return result

    def give(self, samples, ids, shares):
        """Exchange the samples that this worker has read for those that it trains on."""
        if self.size == 1:
            return samples, np.arange(len(ids))
        owners = (ids >> ROW_BITS) % self.size
        rows_read = np.cumsum(owners == self._rank) - 1
        rows = [np.concatenate([_NONE, *(numbers for _, numbers in share)]) for share in shares]
        given = self._workers.exchange(
            [_pack(samples.take(rows_read[some[owners[some] == self._rank]])) for some in rows]
        )
        mine, positions = rows[self._rank], np.full(len(ids), -1)
        positions[mine[np.argsort(owners[mine], kind='stable')]] = np.arange(len(mine))
        return Samples.concatenate([_unpack(packed) for packed in given]), positions


def _pack(samples):
    """Return samples as an int32 array of one axis; weights keep their bits."""
    sizes = [samples.count, samples.input_ids.shape[1], samples.masked_lm_ids.shape[1]]
    flat = [np.ascontiguousarray(array).reshape(-1).view(np.int32) for array in samples]
    return np.concatenate([np.array(sizes, np.int32), *flat])


def _unpack(packed):
    arrays, position = [], 3
    for name, empty in Samples.empty(*packed[:3].tolist())._asdict().items():
        part = packed[position : position + empty.size].reshape(empty.shape)
        arrays.append(part.view(np.float32) if name == WEIGHTS else part)
        position += empty.size
    return Samples(*arrays)


class Part:
    """Samples that are read together, from a file or a span of a text.

    Parameters
    ----------
    submit : callable
        Begin to read them; returns a future of the `Samples`.
    lengths : callable, optional
        ``lengths()`` returns the samples' valid lengths without reading the samples.
    """

    def __init__(self, number, submit, lengths=None):
        self.number, self._submit, self._lengths = number, submit, lengths
        self._future = self._samples = None

    def begin(self):
        """Begin to read, if that is needed even where the samples aren't used."""
        if self._lengths is None:
            self.read_ahead()

    def read_ahead(self):
        """Begin to read, while other parts are used."""
        if self._future is None:
            self._future = self._submit()

    def read(self):
        """Return the samples."""
        if self._samples is None:
            self.read_ahead()
            self._samples = result_of(self._future)
        return self._samples

    def lengths(self):
        """Return the samples' valid lengths."""
        return self.read().valid_lengths if self._lengths is None else self._lengths()

    def cancel(self):
        """Don't read what hasn't been read yet."""
        if self._future is not None:
            self._future.cancel()


class ShardFiles:
    """Files of samples; a few of them are in memory at a time.

    This class and `TextFiles` are the sources of a `PretrainingLoader`. They have ``num_parts`` in
    each epoch, and ``part(number, epoch, seed)``, a `Part`; ``vocab``; the range of the samples'
    lengths, from ``shortest`` to ``longest``; ``max_len``, the longest that a padded sample may be;
    ``parts_ahead``, how many are made while others are used; and ``histogram_of(epoch)``, the
    number of samples of each length, or None.

    First the vocabularies of all files are compared, and the samples' lengths read; each of several
    workers reads its share of the files. While some are used, a thread reads the next ones.

    Parameters
    ----------
    files : str or sequence of str
        Wildcards, separated by commas; or paths.
    vocab : gluonnlp.vocab.BERTVocab
        The model's.
    max_len : int, optional
        Most positions that the model has.
    next_sentence : bool
        Whether the samples must have next sentences.
    workers : Workers, optional
        All of them have to make this object.
    one_per_epoch : bool
        Whether epoch N uses file ``epoch_N.json`` alone, as in pytorch-pretrained-bert; the first
        file follows the last.

    Attributes
    ----------
    paths : list of str

    Raises
    ------
    InputError
        If no file matches, or one can't be used; see :func:`read_shard`.
    """

    parts_ahead = 1

    def __init__(
        self, files, vocab, max_len=None, next_sentence=False, workers=None, one_per_epoch=False
    ):
        self.paths = matching_files(files) if isinstance(files, str) else sorted(files)
        if one_per_epoch:
            self.paths.sort(key=epoch_of)
        self.vocab, self.max_len = vocab, max_len
        self._one_per_epoch = one_per_epoch
        self.num_parts = 1 if one_per_epoch else len(self.paths)
        # one thread: more would only read what is needed later
        self._executor = concurrent.futures.ThreadPoolExecutor(1)
        histograms = Sharing(workers).of_all(
            range(len(self.paths)),
            lambda number: np.bincount(read_lengths(self.paths[number], vocab, next_sentence)),
        )
        width = max(map(len, histograms))
        self._histograms = [np.pad(counts, (0, width - len(counts))) for counts in histograms]
        total = np.sum(self._histograms, axis=0)
        self.histogram = None if one_per_epoch else total
        self.shortest, self.longest = np.flatnonzero(total)[[0, -1]]
        if max_len is not None and self.longest > max_len:
            raise InputError(
                f'the samples have up to {self.longest} tokens, and the model takes {max_len} at '
                'most: make them with a smaller `max_length`'
            )

    def histogram_of(self, epoch):
        """Return the number of samples of each length in an epoch."""
        return self._histograms[epoch % len(self.paths)] if self._one_per_epoch else self.histogram

    def part(self, number, epoch, seed):
        """Return a file as a `Part`."""
        number = epoch % len(self.paths) if self._one_per_epoch else number
        path = self.paths[number]
        read = functools.partial(read_shard, path, self.vocab, self.max_len)
        submit = functools.partial(self._executor.submit, read)
        return Part(number, submit, functools.partial(read_lengths, path, self.vocab))

    def close(self):
        """End the thread that reads ahead."""
        self._executor.shutdown()


class TextFiles:
    """Text, from which new samples are made in each epoch, during the training.

    Worker processes make the samples of the next parts while others are used. Epoch e always has
    the same samples; to begin at its batch `start`, the samples before it are made again. If
    several workers train together, each makes the samples of its own parts.
    """

    shortest, histogram = 1, None

    def __init__(self, files, tokenizer, options, *, num_workers=4, part_bytes=PART_BYTES):
        corpus = Corpus(matching_files(files) if isinstance(files, str) else sorted(files))
        self.vocab = tokenizer.vocab
        self.longest = self.max_len = options.max_seq_length
        self.num_parts = plan_parts(corpus, part_bytes=part_bytes)
        self.parts_ahead = num_workers
        maker = SampleMaker(corpus, tokenizer, dataclasses.replace(options, dupe_factor=1))
        make = functools.partial(_make_part, maker, self.num_parts)
        self._processes = Processes(make, num_workers)

    def histogram_of(self, epoch):
        """Return None: it isn't known."""

    def part(self, number, epoch, seed):
        """Return the samples of a part of the text as a `Part`."""
        return Part(number, functools.partial(self._processes.submit, seed, epoch, number))

    def close(self):
        """End the processes."""
        self._processes.close()


def _make_part(maker, num_parts, seed, epoch, number):
    """Make the samples of a part of the text in an epoch; for a worker process."""
    return maker.make(*maker.corpus.span(number, num_parts), seed, epoch, number)
