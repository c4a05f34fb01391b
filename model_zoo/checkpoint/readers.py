"""Find a file's format by its content, and read it."""

import os

import numpy as np
import safetensors

from ..errors import CheckpointError
from .params import is_params, read_params

__all__ = ['read_tensors']


def read_tensors(path):
    """Read a file of weights: MXNet's ``.params`` or safetensors.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    tensors : dict of str to numpy.ndarray
    metadata : dict
        What the file says of itself.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, or of no format known here.
    """
    path = os.fspath(path)
    try:
        with open(path, 'rb') as file:
            head = file.read(9)
        if is_params(head):
            return read_params(path)
        if head[8:9] == b'{':  # 8 bytes of length, then a JSON object
            return _read_safetensors(path)
    except OSError as error:
        raise CheckpointError(f'cannot read {path!r}: {error.strerror}') from error
    if not head.strip(b'\0'):
        raise CheckpointError(f'{path!r} is empty; copy or download the file again')
    raise CheckpointError(
        f'{path!r} is neither an MXNet .params nor a safetensors file, or its start is damaged'
    )


def _read_safetensors(path):
    try:
        with safetensors.safe_open(path, 'np') as file:
            metadata = file.metadata() or {}
            names = list(file.keys())
            unlike = [name for name in names if file.get_slice(name).get_dtype() == 'BF16']
            tensors = {name: file.get_tensor(name) for name in names if name not in unlike}
        if unlike:
            with open(path, 'rb') as file:
                views = dict(safetensors.deserialize(file.read()))
            tensors.update({name: _from_bfloat16(views[name]) for name in unlike})
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(
            f'{path!r} is damaged ({error}); copy or download the file again'
        ) from error
    for name, array in tensors.items():
        if array.dtype == np.float16:  # weights are computed with as float32
            tensors[name] = array.astype(np.float32)
    return tensors, metadata


def _from_bfloat16(view):
    """bfloat16, which NumPy doesn't have, as float32: it is the first half of its bits."""
    bits = np.frombuffer(view['data'], '<u2').astype(np.uint32) << 16
    return bits.view(np.float32).reshape(view['shape'])
