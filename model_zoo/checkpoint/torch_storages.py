"""The files of ``torch.save`` without torch: storages of numbers, and tensors that lie in them.

Since version 1.6 a file is a ZIP archive: ``NAME/data.pkl`` is a pickle, and ``NAME/data/KEY`` has
the numbers of a storage. Before, it was a stream: pickles of a magic number, of the protocol's
version, of the machine's properties, of the object and of the storages' keys, then for each key an
i64 count and the numbers. In both, a pickle refers to a storage as to something outside of it, and
a tensor says where in the storage its numbers are, so that tensors may share them.
"""

import io
import math
import reprlib
import struct
import zipfile
from typing import NamedTuple, Optional, Tuple

import numpy as np

from .arrays import from_bfloat16
from .unpickler import Limits, Unpickler

__all__ = ['MAX_DIMENSIONS', 'Tensor', 'TorchFile']

_MAGIC = 0x1950A86A20F9469CFC6C  # begins a stream
_BFLOAT16 = 'bfloat16'
#: storage -> its numbers' type
_STORAGES = {
    'BoolStorage': '?',
    'ByteStorage': 'u1',
    'CharStorage': 'i1',
    'ShortStorage': 'i2',
    'IntStorage': 'i4',
    'LongStorage': 'i8',
    'HalfStorage': 'f2',
    'BFloat16Storage': _BFLOAT16,
    'FloatStorage': 'f4',
    'DoubleStorage': 'f8',
    'ComplexFloatStorage': 'c8',
    'ComplexDoubleStorage': 'c16',
    'UntypedStorage': 'u1',  # its tensors say what it holds
}
_UNSIGNED = {'uint16': 'u2', 'uint32': 'u4', 'uint64': 'u8'}  # tensors of untyped storages
#: of an array, NumPy's
MAX_DIMENSIONS = 32


class _Storage(NamedTuple):
    """Where tensors take their numbers from: a storage, or in streams a part of one."""

    key: object
    code: str
    start: int = 0
    count: Optional[int] = None


class Tensor(NamedTuple):
    """Stands for a torch.Tensor until the storages have been read; a pickle can't change it.

    Attributes
    ----------
    storage : _Storage
    offset : int
        Where in the storage it begins, in numbers, as the strides are.
    size, stride : tuple of int
    code : str or None
        The numbers' type, in an untyped storage.
    """

    storage: _Storage
    offset: int
    size: Tuple[int, ...]
    stride: Tuple[int, ...]
    code: Optional[str] = None


