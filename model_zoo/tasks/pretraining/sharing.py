"""Parts of the samples that are shared out to the workers of a training."""

import numpy as np

from ...errors import InputError, ZooError
from .samples import WEIGHTS, Samples

__all__ = ['ROW_BITS', 'Sharing']

#: of a sample's number; the higher bits are the number of its part
ROW_BITS = 32
_NONE = np.zeros(0, np.int64)


class Sharing:
    """Each worker reads its own parts, number rank, rank + size, ..., and gives rows to the others.

    All workers have to call the methods, in the same order.

    Parameters
    ----------
    workers : Workers or None
        Without a method ``exchange``, each worker reads all parts.
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
        own = self.attempt(lambda: [compute(n) for n in numbers if self.is_own(n)])
        packed = np.concatenate([[], *(part for each in own for part in ([len(each)], each))])
        given, result = self._workers.exchange([packed.astype(np.int32)] * self._size), []
        for number in numbers:
            owner = number % self._size
            count = 1 + given[owner][0]
            result.append(given[owner][1:count])
            given[owner] = given[owner][count:]
        return result

    def give(self, samples, ids, wanted):
        """Give each worker the samples that it wants, of those that this one has read.

        Parameters
        ----------
        samples : object
            Whose ``take`` gives the samples of this worker's parts, numbered in the order of `ids`.
        ids : numpy.ndarray, int64
            Of samples of all parts: ``part << 32 | row``.
        wanted : list of list of (int, numpy.ndarray)
            For each worker, arrays of places in `ids`.

        Returns
        -------
        object
            Whose ``take`` gives the samples that this worker wants.
        numpy.ndarray
            Their numbers there, by places in `ids`.
        """
        if self._size == 1:
            return samples, np.arange(len(ids))
        owners = (ids >> ROW_BITS) % self._size
        own = np.cumsum(owners == self._rank) - 1
        rows = [np.concatenate([_NONE, *(each for _, each in group)]) for group in wanted]
        given = self._workers.exchange(
            [_pack(samples.take(own[each[owners[each] == self._rank]])) for each in rows]
        )
        mine, places = rows[self._rank], np.full(len(ids), -1)
        places[mine[np.argsort(owners[mine], kind='stable')]] = np.arange(len(mine))
        return Samples.concatenate([_unpack(each) for each in given]), places


def _pack(samples):
    """Samples as an array of one axis, int32; weights keep their bits."""
    sizes = [samples.count, samples.input_ids.shape[1], samples.masked_lm_ids.shape[1]]
    flat = [np.ascontiguousarray(array).reshape(-1).view(np.int32) for array in samples]
    return np.concatenate([np.array(sizes, np.int32), *flat])


def _unpack(packed):
    arrays, place = [], 3
    for name, empty in Samples.empty(*packed[:3].tolist())._asdict().items():
        part = packed[place : place + empty.size].reshape(empty.shape)
        arrays.append(part.view(np.float32) if name == WEIGHTS else part)
        place += empty.size
    return Samples(*arrays)
