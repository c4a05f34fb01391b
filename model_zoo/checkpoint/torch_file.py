"""PyTorch's files (``pytorch_model.bin``), read and written without torch.

Since version 1.6 a file is a ZIP archive: ``NAME/data.pkl`` is a pickle, and ``NAME/data/KEY`` has
the numbers of a storage. Before, it was a stream: pickles of a magic number, of the protocol's
version, of the machine's properties, of the object and of the storages' keys, then for each key an
i64 count and the numbers. In both, a pickle refers to a storage outside of it, and a tensor says
which part of the storage it is, so that tensors may share numbers.
"""

import collections
import functools
import io
import os
import pickle
import struct
import zipfile
from typing import NamedTuple

import numpy as np

from ..errors import CheckpointError, reporting
from ..util.files import atomic_write
from .pickles import BFLOAT16, STORAGES, Storage, Unpickler, plain_value
from .tensor_files import DAMAGED, from_bfloat16

__all__ = ['read_pickle', 'write_torch']


_MAGIC = 0x1950A86A20F9469CFC6C  # begins a stream
_ZIP = b'PK\x03\x04'


def read_pickle(path, classes=()):
    """Read a file of ``pickle.dump`` or ``torch.save`` that holds plain data, arrays and tensors.

    `classes` are ``'module.name'`` of further classes that it may name; their instances are read as
    ``types.SimpleNamespace`` of their attributes. CheckpointError if it names anything else.
    Tensors are views of their storages, not to be written to.
    """
    path = os.fspath(path)
    with reporting(f'cannot read {path!r}', *DAMAGED), open(path, 'rb') as file:
        is_zip = file.read(len(_ZIP)) == _ZIP
        file.seek(0)
        return plain_value((_read_zip if is_zip else _read_stream)(file, path, classes))


def _read_zip(file, path, classes):
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        (name,) = (name for name in names if name.split('/')[1:] == ['data.pkl'])
        folder = name.removesuffix('data.pkl')
        if f'{folder}byteorder' in names:
            _check_byteorder(archive.read(f'{folder}byteorder') == b'little')

        def read_numbers(code, key, count):
            return _numbers(code, archive.read(f'{folder}data/{key}'))

        find = functools.partial(_find_storage, {}, read_numbers)
        return Unpickler(io.BytesIO(archive.read(name)), path, classes, find).load()


def _read_stream(file, path, classes):
    """Read a stream, or a pickle without tensors."""
    storages = {}

    def read_numbers(code, key, count):
        return np.zeros_like(_numbers(code, b''), shape=count)  # they follow the tensors

    def load():
        find = functools.partial(_find_storage, storages, read_numbers)
        return Unpickler(file, path, classes, find).load()

    value = load()
    if type(value) is not int or value != _MAGIC:
        return value
    load()  # the protocol's version
    _check_byteorder(load().get('little_endian', True))
    value, keys = load(), load()
    if {*keys} != storages.keys():
        raise ValueError('a storage is missing')
    for key in keys:
        code, numbers = storages[key]
        if struct.unpack('<q', file.read(8)) != numbers.shape:
            raise ValueError(f'a storage has not {len(numbers)} numbers')
        data = file.read(len(numbers) * _dtype(code).itemsize)
        numbers[:] = _numbers(code, data).reshape(len(numbers))
    return value


def _find_storage(storages, read_numbers, identity):
    """Find the storage ('storage', type, key, device, count[, None]) that a pickle refers to.

    `storages` keeps the type and the numbers that ``read_numbers(code, key, count)`` returns.
    """
    kind, code, key, _, count, *window = identity
    if kind != 'storage' or code not in STORAGES.values() or window not in ([], [None]):
        raise ValueError(f'it refers to {identity!r:.80}')
    if key not in storages:
        storages[key] = code, read_numbers(code, key, count)
    return Storage(storages[key][1])


