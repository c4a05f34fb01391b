"""Where samples for pre-training come from: files of them, read or mapped, or text.

The parts are shared out to the workers of a training.
"""

import concurrent.futures
import dataclasses
import functools
import os
import shutil

import numpy as np

from ...errors import InputError, ZooError
from ...util.files import atomic_write, make_writable_dir
from .create import PART_BYTES, plan_parts
from .files import WEIGHTS, Samples, epoch_of, read_lengths, read_shard
from .processes import Processes
from .text import Corpus, SampleMaker, matching_files

#: of a sample's number; the higher bits are the number of its part
ROW_BITS = 32
_NONE = np.zeros(0, np.int64)


class Sharing:
    """Each worker reads its own parts, number rank, rank + size, ..., and gives rows to the others.

    All workers have to call the methods, in the same order.
    """

    def __init__(self, workers=None):
        self._rank, self._size = 0, 1
        if hasattr(workers, 'exchange'):
            self._rank, self._size = workers.rank, workers.size
        self._workers = workers

    @property
    def size(self):
        """How many workers share the parts."""
        return self._size

    def is_own(self, number):
        """Whether a part, or each of an array of them, is this worker's to read."""
        return number % self._size == self._rank

    def attempt(self, read):
        """What ``read()`` returns; where one worker gets an error from it, all do."""
        if self._size == 1:
            return read()
        result, error, failed = None, None, np.zeros(self._size)
        try:
            result = read()
        except ZooError as raised:
            error, failed[self._rank] = raised, 1
        failed = self._workers.sum(failed)
        if error is not None:
            raise error
        if failed.any():
            raise InputError(f'worker {failed.argmax()} cannot read its part of the samples')
        return result

    def of_all(self, numbers, compute):
        """``compute(number)``, an array of whole numbers, of each part in the order given."""
        if self._size == 1:
            return [compute(number) for number in numbers]
        computed = self.attempt(lambda: [compute(n) for n in numbers if self.is_own(n)])
        packed = np.concatenate([[], *(part for row in computed for part in ([len(row)], row))])
        given, result = self._workers.exchange([packed.astype(np.int32)] * self._size), []
        for number in numbers:
            owner = number % self._size
            count = 1 + given[owner][0]
            result.append(given[owner][1:count])
            given[owner] = given[owner][count:]
        return result

    def give(self, samples, ids, wanted):
        """Give each worker the samples that it wants, of those that this one has read."""
        if self._size == 1:
            return samples, np.arange(len(ids))
        owners = (ids >> ROW_BITS) % self._size
        rows_read = np.cumsum(owners == self._rank) - 1
        rows = [np.concatenate([_NONE, *(numbers for _, numbers in group)]) for group in wanted]
        given = self._workers.exchange(
            [_pack(samples.take(rows_read[some[owners[some] == self._rank]])) for some in rows]
        )
        mine, positions = rows[self._rank], np.full(len(ids), -1)
        positions[mine[np.argsort(owners[mine], kind='stable')]] = np.arange(len(mine))
        return Samples.concatenate([_unpack(packed) for packed in given]), positions


def _pack(samples):
    """Samples as an array of one axis, int32; weights keep their bits."""
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
    """Samples that are read together, a file or a span of a text.

    Parameters
    ----------
    submit : callable
        Begins to read them; returns a future of the `Samples`.
    lengths : callable, optional
        ``lengths()`` gives the samples' valid lengths without reading the samples.
    is_slow : bool
        Whether `begin` submits, as it takes long; else `read_ahead` does.
    """

    def __init__(self, number, submit, lengths=None, is_slow=False):
        self.number, self._submit, self._lengths = number, submit, lengths
        self._is_slow, self._future, self._samples = is_slow, None, None

    def begin(self):
        """Begin with what takes long, for this or another use."""
        if self._is_slow:
            self.read_ahead()

    def read_ahead(self):
        """Begin to read, while others are used."""
        if self._future is None:
            self._future = self._submit()

    def read(self):
        """The samples."""
        if self._samples is None:
            self.read_ahead()
            self._samples = self._future.result()
        return self._samples

    def lengths(self):
        """The samples' valid lengths."""
        return self.read().valid_lengths if self._lengths is None else self._lengths()

    def cancel(self):
        """Don't read what hasn't been read yet."""
        if self._future is not None:
            self._future.cancel()


