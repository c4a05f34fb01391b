"""NumPy's files, read within limits; and those in which OpenAI published GPT.

``params_shapes.json`` lists the shapes of all tensors; their values follow one another in
``params_0.npy`` to ``params_9.npy``. A tensor's name is its position, ``'0'``, ``'1'``, and so on.
"""

import io
import json
import math
import os
import sys
import zipfile

import numpy as np

from ..errors import CheckpointError
from ..util.files import atomic_write
from ..util.reading import LIMITS, raised
from ..util.remote import file_size, open_binary
from .pickles import read_object_array
from .tensor_files import reading

__all__ = ['ArrayArchive', 'is_shapes', 'read_numpy', 'write_numpy']

_PARTS = 10
# Of samples that are padding for the most part, deflated, some tens are usual. Reading takes up to
# three times as much memory; `raised` raises it.
_MOST_COMPRESSED = 80


class ArrayArchive:
    """An ``.npz`` file while it is read, as a context.

    No array takes memory that the file's size doesn't account for.

    Attributes
    ----------
    names : list of str
        Of its arrays.
    """

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        try:
            self._file = open_binary(self._path)
            if not file_size(self._path):  # as devices are, too, which may have no end
                raise ValueError('it is empty')
            self._zip = zipfile.ZipFile(self._file)
        except OSError as error:
            raise CheckpointError(f'cannot read {self._path!r}: {error.strerror}') from error
        except Exception as error:  # names that are no UTF-8, versions of long hence
            self._file.close()
            raise self._damaged(error) from error
        size = sum(info.file_size for info in self._zip.infolist())
        if size > raised(_MOST_COMPRESSED * file_size(self._path) + 2**20):
            self.__exit__()
            raise self._damaged(
                f'unpacked it would have {size / 1e6:.0f} MB; if you trust it, set {LIMITS}=10'
            )
        self.comment = self._zip.comment
        self.names = [name[:-4] for name in self._zip.namelist() if name.endswith('.npy')]
        return self

    def __exit__(self, *error):
        self._zip.close()
        self._file.close()

    def _damaged(self, error):
        return CheckpointError(f'{self._path!r} is damaged or was cut off ({error})')

    def read(self, name, read_objects=False):
        """The array of that name."""
        try:
            return _array_of(self._zip.read(f'{name}.npy'), self._path if read_objects else None)
        except CheckpointError:
            raise
        except Exception as error:  # of zlib, struct, zipfile or NumPy
            raise self._damaged(f'{name}: {error}') from error


def _array_of(content, objects_path):
    """The array in the bytes of an ``.npy`` file; objects only with a path for messages."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read_header(file)
    if dtype.hasobject and objects_path is not None:
        return read_object_array(file.read(), objects_path)
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f'an array of shape {shape} has {len(content) - file.tell()} bytes')
    if dtype.kind == 'U':  # NumPy makes a str of any numbers, with which Python then fails
        codes = np.frombuffer(content, f'{dtype.str[0]}u4', offset=file.tell())
        if codes.max(initial=0) > sys.maxunicode:
            raise ValueError('a text has a character that Unicode has not')
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def is_shapes(value):
    """Whether `value`, read from JSON, is a list of shapes."""
    return isinstance(value, list) and all(
        isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
        for shape in value
    )


def read_numpy(path, shapes):
    """The tensors of these `shapes`, the content of ``params_shapes.json`` at `path`; and no
    metadata.
    """
    folder = os.path.dirname(path)
    parts = []
    for number in range(_PARTS):
        part = os.path.join(folder, f'params_{number}.npy')
        with reading(part):
            # mapped first: that takes no memory that the file has not
            array = np.load(part, mmap_mode='r', allow_pickle=False)
            parts.append(np.array(array).reshape(-1))
        if parts[-1].dtype not in (np.float16, np.float32):
            raise CheckpointError(f'{part!r} holds {parts[-1].dtype}, not float32')
    values = np.concatenate(parts).astype(np.float32, copy=False)
    sizes = [math.prod(shape) for shape in shapes]
    if len(values) != sum(sizes):
        raise CheckpointError(
            f'{folder!r} holds {len(values)} numbers in its params_*.npy, and the shapes in '
            f'{os.path.basename(path)} make {sum(sizes)}: they do not belong together, or one is '
            'damaged'
        )
    arrays = np.split(values, np.cumsum(sizes)[:-1])
    with reading(path):  # it may have too many axes, or a huge one beside one of 0
        shaped = [array.reshape(shape) for array, shape in zip(arrays, shapes)]
    return {str(number): array for number, array in enumerate(shaped)}, {}


def write_numpy(path, tensors):
    """Write `tensors`, in the format's order, to ``params_shapes.json`` at `path` and files beside
    it.
    """
    folder = os.path.dirname(path)
    values = np.concatenate([array.reshape(-1) for array in tensors.values()])
    for number, part in enumerate(np.array_split(values, _PARTS)):
        with atomic_write(os.path.join(folder, f'params_{number}.npy'), 'wb') as file:
            np.save(file, part)
    with atomic_write(os.path.join(folder, 'parameters_names.json')) as file:
        # that converter expects one name for the first two tensors
        json.dump([f'{name}:0' for name in list(tensors)[1:]], file)
    with atomic_write(path) as file:
        json.dump([list(array.shape) for array in tensors.values()], file)
