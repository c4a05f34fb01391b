"""Samples for pre-training that are made of a text during the training."""

import dataclasses

import numpy as np

from ...batches.loaders import check_positive
from ...errors import InputError
from .create import PART_BYTES, plan_parts
from .documents import Corpus, matching_files
from .instances import SampleMaker
from .parts import Part, Source
from .processes import Processes
from .samples import Samples

__all__ = ['TextFiles']


class TextFiles(Source):
    """Text, from which new samples are made in each epoch, during the training.

    Worker processes make the next parts' samples while these are used.
    Epoch e always has the same ones; to begin at its batch `start`, those before are made again.
    Where several workers train, each makes the samples of its own parts, and gets the others'.

    Parameters
    ----------
    files : str or sequence of str
        Wildcards, separated by commas, or paths. See :class:`Corpus`.
    tokenizer : object
        As of :class:`SampleMaker`.
    options : SampleOptions
        The text is gone through once in an epoch, whatever `dupe_factor` says.
    num_workers : int
        Processes that make samples; 0 to do it in this one.
    part_bytes : int
        Of the text that samples are made of at a time.
    workers : Workers, optional
        Those that train together; all have to use the batches in the same order.

    Raises
    ------
    InputError
        If no file matches, or a number isn't positive; later, if the text can't be read or, for
        next sentences, has fewer than two documents.
    """

    shortest = 1

    def __init__(self, files, tokenizer, options, *, num_workers=4, part_bytes=PART_BYTES,
                 workers=None):  # fmt: skip
        check_positive(part_bytes=part_bytes)
        if num_workers < 0:
            raise InputError(f'num_workers {num_workers}: give 0 or more')
        corpus = Corpus(matching_files(files) if isinstance(files, str) else sorted(files))
        self.vocab = tokenizer.vocab
        self.longest = self.max_len = options.max_seq_length
        self.num_parts = plan_parts(corpus, part_bytes=part_bytes)
        self.parts_ahead = num_workers
        maker = SampleMaker(corpus, tokenizer, dataclasses.replace(options, dupe_factor=1))
        self._processes = Processes(_TextJob(maker, self.num_parts), num_workers)
        self._workers = workers

    def part(self, number, epoch, seed):
        workers = self._workers
        maker = 0 if workers is None else number % workers.size
        is_own = workers is None or workers.rank == maker
        result = self._processes.submit(seed, epoch, number) if is_own else None
        return _TextPart(number, result, workers, maker)

    def close(self):
        self._processes.close()


class _TextPart(Part):
    """A span of a text; a process of one worker makes its samples from the beginning on."""

    def __init__(self, number, result, workers, maker):
        super().__init__(number)
        self._result, self._samples = result, None
        self._workers, self._maker = workers, maker

    def read(self):
        if self._samples is None:
            made = None if self._result is None else self._result.result()
            if self._workers is not None and self._workers.size > 1:
                packed = self._workers.share(None if made is None else _pack(made), self._maker)
                made = _unpack(packed) if made is None else made
            self._samples = made
        return self._samples

    def release(self):
        self._samples = None

    def lengths(self):
        return self.read().valid_lengths

    def cancel(self):
        if self._result is not None:
            self._result.cancel()


def _pack(samples):
    """Samples as one array; its first row has the numbers of columns."""
    columns = [array.reshape(samples.count, -1).astype(np.int32) for array in samples]
    packed = np.concatenate(columns, axis=1)
    widths = np.zeros((1, packed.shape[1]), np.int32)
    widths[0, :2] = samples.input_ids.shape[1], samples.masked_lm_ids.shape[1]
    return np.concatenate([widths, packed])


def _unpack(packed):
    length, masks = packed[0, :2].tolist()
    empty = Samples.empty(0, length, masks)
    widths = [array.shape[1] if array.ndim > 1 else 1 for array in empty]
    parts = np.split(packed[1:], np.cumsum(widths)[:-1], axis=1)
    return Samples(
        *(
            part.reshape(len(part), *array.shape[1:]).astype(array.dtype)
            for part, array in zip(parts, empty)
        )
    )


class _TextJob:
    """Makes the samples of a part of the text in an epoch; for a worker process."""

    def __init__(self, maker, num_parts):
        self._maker, self._num_parts = maker, num_parts

    def __call__(self, seed, epoch, number):
        span = self._maker.corpus.span(number, self._num_parts)
        return self._maker.make(*span, seed, epoch, number)
