"""NumPy's archives of arrays, and the files in which OpenAI published GPT.

``params_shapes.json`` lists the shapes of all tensors; their values follow one another in
``params_0.npy`` to ``params_9.npy``. A tensor's name is its position, ``'0'``, ``'1'``, and so on.
"""

import io
import json
import math
import os
import zipfile

import numpy as np

from ..errors import CheckpointError, reporting
from ..util.files import atomic_write
from ..util.remote import open_binary
from .pickles import read_object_array
from .tensor_files import reading

_PARTS = 10


class ArrayArchive:
    """An ``.npz`` file while it is read, as a context.

    Attributes
    ----------
    names : list of str
        The names of its arrays.
    """

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        with reporting(f'cannot read {self._path!r}', error_class=CheckpointError):
            self._file = open_binary(self._path)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except Exception as error:  # names that are no UTF-8, unknown versions
            self._file.close()
            raise self._damaged(error) from error
        self.comment = self._zip.comment
        self.names = [name[:-4] for name in self._zip.namelist() if name.endswith('.npy')]
        return self

    def __exit__(self, *error):
        self._zip.close()
        self._file.close()

    def _damaged(self, error):
        return CheckpointError(f'{self._path!r} is damaged or was cut off ({error})')

    def read(self, name):
        """Read the array of this name, which may hold plain objects."""
        try:
            return _array_of(self._zip.read(f'{name}.npy'), self._path)
        except CheckpointError:
            raise
        except Exception as error:  # of zlib, struct, zipfile or NumPy
            raise self._damaged(f'{name}: {error}') from error


def _array_of(content, path):
    file = io.BytesIO(content)
    formats = np.lib.format
    is_first = formats.read_magic(file) == (1, 0)
    read_header = formats.read_array_header_1_0 if is_first else formats.read_array_header_2_0
    if read_header(file)[2].hasobject:
        return read_object_array(file.read(), path)
    file.seek(0)
    return formats.read_array(file, allow_pickle=False)


def read_numpy(path, shapes):
    """Read the tensors of these `shapes`, the content of ``params_shapes.json`` at `path`.

    There is no metadata.
    """
    folder = os.path.dirname(path)
    parts = []
    for number in range(_PARTS):
        part = os.path.join(folder, f'params_{number}.npy')
        with reading(part):
            parts.append(np.load(part, allow_pickle=False).reshape(-1))
        if parts[-1].dtype not in (np.float16, np.float32):
            raise CheckpointError(f'{part!r} holds {parts[-1].dtype}, not float32')
    values = np.concatenate(parts).astype(np.float32, copy=False)
    sizes = [math.prod(shape) for shape in shapes]
    if len(values) != sum(sizes):
        raise CheckpointError(
            f'{folder!r} holds {len(values)} numbers in its params_*.npy, and the shapes in '
            f'{os.path.basename(path)} make {sum(sizes)}: use the files of one model'
        )
    arrays = np.split(values, np.cumsum(sizes)[:-1])
    with reading(path):  # it may have too many axes, or a huge one beside an empty one
        shaped = [array.reshape(shape) for array, shape in zip(arrays, shapes)]
    return {str(number): array for number, array in enumerate(shaped)}, {}


def write_numpy(path, tensors):
    """Write `tensors`, in the format's order, to ``params_shapes.json`` at `path` and its parts."""
    folder = os.path.dirname(path)
    values = np.concatenate([array.reshape(-1) for array in tensors.values()])
    for number, part in enumerate(np.array_split(values, _PARTS)):
        with atomic_write(os.path.join(folder, f'params_{number}.npy'), 'wb') as file:
            np.save(file, part)
    with atomic_write(os.path.join(folder, 'parameters_names.json')) as file:
        # the converter expects one name for the first two tensors
        json.dump([f'{name}:0' for name in list(tensors)[1:]], file)
    with atomic_write(path) as file:
        json.dump([list(array.shape) for array in tensors.values()], file)
