"""Files of samples for pre-training, read or mapped."""

import concurrent.futures
import os
import shutil

import numpy as np

from ...errors import InputError
from ...util.files import atomic_write, make_writable_dir
from .documents import matching_files
from .parts import Part, Source
from .samples import Samples
from .shards import read_lengths, read_shard

__all__ = ['MappedShards', 'ShardFiles']


class ShardFiles(Source):
    """Files of samples; a few of them are in memory at a time.

    All files are looked at first: their vocabulary, and the samples' lengths. While some are used,
    a thread reads the next ones.

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
        Each looks at its share of the files; all have to make this object.

    Attributes
    ----------
    paths : list of str
    histograms : numpy.ndarray, shape (files, lengths), int64
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
        rank, size, add = (workers.rank, workers.size, workers.sum) if workers else (0, 1, _as_is)
        found = {
            number: np.bincount(read_lengths(self.paths[number], vocab, next_sentence))
            for number in range(rank, self.num_parts, size)
        }
        widths = np.zeros(size)
        widths[rank] = max(map(len, found.values()), default=0)
        histograms = np.zeros((self.num_parts, int(add(widths).max())), np.int64)
        for number, counts in found.items():
            histograms[number, : len(counts)] = counts
        self.histograms = np.asarray(add(histograms), np.int64)
        self.histogram = self.histograms.sum(axis=0)
        self.shortest, self.longest = np.flatnonzero(self.histogram)[[0, -1]]
        if max_len is not None and self.longest > max_len:
            raise InputError(
                f'the samples have up to {self.longest} tokens, and the model takes {max_len} at '
                'most: make them with a smaller `max_seq_length`'
            )

    def part(self, number, epoch, seed):
        return _ShardPart(number, self.paths[number], self)

    def read(self, path):
        """The samples of a file."""
        return read_shard(path, self.vocab, self.max_len)

    def submit(self, path):
        """A future of the samples of a file."""
        return self._executor.submit(self.read, path)


def _as_is(values):
    return values


class _ShardPart(Part):
    """A file."""

    def __init__(self, number, path, source):
        super().__init__(number)
        self._path, self._source, self._future = path, source, None

    def lengths(self):
        return read_lengths(self._path, self._source.vocab)

    def counts(self, buckets):
        histogram = self._source.histograms[self.number]
        lengths = np.flatnonzero(histogram)
        counts = np.bincount(buckets.of(lengths), histogram[lengths], len(buckets.keys))
        return counts.astype(np.int64)

    def release(self):
        self._future = None

    def read_ahead(self):
        if self._future is None:
            self._future = self._source.submit(self._path)

    def read(self):
        return self._source.read(self._path) if self._future is None else self._future.result()

    def cancel(self):
        if self._future is not None:
            self._future.cancel()


class MappedShards(ShardFiles):
    """Files of samples, all of them mixed, and none in memory.

    The files are compressed, so they are unpacked first, one after the other, to a folder: what
    comes from there, the system keeps in memory as long as there is room. A batch takes its samples
    from wherever they are, which is fast from a solid-state disk.

    Parameters
    ----------
    files, vocab, max_len, next_sentence
        As of `ShardFiles`.
    folder : str
        For the unpacked files, some five times as large as the others; of each machine its own.
        What is there is overwritten, and ``close`` removes it.
    workers : Workers, optional
        Of those of a machine the first one unpacks and removes the files; all have to make this
        object.
    """

    mixes_all = True

    def __init__(
        self, files, vocab, folder, max_len=None, workers=None, next_sentence=False
    ):
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
            workers.sum(np.zeros(1))  # the others wait for the first one

    def _unpack(self):
        for number, path in enumerate(self.paths):
            for name, array in self.read(path)._asdict().items():
                with atomic_write(_path(self._folder, number, name), 'wb') as file:
                    np.save(file, array)

    def part(self, number, epoch, seed):
        return _MappedPart(number, self._folder)

    def close(self):
        if self._unpacks:
            shutil.rmtree(self._folder, ignore_errors=True)


def _path(folder, number, name):
    return os.path.join(folder, f'{number}-{name}.npy')


class _MappedPart(Part):
    """A file that was unpacked."""

    def __init__(self, number, folder):
        super().__init__(number)
        self._samples = Samples(
            *(np.load(_path(folder, number, name), mmap_mode='r') for name in Samples._fields)
        )

    def lengths(self):
        return self._samples.valid_lengths

    def read(self):
        return self._samples
