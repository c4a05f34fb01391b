"""PyTorch's files of weights (``pytorch_model.bin``), read and written without torch.

Since version 1.6 a file is a ZIP archive: ``NAME/data.pkl`` is a pickle, and ``NAME/data/KEY`` has
the numbers of a storage. Before, it was a stream: pickles of a magic number, of the protocol's
version, of the machine's properties, of the object and of the storages' keys, then for each key an
i64 count and the numbers. In both, a pickle refers to a storage as to something outside of it, and
a tensor says where in the storage its numbers are, so that tensors may share them. The few opcodes
of a pickle that is written are written one by one.
"""

import io
import os
import struct
import zipfile

import numpy as np

from ..errors import CheckpointError, MissingExtraError
from ..util.files import atomic_write
from .pickles import BFLOAT16, STORAGES, Storage, Unpickler, settle
from .tensor_files import from_bfloat16, reading

__all__ = ['is_torch', 'read_pickle', 'read_torch', 'write_archive', 'write_torch_object']


_MAGIC = 0x1950A86A20F9469CFC6C  # begins a stream
_ZIP = b'PK\x03\x04'


def read_pickle(path, classes=()):
    """Read a file of ``pickle.dump`` or ``torch.save`` that holds plain data, arrays and tensors.

    `classes` are ``'module.name'`` of what may be named beside these; their instances are read as
    ``types.SimpleNamespace`` of their attributes. CheckpointError if it names anything else.
    """
    path = os.fspath(path)
    with reading(path), open(path, 'rb') as file:
        return _Reader(path, file, classes).read()


class _Reader:
    """Reads one file."""

    def __init__(self, path, file, classes):
        self.path, self.file, self.classes = path, file, classes
        self.codes = {}  # key of a storage -> the type of its numbers
        self.numbers = {}  # key of a storage -> its numbers

    def read(self):
        if self.file.read(len(_ZIP)) == _ZIP:
            with zipfile.ZipFile(self.file) as archive:
                value = self.read_zip(archive)
        else:
            self.file.seek(0)
            value = self.load(self.file)
            if type(value) is int and value == _MAGIC:
                value = self.read_stream()
        return settle(value, self.numbers)

    def load(self, file):
        """Load the next pickle of a file."""
        return Unpickler(file, self.path, self.classes, self.find_storage).load()

    def read_stream(self):
        """Read the object in a stream, behind its magic number."""
        self.load(self.file)  # the protocol's version
        _check_byteorder(self.load(self.file).get('little_endian', True))
        value, keys = self.load(self.file), self.load(self.file)
        for key in keys:
            (count,) = struct.unpack('<q', self.file.read(8))
            length = count * _itemsize(self.codes[key])
            data = self.file.read(length)
            if len(data) != length:
                raise ValueError(f'it ends within a storage of {count} numbers')
            self.fill(key, data)
        return value

    def read_zip(self, archive):
        """Read the object in an archive."""
        names = [name for name in archive.namelist() if name.split('/')[1:] == ['data.pkl']]
        if len(names) != 1:
            raise ValueError('it has no data.pkl')
        folder = names[0][: -len('data.pkl')]
        if f'{folder}byteorder' in archive.namelist():
            _check_byteorder(archive.read(f'{folder}byteorder') == b'little')
        value = self.load(io.BytesIO(archive.read(names[0])))
        for key in self.codes:
            self.fill(key, archive.read(f'{folder}data/{key}'))
        return value

    def find_storage(self, identity):
        """Find what a pickle refers to: ('storage', type, key, device, count[, window])."""
        kind, code, key = identity[:3]
        if kind != 'storage' or code not in STORAGES.values():
            raise ValueError(f'it refers to {identity!r:.80}')
        self.codes.setdefault(key, code)
        window = identity[5] if len(identity) > 5 else None
        return Storage(key, *(() if window is None else window[1:3]))

    def fill(self, key, data):
        """Take the numbers of a storage; those of 16 bits become float32."""
        code = self.codes[key]
        if len(data) % _itemsize(code):
            raise ValueError(f'a storage of {code} has {len(data)} bytes')
        bits = np.dtype('u2' if code == BFLOAT16 else code).newbyteorder('<')
        numbers = np.frombuffer(data, bits)
        if code == BFLOAT16:
            numbers = from_bfloat16(numbers)
        self.numbers[key] = numbers.astype(np.float32) if code == 'f2' else numbers


def _check_byteorder(is_little):
    if not is_little:
        raise ValueError('it was written on a big-endian machine')


def _itemsize(code):
    return 2 if code == BFLOAT16 else np.dtype(code).itemsize


#: NumPy's name of a type -> storage
_WRITTEN = {
    np.dtype(code).name: storage
    for storage, code in STORAGES.items()
    if code != BFLOAT16 and code[0] != 'c' and storage != 'UntypedStorage'
}


