"""The NumPy files in which OpenAI published GPT.

``params_shapes.json`` lists the shapes of all tensors. Their values, one tensor after the other,
are in ``params_0.npy`` to ``params_9.npy``. Names aren't stored: a tensor's name here is its
position, ``'0'``, ``'1'``, and so on (see `Mapping`'s `order`). The converter of
pytorch-pretrained-bert also needs ``parameters_names.json``, so this is written, too.
"""

import json
import math
import os

import numpy as np

from ..errors import CheckpointError
from ..util.files import atomic_write

__all__ = ['is_shapes', 'read_numpy', 'write_numpy']

_PARTS = 10


def is_shapes(value):
    """Whether `value`, read from JSON, is a list of shapes."""
    return isinstance(value, list) and all(
        isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
        for shape in value
    )


def read_numpy(path, shapes):
    """Read the tensors.

    Parameters
    ----------
    path : str
        Of ``params_shapes.json``.
    shapes : list of list of int
        Its content.

    Returns
    -------
    tensors : dict of str to numpy.ndarray
        By their positions.
    metadata : dict
        Empty.
    """
    folder = os.path.dirname(path)
    parts = []
    for number in range(_PARTS):
        part = os.path.join(folder, f'params_{number}.npy')
        try:
            parts.append(_read_array(part).reshape(-1))
        except OSError as error:
            raise CheckpointError(f'cannot read {part!r}: {error.strerror or error}') from error
        except Exception as error:  # NumPy reads a damaged header with Python's own parser
            raise CheckpointError(
                f'{part!r} is damaged ({error}); copy or download the file again'
            ) from error
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
    return {
        str(place): array.reshape(shape)
        for place, (array, shape) in enumerate(zip(arrays, shapes))
    }, {}


def _read_array(path):
    """The array of an ``.npy`` file, mapped first: that takes no memory that the file has not."""
    return np.array(np.load(path, mmap_mode='r', allow_pickle=False))


def write_numpy(path, tensors):
    """Write the files.

    Parameters
    ----------
    path : str
        Path of ``params_shapes.json``; the other files are written next to it.
    tensors : dict of str to numpy.ndarray
        In the order of the format, the position table first and the token table second.
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
