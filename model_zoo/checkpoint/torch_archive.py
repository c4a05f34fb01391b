"""PyTorch's files of weights, in the zip form of torch 1.6 and later, written without torch.

A file is a zip archive with a pickle, which says how tensors are built, and a part with the numbers
of each. The pickle's few opcodes are written here one by one.
"""

import struct
import zipfile

import numpy as np

from ..errors import CheckpointError
from ..util.files import atomic_write

__all__ = ['write_archive']

_STORAGES = {
    'bool': 'BoolStorage',
    'uint8': 'ByteStorage',
    'int8': 'CharStorage',
    'int16': 'ShortStorage',
    'float16': 'HalfStorage',
    'float32': 'FloatStorage',
    'float64': 'DoubleStorage',
    'int32': 'IntStorage',
    'int64': 'LongStorage',
}


def write_archive(path, tensors):
    """Write tensors by name, as ``torch.save(model.state_dict(), path)`` does, whole or not at all.

    Parameters
    ----------
    path : str
    tensors : dict of str to numpy.ndarray
        An array that has several names is stored once, and torch's tensors share it.
    """
    keys, parts, items = {}, [], []
    for name, array in tensors.items():
        if array.dtype.name not in _STORAGES:
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
    """A call of ``_rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)``."""
    strides = [stride // array.itemsize for stride in np.empty_like(array, order='C').strides]
    storage = _tuple(
        _text('storage'), _name('torch', _STORAGES[array.dtype.name]), _text(key), _text('cpu'),
        _number(array.size),
    )  # fmt: skip
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
