"""Find a file's format by its content, and read it."""

import contextlib
import os

from ..errors import CheckpointError, InputError
from ..util.files import read_json
from .numpy_files import is_shapes, read_numpy
from .params import is_params, read_params
from .safetensors_file import is_safetensors, read_parts, read_safetensors
from .sums import check_weights
from .tensorflow_file import is_tensorflow, read_tensorflow
from .torch_file import is_torch, read_torch

__all__ = ['read_tensors']


def read_tensors(path):
    """Read a file of weights, whatever its format.

    Parameters
    ----------
    path : str or os.PathLike
        MXNet's ``.params``; safetensors; PyTorch's ``.bin``; the index of one of these in several
        parts; the index of a TensorFlow checkpoint (or their common name without ``.index``);
        ``params_shapes.json`` of OpenAI's NumPy files.

    Returns
    -------
    tensors : dict of str to numpy.ndarray
    metadata : dict
        The file's own metadata.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, refused, of an unknown format, or not that of the
        checksums beside it (``SHA256SUMS``).
    """
    path = os.fspath(path)
    if not os.path.exists(path) and os.path.isfile(path + '.index'):
        path += '.index'
    try:
        head, tail = _head_and_tail(path)
        check_weights(path)
        if is_params(head):
            return read_params(path)
        if is_safetensors(head):
            return read_safetensors(path)
        if is_torch(head):
            return read_torch(path)
        if is_tensorflow(tail):
            return read_tensorflow(path)
        if head.lstrip()[:1] in (b'[', b'{'):
            return _read_json(path)
    except OSError as error:
        raise CheckpointError(f'cannot read {path!r}: {error.strerror or error}') from error
    if not head.strip(b'\0'):
        raise CheckpointError(f'{path!r} is empty; copy or download the file again')
    hint = '; ONNX files are for other programs' if path.endswith('.onnx') else ''
    raise CheckpointError(
        f'{path!r} is none of the files of weights known here (.params, safetensors, PyTorch, '
        f'TensorFlow, OpenAI NumPy), or its start or end is damaged{hint}'
    )


def _read_json(path):
    """Read what a JSON file stands for: the parts of an index, or arrays of these shapes."""
    try:
        content = read_json(path)
    except InputError as error:
        raise CheckpointError(str(error)) from error
    if is_shapes(content):
        return read_numpy(path, content)
    if isinstance(content, dict) and 'weight_map' in content:
        return read_parts(path, content, _read_part)
    raise CheckpointError(
        f'{path!r} is neither an index of files of weights nor a list of shapes'
    )


def _read_part(path):
    """Read a file that an index names; another index, or the same, isn't one."""
    with contextlib.suppress(OSError):  # which `read_tensors` tells of
        if _head_and_tail(path)[0].lstrip()[:1] in (b'[', b'{'):
            raise CheckpointError(f'{path!r} is named by an index, and is no file of weights')
    return read_tensors(path)


def _head_and_tail(path):
    with open(path, 'rb') as file:
        head = file.read(16)
        file.seek(-min(8, os.fstat(file.fileno()).st_size), os.SEEK_END)
        return head, file.read(8)
