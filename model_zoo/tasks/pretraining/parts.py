"""What samples for pre-training come from: a source, in parts."""

import abc

import numpy as np

__all__ = ['ROW_BITS', 'Part', 'Source']

#: of a sample's number; the higher bits are the number of its part
ROW_BITS = 32


class Part(abc.ABC):
    """Samples that are read together, a file or a span of a text."""

    def __init__(self, number):
        self.number = number

    @abc.abstractmethod
    def lengths(self):
        """The samples' valid lengths."""

    @abc.abstractmethod
    def read(self):
        """The samples."""

    def counts(self, buckets):
        """How many samples there are in each of the `Buckets`."""
        return np.bincount(buckets.of(self.lengths()), minlength=len(buckets.keys))

    def release(self):  # noqa: B027
        """Forget what was read."""

    def read_ahead(self):  # noqa: B027
        """Begin to read, while others are used."""

    def cancel(self):  # noqa: B027
        """Don't read what hasn't been read yet."""


class Source(abc.ABC):
    """What a `PretrainingLoader` makes batches of: samples in parts.

    Attributes
    ----------
    vocab : gluonnlp.vocab.BERTVocab
    num_parts : int
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

    @abc.abstractmethod
    def part(self, number, epoch, seed):
        """Part `number` of an epoch.

        Returns
        -------
        Part
        """

    def histogram_of(self, epoch):
        """The `histogram` of an epoch, where they differ."""
        return self.histogram

    def close(self):  # noqa: B027
        """End what works for the source, and remove what it keeps on disk."""
