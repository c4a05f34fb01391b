"""PyTorch's files of weights (``pytorch_model.bin``), read without torch."""

import collections
import io

import numpy as np

from ..errors import CheckpointError, MissingExtraError
from ..util.files import atomic_write
from .torch_storages import Tensor, TorchFile

__all__ = ['is_torch', 'read_torch', 'write_torch_object']

_ZIP = b'PK\x03\x04'
_PICKLE = b'\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19'  # protocol 2, and torch's magic number
#: what programs call the weights in a file that also has the state of a training
_WRAPPERS = ('state_dict', 'model_state_dict', 'model', 'module')


def is_torch(head):
    """Whether a file that starts with the bytes `head` may be one of PyTorch's.

    They are zip archives since version 1.6, pickles before.
    """
    return head.startswith(_ZIP) or (head[:1] == b'\x80' and b'\2' <= head[1:2] <= b'\5')


def read_torch(path):
    """Read a PyTorch file of tensors by name: what ``torch.save(model.state_dict(), path)`` writes.

    Parameters
    ----------
    path : str
        If the tensors are in a dict in the file's one, such as ``'state_dict'`` beside an
        optimizer's state, they are found there.

    Returns
    -------
    tensors : dict of str to numpy.ndarray
        float16 and bfloat16 become float32. The arrays are views, some perhaps of the same numbers,
        and not to be written to.
    metadata : dict
        Empty.
    """
    with open(path, 'rb') as file:
        head = file.read(len(_PICKLE))
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if not head.startswith((_ZIP, _PICKLE)):
            raise CheckpointError(
                f'{path!r} is refused: it is a pickle, reading which could run code, and not of '
                "PyTorch's tensors"
            )
        reader = _Weights(path, size)
        try:
            if head.startswith(_ZIP):
                content = reader.read_zip(file)
            else:
                reader.load(file)  # the magic number
                content = reader.read_stream(file)
            found = _state_dict(path, content)
            return {name: reader.array_of(tensor) for name, tensor in found.items()}, {}
        except (CheckpointError, OSError):
            raise
        except Exception as error:  # a damaged pickle can raise anything
            lines = str(error).splitlines()
            what = lines[0] if lines else type(error).__name__
            raise CheckpointError(
                f'{path!r} is damaged ({what}); copy or download the file again'
            ) from error


def _state_dict(path, content):
    """The dict of tensors in what a file holds."""
    if not isinstance(content, dict):
        raise CheckpointError(
            f'{path!r} holds a {type(content).__name__}, not tensors by their names (a state_dict)'
        )
    if not _has_tensors(content):
        inner = {name: value for name, value in content.items() if _has_tensors(value)}
        named = [name for name in _WRAPPERS if name in inner] or list(inner)
        if len(named) == 1 or named and named[0] in _WRAPPERS:
            content = inner[named[0]]
    for name, value in content.items():
        if not isinstance(value, Tensor) or not isinstance(name, str):
            kind = 'dict' if isinstance(value, dict) else type(value).__name__
            raise CheckpointError(
                f'{path!r} holds other things than tensors by their names: {name!r:.80} is a '
                f'{kind}; save the state_dict alone'
            )
    return content


def _has_tensors(value):
    return isinstance(value, dict) and any(isinstance(each, Tensor) for each in value.values())


class _Weights(TorchFile):
    """What the pickles in a file of weights may call: little, as nothing else is needed."""

    def __init__(self, path, size):
        super().__init__(size)
        self.path = path
        self.names = {
            **self.torch_names,
            'collections.OrderedDict': self.make_dict,
            'torch.nn.parameter.Parameter': 'Parameter',
            'torch._tensor._rebuild_from_type_v2': self.make_subclass,
        }

    def find(self, name):
        if name in self.names:
            return self.names[name]
        if name.startswith(('torch._utils._rebuild_', 'torch.float', 'torch.sparse')):
            raise CheckpointError(f'{self.path!r} holds tensors that NumPy has not: {name}')
        raise CheckpointError(
            f'{self.path!r} is refused: it holds other things than tensors ({name}), and '
            'reading these could run code; save only the state_dict, or use safetensors'
        )

    def make_dict(self, items=()):
        self.limits.spend(len(items))
        return collections.OrderedDict(items)

    def make_subclass(self, make, kind, arguments, state):
        if kind != 'Parameter' or make not in (self.make_tensor, self.make_unsigned):
            raise TypeError(f'a tensor of class {kind!r:.80}')
        return make(*arguments)


def _import_torch():
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError.of('torch', 'torch') from error
    return torch


def write_torch_object(path, value):
    """Write what ``torch.load`` returns, whole or not at all.

    Parameters
    ----------
    path : str
    value : object
        Plain data. The NumPy arrays in a dict, or in a list in it, become tensors.

    Raises
    ------
    MissingExtraError
        If torch isn't installed.
    """
    torch = _import_torch()

    def with_tensors(each):
        if isinstance(each, np.ndarray):
            return torch.from_numpy(np.array(each))
        if isinstance(each, list) and each and isinstance(each[0], np.ndarray):
            return [with_tensors(part) for part in each]
        return each

    if isinstance(value, dict):
        value = type(value)((name, with_tensors(each)) for name, each in value.items())
    with atomic_write(path, 'wb') as file:
        torch.save(value, file)
