"""NumPy's archives of arrays, and the files in which OpenAI published GPT.

``params_shapes.json`` lists the shapes of all tensors; their values follow one another in
``params_0.npy`` to ``params_9.npy``. A tensor's name is its position, ``'0'``, ``'1'``, and so on.
"""

import contextlib
import io
import math
import os
import zipfile

import numpy as np

from ..errors import CheckpointError, reporting
from ..util.remote import open_binary
from .pickles import read_object_array
from .tensor_files import DAMAGED

_PARTS = 10


class ArrayArchive(contextlib.ExitStack):
    """An ``.npz`` file while it is read, as a context.

    Attributes
    ----------
    names : list of str
        The names of its arrays.
    """

    def __init__(self, path):
        super().__init__()
        with reporting(f'cannot read {path!r}', *DAMAGED), contextlib.ExitStack() as opened:
            file = opened.enter_context(open_binary(path))
            self._path, self._zip = path, opened.enter_context(zipfile.ZipFile(file))
            self.push(opened.pop_all())
        self.comment = self._zip.comment
        self.names = [name[:-4] for name in self._zip.namelist() if name.endswith('.npy')]

    def read(self, name):
        """Read the array of this name, which may hold plain objects."""
        with reporting(f'cannot read {self._path!r}', *DAMAGED):
            file, formats = io.BytesIO(self._zip.read(f'{name}.npy')), np.lib.format
            is_first = formats.read_magic(file) == (1, 0)
            read = formats.read_array_header_1_0 if is_first else formats.read_array_header_2_0
            if read(file)[2].hasobject:
                return read_object_array(file.read(), self._path)
            file.seek(0)
            return formats.read_array(file, allow_pickle=False)


def read_numpy(path, shapes):
    """Read the tensors of these `shapes`, the content of ``params_shapes.json`` at `path`.

    There is no metadata.
    """
    folder, parts = os.path.dirname(path), []
    for number in range(_PARTS):
        part = os.path.join(folder, f'params_{number}.npy')
        with reporting(f'cannot read {part!r}', *DAMAGED):
            parts.append(np.load(part, allow_pickle=False).reshape(-1))
        if parts[-1].dtype not in (np.float16, np.float32):
            raise CheckpointError(f'{part!r} holds {parts[-1].dtype}, not float32')
    values = np.concatenate(parts).astype(np.float32, copy=False)
    sizes = [math.prod(shape) for shape in shapes]
    if len(values) != sum(sizes):
        raise CheckpointError(f'{path!r} is of {sum(sizes)} numbers, and its parts {len(values)}')
    arrays = np.split(values, np.cumsum(sizes)[:-1])
    # it may have too many axes, or a huge one beside an empty one
    with reporting(f'cannot read {path!r}', *DAMAGED):
        shaped = [array.reshape(shape) for array, shape in zip(arrays, shapes)]
    return {str(number): array for number, array in enumerate(shaped)}, {}