class TorchFile:
    """Reads one file; the class that inherits says which names its pickles may ask for.

    Nothing is allocated that is larger than the file, whatever it claims to hold.

    Parameters
    ----------
    size : int
        Of the file, in bytes.
    """

    def __init__(self, size):
        self.size, self.limits = size, Limits(size)
        self.storages = {}  # key -> its numbers' type
        self.numbers = {}  # key -> its numbers
        #: names that the pickles may ask for -> what they get
        self.torch_names = {
            'torch.Size': self.make_size,
            'torch._utils._rebuild_tensor': self.make_tensor,
            'torch._utils._rebuild_tensor_v2': self.make_tensor,
            'torch._utils._rebuild_tensor_v3': self.make_unsigned,
            'torch._utils._rebuild_parameter': self.make_parameter,
            'torch._utils._rebuild_parameter_with_state': self.make_parameter,
            'torch.storage.UntypedStorage': 'UntypedStorage',
            **{f'torch.{name}': name for name in (*_STORAGES, *_UNSIGNED)},
        }

    def find(self, name):
        """What a pickle gets for a name."""
        raise NotImplementedError

    def build(self, instance, state):
        """Set the state of an instance; attributes of dicts, such as torch's, are left out."""
        if not isinstance(instance, dict):
            raise TypeError(f'a state of a {type(instance).__name__}')

    def load(self, file):
        """The next pickle of a file."""
        return Unpickler(file, self, self.limits).load()

    @staticmethod
    def begins_stream(value):
        """Whether this is the first pickle's value in a stream."""
        return type(value) is int and value == _MAGIC

    def read_stream(self, file):
        """The object in a stream, behind its magic number."""
        self.load(file)  # the protocol's version
        self.check_byteorder(self.load(file).get('little_endian', True))
        value, keys = self.load(file), self.load(file)
        for key in keys:
            (count,) = struct.unpack('<q', file.read(8))
            length = count * _itemsize(self.storages[key])
            if not 0 <= length <= self.size - file.tell():
                raise ValueError(f'it ends within a storage of {count} numbers')
            self.fill(key, file.read(length))
        return value

    def read_zip(self, file):
        """The object in an archive."""
        with zipfile.ZipFile(file) as archive:
            parts = self.read_parts(archive)
        pickles = [name for name in parts if name.split('/')[1:] == ['data.pkl']]
        if len(pickles) != 1:
            raise ValueError('it has no data.pkl')
        folder = pickles[0][: -len('data.pkl')]
        self.check_byteorder(parts.get(f'{folder}byteorder', b'little') == b'little')
        value = self.load(io.BytesIO(parts[pickles[0]]))
        for key in self.storages:
            self.fill(key, parts.pop(f'{folder}data/{key}'))
        return value

    def read_parts(self, archive):
        """Part of an archive -> its bytes, whose checksums are right."""
        parts, left = {}, self.size
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                # torch never does that; a bomb might
                raise ValueError(f'{info.filename} is compressed')
            left -= info.file_size
            if left < 0 or info.compress_size != info.file_size:
                raise ValueError('its parts are larger than the file')
            try:
                parts[info.filename] = archive.read(info)
            except zipfile.BadZipFile as error:
                if 'CRC' not in str(error):
                    raise
                what = f'the checksum of its part {info.filename} is wrong'
                raise ValueError(what) from error
        return parts

    def check_byteorder(self, little):
        if not little:
            raise ValueError('the file was written on a big-endian machine')

    def find_storage(self, identity):
        """What a pickle refers to: ('storage', type, key, device, count[, window])."""
        kind, name, key = identity[:3]
        if kind != 'storage' or name not in _STORAGES:
            raise ValueError(f'it refers to {reprlib.repr(identity)}')
        code = self.storages.setdefault(key, _STORAGES[name])
        window = identity[5] if len(identity) > 5 else None
        return _Storage(key, code, *(() if window is None else window[1:3]))

    def fill(self, key, data):
        """Take the numbers of a storage; those of 16 bits become float32."""
        code = self.storages[key]
        if len(data) % _itemsize(code):
            raise ValueError(f'a storage of {code} has {len(data)} bytes')
        bits = np.dtype('u2' if code == _BFLOAT16 else code).newbyteorder('<')
        numbers = np.ndarray(len(data) // bits.itemsize, bits, data)
        if code == _BFLOAT16:
            numbers = from_bfloat16(numbers)
        self.numbers[key] = numbers.astype(np.float32) if code == 'f2' else numbers

    def array_of(self, tensor):
        """A :class:`Tensor` as a view of its storage, not to be written to.

        Raises
        ------
        ValueError
            If it doesn't lie within its storage, or repeats its numbers more often than the file
            is long.
        """
        storage, offset, size, stride, code = tensor
        window = (storage.start, storage.count or 0)
        if not _are_sizes((offset, *size, *stride, *window)) or len(size) != len(stride):
            shape, strides = reprlib.repr(size), reprlib.repr(stride)
            raise ValueError(f'a tensor of shape {shape}, strides {strides}')
        if len(size) > MAX_DIMENSIONS:
            raise ValueError(f'a tensor of {len(size)} dimensions')
        numbers = self.numbers[storage.key][storage.start :][: storage.count]
        numbers = numbers if code is None else numbers.view(f'<{code}')
        count = math.prod(size)
        length = sum((one - 1) * step for one, step in zip(size, stride)) + 1 if count else 0
        if offset + length > len(numbers):
            raise ValueError(
                f'a tensor of shape {size} begins at {offset} in a storage of {len(numbers)}'
            )
        if count > length and count * numbers.itemsize > self.size:
            raise ValueError(f'a tensor of shape {size} repeats {length} numbers')
        part = numbers[offset : offset + length]
        if not count:
            return part.reshape(size)
        strides = [step * part.itemsize for step in stride]
        return np.lib.stride_tricks.as_strided(part, size, strides, writeable=False)

    # What pickles call. Bound methods: nothing can be set on them.

    def make_size(self, size=()):
        if type(size) is not tuple:
            raise TypeError(f'a size {reprlib.repr(size)}')
        return size

    def make_tensor(self, storage, offset, size, stride, *rest):
        return self._make_tensor(storage, offset, size, stride)

    def make_unsigned(self, storage, offset, size, stride, gradient, hooks, name, *rest):
        return self._make_tensor(storage, offset, size, stride, _UNSIGNED[name])

    def _make_tensor(self, storage, offset, size, stride, code=None):
        if not isinstance(storage, _Storage):
            raise TypeError(f'a tensor in a {type(storage).__name__}')
        if not type(size) is type(stride) is tuple:
            raise TypeError(f'a tensor of shape {reprlib.repr(size)}')
        return Tensor(storage, offset, size, stride, code)

    def make_parameter(self, tensor, *rest):
        return tensor


def _itemsize(code):
    return 2 if code == _BFLOAT16 else np.dtype(code).itemsize


def _are_sizes(numbers):
    return all(type(number) is int and number >= 0 for number in numbers)