def write_archive(path, tensors):
    """Write tensors by name, as ``torch.save(model.state_dict(), path)`` does, whole or not at all.

    An array that has several names is stored once, and torch's tensors share it.
    """
    keys, parts, items = {}, [], []
    for name, array in tensors.items():
        if array.dtype.name not in _WRITTEN:
            raise CheckpointError(f'{name} is {array.dtype}: not for a file of PyTorch')
        if id(array) not in keys:
            keys[id(array)] = str(len(parts))
            parts.append(array)
        items += [_text(name), _tensor(array, keys[id(array)])]
    pickle = b''.join(
        [b'\x80\x02', _empty_dict(), b'(', *items, b'u.']  # protocol 2; set all items; stop
    )
    with atomic_write(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
        # by ZipInfo, whose date is always the same: a zip can't have all that a clock may show
        archive.writestr(zipfile.ZipInfo('archive/data.pkl'), pickle)
        archive.writestr(zipfile.ZipInfo('archive/byteorder'), 'little')
        for number, array in enumerate(parts):
            little = np.ascontiguousarray(array, array.dtype.newbyteorder('<'))
            archive.writestr(zipfile.ZipInfo(f'archive/data/{number}'), little.tobytes())
        archive.writestr(zipfile.ZipInfo('archive/version'), '3\n')


def _tensor(array, key):
    """Write ``_rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)``."""
    strides = [stride // array.itemsize for stride in np.empty_like(array, order='C').strides]
    storage = _tuple(
        _text('storage'),
        _name('torch', _WRITTEN[array.dtype.name]),
        _text(key),
        _text('cpu'),
        _number(array.size),
    )
    arguments = _tuple(
        storage + b'Q',  # what the storage's own reader makes of it
        _number(0),
        _tuple(*map(_number, array.shape)),
        _tuple(*map(_number, strides)),
        b'\x89',  # False
        _empty_dict(),
    )
    return _name('torch._utils', '_rebuild_tensor_v2') + arguments + b'R'


def _empty_dict():
    return _name('collections', 'OrderedDict') + b')R'


def _tuple(*items):
    return b'(' + b''.join(items) + b't'


def _name(module, name):
    return f'c{module}\n{name}\n'.encode()


def _text(text):
    encoded = text.encode('utf-8')
    return b'X' + struct.pack('<I', len(encoded)) + encoded


def _number(number):
    if number < 2**31:
        return b'J' + struct.pack('<i', number)
    return b'\x8a\x08' + struct.pack('<q', number)


#: what programs call the weights in a file that also has the state of a training
_WRAPPERS = ('state_dict', 'model_state_dict', 'model', 'module')


def is_torch(head):
    """Return whether a file that starts with the bytes `head` may be one of PyTorch's.

    They are zip archives since version 1.6, pickles before.
    """
    return head.startswith(_ZIP) or (head[:1] == b'\x80' and b'\2' <= head[1:2] <= b'\5')


def read_torch(path):
    """Read the tensors of a file of weights, float16 and bfloat16 as float32; and no metadata.

    If they are in a dict in the file's one, such as ``'state_dict'`` beside an optimizer's state,
    they are found there. They are views, some of the same numbers, and not to be written to.
    """
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise CheckpointError(
            f'{path!r} holds a {type(content).__name__}, not tensors by their names (a state_dict)'
        )
    if not _has_tensors(content):
        inner = {name: value for name, value in content.items() if _has_tensors(value)}
        named = [name for name in _WRAPPERS if name in inner] or list(inner)
        if len(named) == 1 or (named and named[0] in _WRAPPERS):
            content = inner[named[0]]
    for name, value in content.items():
        if not isinstance(value, np.ndarray) or not isinstance(name, str):
            raise CheckpointError(
                f'{path!r} holds other things than tensors by their names: {name!r:.80} is a '
                f'{type(value).__name__}; save the state_dict alone'
            )
    return content, {}


def _has_tensors(value):
    return isinstance(value, dict) and any(isinstance(item, np.ndarray) for item in value.values())


def write_torch_object(path, value):
    """Write what ``torch.load`` returns: plain data, whose NumPy arrays become tensors."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError.of('torch', 'torch') from error

    def with_tensors(item):
        if isinstance(item, np.ndarray):
            return torch.from_numpy(np.array(item))
        if isinstance(item, list) and item and isinstance(item[0], np.ndarray):
            return [with_tensors(part) for part in item]
        return item

    if isinstance(value, dict):
        value = type(value)((name, with_tensors(item)) for name, item in value.items())
    with atomic_write(path, 'wb') as file:
        torch.save(value, file)
