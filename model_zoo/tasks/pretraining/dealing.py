"""Which samples make a batch, of samples of which only their numbers are known."""

from typing import NamedTuple

import numpy as np

from .parts import ROW_BITS

__all__ = ['Group', 'Held', 'deal', 'of_part', 'owners_of', 'spread_rows']


def spread_rows(count):
    """The rows of a batch in the order of the places that they take their samples from.

    It is that of the reversed bits of a row's number. So where 2, 4, 8, ... workers share a batch,
    worker r with the rows ``r::size``, each worker's rows lie beside one another in this order: its
    samples are those of its own part of the data.

    Parameters
    ----------
    count : int

    Returns
    -------
    numpy.ndarray, shape (count,), int64
    """
    bits, rows = max(1, int(count - 1).bit_length()), np.arange(count)
    reversed_ = np.zeros(count, np.int64)
    for bit in range(bits):
        reversed_ |= ((rows >> bit) & 1) << (bits - 1 - bit)
    return np.argsort(reversed_, kind='stable')


def deal(carried, fresh, size, spread=True, is_last=False):
    """Cut samples into batches.

    Parameters
    ----------
    carried : numpy.ndarray
        What an earlier call has left over.
    fresh : numpy.ndarray
        More of them, in the order of their parts.
    size : int
        Samples of a batch.
    spread : bool
        Fill each row of the batches from its own stretch of `fresh`, as `spread_rows` says, so that
        each batch has samples of all parts. Otherwise a batch has samples that follow one another.
    is_last : bool
        Also make a batch that isn't full.

    Returns
    -------
    list of numpy.ndarray
        Each batch's samples.
    numpy.ndarray
        The samples left over, which keep their rows in the next call.
    """
    samples = np.concatenate([carried, fresh])
    full, rest = divmod(len(samples), size)
    if spread:
        rows = np.arange(size)
        wanted = full + (rows < rest) - (rows < len(carried))  # of the fresh ones, by row
        along = spread_rows(size)
        row_of_fresh = np.repeat(along, wanted[along])
        turn = np.arange(len(fresh)) - np.repeat(
            np.cumsum(wanted[along]) - wanted[along], wanted[along]
        )
        turn += row_of_fresh < len(carried)  # these rows begin with a carried one
        order = np.concatenate([np.arange(len(carried)), turn * size + row_of_fresh])
        dealt = np.empty_like(samples)
        dealt[order] = samples
        samples = dealt
    end = len(samples) if is_last else full * size
    return [samples[at : at + size] for at in range(0, end, size)], samples[end:]


class Group(NamedTuple):
    """Batches of the samples of some parts; pairs of a bucket and codes."""

    batches: list
    first: int  # number of the first batch
    own: list  # of this worker, of the batches
    left: list  # of this worker, for later batches


def owners_of(batches):
    """The parts that samples are of."""
    return {number for _, codes in batches for number in np.unique(codes >> ROW_BITS).tolist()}


def of_part(number, batches):
    """The samples of a part: bucket -> codes."""
    found = {}
    for bucket, codes in batches:
        codes = codes[codes >> ROW_BITS == number]
        if len(codes):
            found.setdefault(bucket, []).append(codes)
    return {bucket: np.concatenate(codes) for bucket, codes in found.items()}


class Held:
    """The samples of a part that a worker wants."""

    def __init__(self, part, buckets, rng, wanted, keeps_all):
        self.part, self._buckets, self._rng = part, buckets, rng
        self._wanted, self._keeps_all, self._samples = wanted, keeps_all, None

    def read(self):
        """Read the part, unless that is done."""
        if self._samples is not None:
            return
        samples = self.part.read()
        order = np.arange(samples.count)
        if self._rng is not None:
            order = self._rng.permutation(samples.count)
        bucket_of = self._buckets.of(samples.valid_lengths[order])
        self._rows = {bucket: order[bucket_of == bucket] for bucket in self._wanted}
        self._samples, self._kept = samples, None
        self.part.release()
        if not self._keeps_all:
            self.shrink(self._wanted)

    def shrink(self, wanted):
        """Forget all samples but some."""
        self._wanted = wanted
        if self._samples is not None:
            rows = np.sort(np.concatenate([self._rows_of(*each) for each in wanted.items()]))
            self._samples = self._samples.take(self._places(rows))
            self._kept = rows

    def _rows_of(self, bucket, codes):
        return self._rows[bucket][codes & ((1 << ROW_BITS) - 1)]

    def take(self, bucket, codes):
        """Numbers and samples of some codes."""
        self.read()
        rows = self._rows_of(bucket, codes)
        return (self.part.number << ROW_BITS) + rows, self._samples.take(self._places(rows))

    def _places(self, rows):
        return rows if self._kept is None else np.searchsorted(self._kept, rows)
