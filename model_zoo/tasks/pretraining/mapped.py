"""Batches of samples in files that are mapped into memory, all of them at once."""

import os

import numpy as np

from ...util.files import atomic_write, make_writable_dir
from .documents import matching_files
from .loaders import PretrainingLoader, _Part
from .shards import Samples, read_shard

__all__ = ['MappedLoader']


class MappedLoader(PretrainingLoader):
    """A `PretrainingLoader` that mixes all files and has none of them in memory.

    The files are compressed, so they are unpacked first, one after the other, to a folder: what
    comes from there, the system keeps in memory as long as there is room. A batch takes its samples
    from wherever they are, which is fast from a solid-state disk.

    Parameters
    ----------
    files, batch_size
        As of `PretrainingLoader`.
    folder : str
        For the unpacked files, some five times as large as the others; to be removed by the caller
        once the loader isn't used any more. What is there is overwritten.
    unpack : bool
        False if another loader, such as another worker's on the same machine, has unpacked the
        same files to the folder.
    **options
        As of `PretrainingLoader`, but `circle_length`.

    Raises
    ------
    InputError
        As `PretrainingLoader` does, and if the folder can't be written to.
    """

    @staticmethod
    def _join(parts):
        return _Joined(parts)

    def __init__(self, files, batch_size, folder, unpack=True, **options):
        files = matching_files(files) if isinstance(files, str) else sorted(files)
        super().__init__(files, batch_size, circle_length=len(files), **options)
        self._folder = folder
        if unpack:
            self._unpack()

    def _unpack(self):
        make_writable_dir(self._folder)
        for number, path in enumerate(self._files):
            samples = read_shard(path, self._vocab, self._longest)
            for name, array in samples._asdict().items():
                with atomic_write(_path(self._folder, number, name), 'wb') as file:
                    np.save(file, array)

    def _part(self, epoch, number):
        return _MappedPart(self._folder, number)


def _path(folder, number, name):
    return os.path.join(folder, f'{number}-{name}.npy')


class _MappedPart(_Part):
    """A file that was unpacked."""

    def __init__(self, folder, number):
        super().__init__(number)
        self._samples = Samples(
            *(np.load(_path(folder, number, name), mmap_mode='r') for name in Samples._fields)
        )

    def lengths(self):
        return self._samples.valid_lengths

    def read(self):
        return self._samples


class _Joined:
    """Samples of several parts, one behind the other, of which only what is taken is read."""

    def __init__(self, parts):
        self._parts = [part for part in parts if part.count]
        self._starts = np.cumsum([0, *(part.count for part in self._parts)])

    def take(self, rows):
        """The samples at `rows`, as `Samples.take`."""
        owners = np.searchsorted(self._starts, rows, side='right') - 1
        order = np.argsort(owners, kind='stable')
        pieces = [Samples.none()]
        for owner in np.unique(owners).tolist():
            own = order[owners[order] == owner]
            pieces.append(self._parts[owner].take(rows[own] - self._starts[owner]))
        return Samples.concatenate(pieces).take(np.argsort(order))
