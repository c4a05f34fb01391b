"""Sources of samples for pre-training: files of samples, or text."""

import concurrent.futures
import dataclasses
import functools

import numpy as np

from ...errors import InputError
from .create import PART_BYTES, plan_parts
from .files import epoch_of, read_lengths, read_shard
from .processes import Processes
from .text import Corpus, SampleMaker, matching_files


class ShardFiles:
    """Files of samples; a few of them are in memory at a time.

    This class and `TextFiles` are the sources of a `PretrainingLoader`. They have
    ``parts(epoch)``, the numbers of its parts, and ``read(number, epoch, seed)``, a future of a
    part's `Samples`; ``vocab``; the range of the samples' lengths, from ``shortest`` to
    ``longest``; ``max_len``, the longest that a padded sample may be; ``parts_ahead``, how many are
    made while others are used; and ``histogram_of(epoch)``, the number of samples of each length,
    or None.

    First the vocabularies of all files are compared, and the samples' lengths read. While some
    files are used, a thread reads the next ones.

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

    def __init__(self, files, vocab, max_len=None, next_sentence=False, one_per_epoch=False):
        self.paths = matching_files(files) if isinstance(files, str) else sorted(files)
        if one_per_epoch:
            self.paths.sort(key=epoch_of)
        self.vocab, self.max_len = vocab, max_len
        self._one_per_epoch = one_per_epoch
        # one thread: more would only read what is needed later
        self._executor = concurrent.futures.ThreadPoolExecutor(1)
        lengths = [read_lengths(path, vocab, next_sentence) for path in self.paths]
        self.shortest, self.longest = min(map(np.min, lengths)), max(map(np.max, lengths))
        self._histograms = [np.bincount(each, minlength=self.longest + 1) for each in lengths]
        self.histogram = None if one_per_epoch else np.sum(self._histograms, axis=0)
        if max_len is not None and self.longest > max_len:
            problem = f'the samples have up to {self.longest} tokens, and the model takes {max_len}'
            raise InputError(f'{problem} at most: make them with a smaller `max_length`')

    def histogram_of(self, epoch):
        """Return the number of samples of each length in an epoch."""
        return self._histograms[epoch % len(self.paths)] if self._one_per_epoch else self.histogram

    def parts(self, epoch):
        """Return the numbers of the files of an epoch."""
        return [epoch % len(self.paths)] if self._one_per_epoch else range(len(self.paths))

    def read(self, number, epoch, seed):
        """Begin to read a file; return a future of its samples."""
        return self._executor.submit(read_shard, self.paths[number], self.vocab, self.max_len)

    def close(self):
        """End the thread that reads ahead."""
        self._executor.shutdown()


class TextFiles:
    """Text, from which new samples are made in each epoch, during the training.

    Worker processes make the samples of the next parts while others are used. Epoch e always has
    the same samples; to begin at its batch `start`, the samples before it are made again.
    """

    shortest, histogram = 1, None

    def __init__(self, files, tokenizer, options, *, num_workers=4, part_bytes=PART_BYTES):
        corpus = Corpus(matching_files(files) if isinstance(files, str) else sorted(files))
        self.vocab = tokenizer.vocab
        self.longest = self.max_len = options.max_seq_length
        self._num_parts = plan_parts(corpus, part_bytes=part_bytes)
        self.parts_ahead = num_workers
        maker = SampleMaker(corpus, tokenizer, dataclasses.replace(options, dupe_factor=1))
        make = functools.partial(_make_part, maker, self._num_parts)
        self._processes = Processes(make, num_workers)

    def histogram_of(self, epoch):
        """Return None: it isn't known."""

    def parts(self, epoch):
        """Return the numbers of the parts of the text."""
        return range(self._num_parts)

    def read(self, number, epoch, seed):
        """Begin to make the samples of a part; return a future of them."""
        return self._processes.submit(seed, epoch, number)

    def close(self):
        """End the processes."""
        self._processes.close()


def _make_part(maker, num_parts, seed, epoch, number):
    """Make the samples of a part of the text in an epoch; for a worker process."""
    return maker.make(*maker.corpus.span(number, num_parts), seed, epoch, number)
