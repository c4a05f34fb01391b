"""Find a file's format by its content, and read it."""

import os

import numpy as np
import safetensors
import safetensors.numpy

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
        tensors = safetensors.numpy.load_file(path)
        with safetensors.safe_open(path, 'np') as file:
            metadata = file.metadata() or {}
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(
            f'{path!r} is damaged ({error}); copy or download the file again'
        ) from error
    for name, array in tensors.items():
        if array.dtype == np.float16:  # weights are computed with as float32
            tensors[name] = array.astype(np.float32)
    return tensors, metadata
