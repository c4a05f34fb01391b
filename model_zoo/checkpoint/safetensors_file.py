"""safetensors files, whole or in several parts with an index, and types of weights' numbers."""

import os

import numpy as np
import safetensors
import safetensors.numpy

from ..errors import CheckpointError
from ..util.files import atomic_write

__all__ = [
    'as_weights', 'from_bfloat16', 'is_safetensors', 'plain_arrays', 'read_parts',
    'read_safetensors', 'write_safetensors',
]  # fmt: skip


def from_bfloat16(bits):
    """bfloat16, as uint16, in float32, of which its bits are the first half."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def as_weights(tensors):
    """`tensors`, with float16 converted to float32, the type that blocks compute with."""
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in tensors.items()
    }


def plain_arrays(state_dict):
    """A dict's NDArrays, NumPy arrays or tensors of torch as NumPy arrays."""
    result = {}
    for name, value in state_dict.items():
        if hasattr(value, 'asnumpy'):
            value = value.asnumpy()
        elif hasattr(value, 'detach'):  # torch's
            value = value.detach().cpu()
            value = (value.float() if 'bfloat16' in str(value.dtype) else value).numpy()
        result[name] = np.asarray(value)
    return result


def is_safetensors(head):
    """Whether a file that starts with the bytes `head` is one: 8 bytes of length, then JSON."""
    return head[8:9] == b'{'


def read_safetensors(path):
    """Read a safetensors file.

    Parameters
    ----------
    path : str

    Returns
    -------
    tensors : dict of str to numpy.ndarray
        float16 and bfloat16 become float32, in which weights are computed.
    metadata : dict
        What the file says of itself.
    """
    try:
        with safetensors.safe_open(path, 'np') as file:
            metadata = file.metadata() or {}
            names = list(file.keys())
            unlike = [name for name in names if file.get_slice(name).get_dtype() == 'BF16']
            tensors = {name: file.get_tensor(name) for name in names if name not in unlike}
        if unlike:
            with open(path, 'rb') as file:
                views = dict(safetensors.deserialize(file.read()))
            for name in unlike:
                bits = np.frombuffer(views[name]['data'], '<u2')
                tensors[name] = from_bfloat16(bits).reshape(views[name]['shape'])
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(
            f'{path!r} is damaged ({error}); copy or download the file again'
        ) from error
    return as_weights(tensors), metadata


def read_parts(path, index, read):
    """Read a checkpoint of several files.

    Parameters
    ----------
    path : str
        Path of the index (``model.safetensors.index.json``); the files are next to it.
    index : dict
        Its content: 'weight_map' has the file of each tensor.
    read : callable
        Reads one file: path -> (tensors, metadata).

    Returns
    -------
    (dict of str to numpy.ndarray, dict)
        As `read_safetensors`.

    Raises
    ------
    CheckpointError
        If a file is missing or damaged, or lacks tensors that the index lists.
    """
    files = index['weight_map']
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise CheckpointError(f"{path!r} is damaged: its weight_map isn't names of files")
    folder = os.path.dirname(path)
    result, metadata = {}, {}
    for name in sorted(set(files.values())):
        if os.path.basename(name) != name:
            raise CheckpointError(f'{path!r} names a file in another folder: {name!r}')
        if name.endswith('.json') or not name.isprintable():
            raise CheckpointError(f'{path!r} names {name!r}, which is no file of weights')
        tensors, metadata = read(os.path.join(folder, name))
        lacking = [key for key, file in files.items() if file == name and key not in tensors]
        if lacking:
            raise CheckpointError(
                f'{os.path.join(folder, name)!r} lacks what {path!r} says that it has: '
                + ', '.join(lacking[:20])
            )
        result.update(tensors)
    return result, metadata


def write_safetensors(path, tensors):
    """Write `tensors`, NumPy arrays by name, whole or not at all."""
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    with atomic_write(path, 'wb') as file:
        file.write(safetensors.numpy.save(tensors, {'format': 'pt'}))