class Source:
    """What a `PretrainingLoader` makes batches of: samples in parts.

    A subclass has ``part(number, epoch, seed)``, which makes a `Part` of an epoch.

    Attributes
    ----------
    shortest, longest : int
        The range of the samples' lengths.
    max_len : int or None
        The longest that a padded sample may be.
    histogram : numpy.ndarray or None
        Number of samples of each length, where it is known before they are read.
    parts_ahead : int
        How many parts are made while others are used.
    mixes_all : bool
        Whether all parts are mixed, as none of them is in memory.
    """

    histogram = None
    parts_ahead = 1
    mixes_all = False

    def histogram_of(self, epoch):
        """The `histogram` of an epoch, where they differ."""
        return self.histogram

    def join(self, samples):
        """One object whose ``take`` gives samples of several parts."""
        return Samples.concatenate(samples)

    def close(self):
        """End what works for the source, and remove what it keeps on disk."""


class ShardFiles(Source):
    """Files of samples; a few of them are in memory at a time.

    All files are looked at first: their vocabulary, and the samples' lengths; each of several
    workers looks at its share of them. While some are used, a thread reads the next ones.

    Parameters
    ----------
    files : str or sequence of str
        Wildcards, separated by commas; or paths. Of our files or GluonNLP's.
    vocab : gluonnlp.vocab.BERTVocab
        The model's.
    max_len : int, optional
        Most positions that the model has.
    next_sentence : bool
        Whether the samples are to have next sentences.
    workers : Workers, optional
        All of them have to make this object.

    Attributes
    ----------
    paths : list of str
    histograms : list of numpy.ndarray
        Of each file.

    Raises
    ------
    InputError
        If no file matches, or one can't be used; see :func:`read_shard`.
    """

    def __init__(self, files, vocab, max_len=None, next_sentence=False, workers=None):
        self.paths = matching_files(files) if isinstance(files, str) else sorted(files)
        self.vocab, self.max_len = vocab, max_len
        self.num_parts = len(self.paths)
        # one thread: more would only read what is needed later
        self._executor = concurrent.futures.ThreadPoolExecutor(1)
        histograms = Sharing(workers).of_all(
            range(self.num_parts),
            lambda number: np.bincount(read_lengths(self.paths[number], vocab, next_sentence)),
        )
        width = max(map(len, histograms))
        self.histograms = [np.pad(counts, (0, width - len(counts))) for counts in histograms]
        self.histogram = np.sum(self.histograms, axis=0)
        self.shortest, self.longest = np.flatnonzero(self.histogram)[[0, -1]]
        self._order = None  # of the files that epochs take, if each takes one
        if max_len is not None and self.longest > max_len:
            raise InputError(
                f'the samples have up to {self.longest} tokens, and the model takes {max_len} at '
                'most: make them with a smaller `max_length`'
            )

    def take_one_an_epoch(self):
        """Let epoch N take file N, as in pytorch-pretrained-bert; the first follows the last."""
        self._order = sorted(range(self.num_parts), key=lambda n: epoch_of(self.paths[n]))
        self.num_parts, self.histogram = 1, None

    def _file(self, number, epoch):
        return number if self._order is None else self._order[epoch % len(self._order)]

    def histogram_of(self, epoch):
        return self.histogram if self._order is None else self.histograms[self._file(0, epoch)]

    def part(self, number, epoch, seed):
        number = self._file(number, epoch)
        path = self.paths[number]
        submit = functools.partial(self._executor.submit, self.read, path)
        return Part(number, submit, functools.partial(read_lengths, path, self.vocab))

    def read(self, path):
        """The samples of a file."""
        return read_shard(path, self.vocab, self.max_len)