def _numbers(code, data):
    """Return the numbers of a storage; numbers of 16 bits become float32."""
    numbers = np.frombuffer(data, _dtype(code))
    if code == BFLOAT16:
        return from_bfloat16(numbers)
    return numbers.astype(np.float32) if code == 'f2' else numbers


def _dtype(code):
    return np.dtype('u2' if code == BFLOAT16 else code).newbyteorder('<')


def _check_byteorder(is_little):
    if not is_little:
        raise ValueError('it was written on a big-endian machine')


#: NumPy's name of a type -> storage
_WRITTEN = {
    np.dtype(code).name: storage
    for storage, code in STORAGES.items()
    if code != BFLOAT16 and code[0] != 'c'
}


def write_torch(path, value):
    """Write plain data with arrays as ``torch.save`` does, whole or not at all.

    Arrays become tensors. An array that occurs several times is stored once, and torch's tensors
    share it.
    """
    content = io.BytesIO()
    pickler = _Pickler(content)
    pickler.dump(value)
    with atomic_write(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:

        def add(name, data):
            # by ZipInfo, whose date is always the same: a zip can't have all that a clock may show
            archive.writestr(zipfile.ZipInfo(f'archive/{name}'), data)

        add('data.pkl', content.getvalue())
        add('byteorder', 'little')
        for number, array in enumerate(pickler.arrays):
            little = np.ascontiguousarray(array, array.dtype.newbyteorder('<'))
            add(f'data/{number}', little.tobytes())
        add('version', '3\n')


class _Name(NamedTuple):
    """Pickles as the name of a class or a function."""

    module: str
    name: str

    def __call__(self):
        """Make `pickle` accept it as a function."""


class _Pickler(pickle._Pickler):
    """Writes arrays as ``_rebuild_tensor_v2(storage, offset, shape, strides, ...)``.

    Python's pickler in Python can write names that can't be imported. `arrays` are the storages.
    """

    dispatch = {**pickle._Pickler.dispatch}

    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.arrays = []

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        array = value.numbers
        if array.dtype.name not in _WRITTEN:
            raise CheckpointError(f'an array of {array.dtype} has no place in a file of PyTorch')
        self.arrays.append(array)
        kind = _Name('torch', _WRITTEN[array.dtype.name])
        return 'storage', kind, str(len(self.arrays) - 1), 'cpu', array.size

    def save_array(self, array):
        strides = np.empty_like(array, order='C').strides
        strides = tuple(stride // array.itemsize for stride in strides)
        rest = False, collections.OrderedDict()  # without gradients and hooks
        arguments = Storage(array), 0, array.shape, strides, *rest
        self.save_reduce(_Name('torch._utils', '_rebuild_tensor_v2'), arguments, obj=array)

    def save_name(self, name):
        self.write(f'c{name.module}\n{name.name}\n'.encode())

    dispatch[np.ndarray], dispatch[_Name] = save_array, save_name


#: names of the weights in a file that also has the state of a training
_WRAPPERS = ('state_dict', 'model_state_dict', 'model', 'module')


def is_torch(head):
    """Return whether a file that starts with the bytes `head` may be PyTorch's."""
    return head.startswith((_ZIP, b'\x80'))  # an archive, or a pickle


def read_torch(path):
    """Read the tensors of a file of weights, float16 and bfloat16 as float32; and no metadata.

    They may be in an inner dict, such as ``'state_dict'`` beside an optimizer's state.
    """
    content = read_pickle(path)
    if isinstance(content, dict) and not _has_tensors(content):
        inner = {name: value for name, value in content.items() if _has_tensors(value)}
        named = [name for name in _WRAPPERS if name in inner] or list(inner)
        if len(named) == 1 or (named and named[0] in _WRAPPERS):
            content = inner[named[0]]
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(value, np.ndarray) for name, value in content.items()
    ):
        raise CheckpointError(f'{path!r} must hold tensors by their names, a state_dict')
    return content, {}


def _has_tensors(value):
    return isinstance(value, dict) and any(isinstance(item, np.ndarray) for item in value.values())
