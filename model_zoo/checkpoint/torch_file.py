"""PyTorch's files of weights (``pytorch_model.bin``), through torch itself."""

import collections
import pickle
import re
import zipfile

import numpy as np

from ..errors import CheckpointError, MissingExtraError
from ..util.files import atomic_write
from .arrays import as_weights, from_bfloat16

__all__ = ['is_torch', 'read_torch', 'write_torch']

_ZIP = b'PK\x03\x04'
_PICKLE = b'\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19'  # protocol 2, and torch's magic number
_SAFE = (2, 6)  # before it, weights_only=True could be made to run code (CVE-2025-32434)


def is_torch(head):
    """Whether a file that starts with the bytes `head` may be one of PyTorch's.

    They are zip archives since version 1.6, pickles before.
    """
    return head.startswith(_ZIP) or (head[:1] == b'\x80' and 2 <= head[1] <= 5)


def _import_torch():
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError.of('torch', 'torch') from error
    return torch


def read_torch(path):
    """Read a PyTorch file that has only tensors by name.

    Parameters
    ----------
    path : str

    Returns
    -------
    tensors : dict of str to numpy.ndarray
        float16 and bfloat16 become float32.
    metadata : dict
        Empty.

    Raises
    ------
    MissingExtraError
        If torch isn't installed, or is a version that can be made to execute code from the file.
    CheckpointError
        If the file is damaged, or has anything other than tensors.
    """
    with open(path, 'rb') as file:
        if not file.read(len(_PICKLE)).startswith((_ZIP, _PICKLE)):
            raise CheckpointError(
                f'{path!r} is refused: it is a pickle, reading which could run code, and not of '
                "PyTorch's tensors"
            )
    _check_archive(path)
    torch = _import_torch()
    version = tuple(int(number) for number in re.findall(r'\d+', torch.__version__)[:2])
    if version < _SAFE:
        raise MissingExtraError(
            f'{path!r} needs torch 2.6 or later, and this is {torch.__version__}: earlier versions '
            'can be made to run code that the file carries; upgrade torch, or save the weights '
            'as safetensors elsewhere'
        )
    try:
        content = torch.load(path, map_location='cpu', weights_only=True)
    except pickle.UnpicklingError as error:
        named = re.search(r'GLOBAL (\S+)', str(error))
        if named is None:
            raise _damaged(path, 'its pickle cannot be read') from error
        raise CheckpointError(
            f'{path!r} is refused: it holds other things than tensors ({named.group(1)}), and '
            'reading these could run code; save only the state_dict, or use safetensors'
        ) from error
    except Exception as error:  # on a damaged file, torch raises what it happens upon
        lines = str(error).splitlines()
        raise _damaged(path, lines[0] if lines else type(error).__name__) from error
    if not isinstance(content, dict):
        raise CheckpointError(
            f'{path!r} holds a {type(content).__name__}, not tensors by their names (a state_dict)'
        )
    wrong = [name for name, value in content.items() if not isinstance(value, torch.Tensor)]
    if wrong:
        raise CheckpointError(
            f'{path!r} holds other things than tensors by their names: {wrong[0]!r} is a '
            f'{type(content[wrong[0]]).__name__}; save the state_dict alone'
        )
    try:
        tensors = {name: _as_array(torch, value) for name, value in content.items()}
    except (TypeError, RuntimeError) as error:
        raise CheckpointError(f'{path!r} holds tensors that NumPy has not: {error}') from error
    return as_weights(tensors), {}


def _damaged(path, what):
    return CheckpointError(f'{path!r} is damaged ({what}); copy or download the file again')


def _check_archive(path):
    """Raise CheckpointError if a zip archive's checksums are wrong: torch doesn't look at them."""
    with open(path, 'rb') as file:
        if file.read(4) != _ZIP:
            return
    try:
        with zipfile.ZipFile(path) as archive:
            wrong = archive.testzip()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise _damaged(path, error) from error
    if wrong is not None:
        raise _damaged(path, f'the checksum of its part {wrong} is wrong')


def _as_array(torch, tensor):
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        bits = tensor.contiguous().view(torch.int16).numpy().view(np.uint16)
        return from_bfloat16(bits)
    return tensor.numpy()


def write_torch(path, tensors):
    """Write a file of PyTorch's, whole or not at all.

    Parameters
    ----------
    path : str
    tensors : dict of str to numpy.ndarray

    Raises
    ------
    MissingExtraError
        If torch isn't installed.
    """
    torch = _import_torch()
    state = collections.OrderedDict(
        (name, torch.from_numpy(np.array(array))) for name, array in tensors.items()
    )
    with atomic_write(path, 'wb') as file:
        torch.save(state, file)