class MappedShards(ShardFiles):
    """Files of samples, all of them mixed, and none in memory.

    The files are compressed, so they are unpacked first, one after the other, to a folder: what
    comes from there, the system keeps in memory as long as there is room. A batch takes its samples
    from wherever they are, which is fast from a solid-state disk.

    Parameters
    ----------
    folder : str
        For the unpacked files, some five times as large as the others; of each machine its own.
        What is there is overwritten, and ``close`` removes it.
    workers : Workers, optional
        Of those of a machine the first one unpacks and removes the files; all have to make this
        object.
    """

    mixes_all = True

    def __init__(self, files, vocab, folder, max_len=None, workers=None, next_sentence=False):
        super().__init__(files, vocab, max_len, next_sentence, workers)
        self._folder = folder
        self._unpacks = workers is None or workers.local_rank == 0
        if self._unpacks:
            make_writable_dir(folder)
            try:
                self._unpack()
            except BaseException:
                self.close()
                raise
        if workers is not None:
            workers.wait()  # the others wait for the first one

    def _unpack(self):
        for number, path in enumerate(self.paths):
            for name, array in self.read(path)._asdict().items():
                with atomic_write(_path(self._folder, number, name), 'wb') as file:
                    np.save(file, array)

    def part(self, number, epoch, seed):
        number = self._file(number, epoch)
        return Part(number, lambda: self._executor.submit(_mapped, self._folder, number))

    def join(self, samples):
        return _Joined(samples)

    def close(self):
        if self._unpacks:
            shutil.rmtree(self._folder, ignore_errors=True)


def _path(folder, number, name):
    return os.path.join(folder, f'{number}-{name}.npy')


def _mapped(folder, number):
    """The samples of a file that was unpacked."""
    paths = (_path(folder, number, name) for name in Samples._fields)
    return Samples(*(np.load(path, mmap_mode='r') for path in paths))


class _Joined:
    """Samples of several parts, one after the other; only what is used is read."""

    def __init__(self, parts):
        self._parts = [part for part in parts if part.count]
        self._starts = np.cumsum([0, *(part.count for part in self._parts)])

    def take(self, rows):
        """The samples at `rows`, as `Samples.take`."""
        owners = np.searchsorted(self._starts, rows, side='right') - 1
        return Samples.gather(owners, rows - self._starts[owners], self._parts.__getitem__)


class TextFiles(Source):
    """Text, from which new samples are made in each epoch, during the training.

    Worker processes make the next parts' samples while these are used.
    Epoch e always has the same ones; to begin at its batch `start`, those before are made again.
    Of several workers that train together, each makes the samples of its own parts.
    """

    shortest = 1

    def __init__(self, files, tokenizer, options, *, num_workers=4, part_bytes=PART_BYTES):
        corpus = Corpus(matching_files(files) if isinstance(files, str) else sorted(files))
        self.vocab = tokenizer.vocab
        self.longest = self.max_len = options.max_seq_length
        self.num_parts = plan_parts(corpus, part_bytes=part_bytes)
        self.parts_ahead = num_workers
        maker = SampleMaker(corpus, tokenizer, dataclasses.replace(options, dupe_factor=1))
        make = functools.partial(_make_part, maker, self.num_parts)
        self._processes = Processes(make, num_workers)

    def part(self, number, epoch, seed):
        submit = functools.partial(self._processes.submit, seed, epoch, number)
        return Part(number, submit, is_slow=True)

    def close(self):
        self._processes.close()


def _make_part(maker, num_parts, seed, epoch, number):
    """The samples of a part of the text in an epoch; for a worker process."""
    return maker.make(*maker.corpus.span(number, num_parts), seed, epoch, number)
