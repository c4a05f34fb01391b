"""PyTorch's files of weights (``pytorch_model.bin``), read and written without torch.

Since version 1.6 a file is a ZIP archive: ``NAME/data.pkl`` is a pickle, and ``NAME/data/KEY`` has
the numbers of a storage. Before, it was a stream: pickles of a magic number, of the protocol's
version, of the machine's properties, of the object and of the storages' keys, then for each key an
i64 count and the numbers. In both, a pickle refers to a storage as to something outside of it, and
a tensor says where in the storage its numbers are, so that tensors may share them. The few opcodes
of a pickle that is written are written one by one.
"""

import collections
import io
import math
import pickle
import reprlib
import struct
import zipfile
from typing import NamedTuple, Optional, Tuple

import numpy as np

from ..errors import CheckpointError, MissingExtraError
from ..util.files import atomic_write
from .tensor_files import from_bfloat16, reading

__all__ = [
    'Limits',
    'MAX_DIMENSIONS',
    'Tensor',
    'TorchFile',
    'Unpickler',
    'check_keys',
    'is_torch',
    'read_torch',
    'write_archive',
    'write_torch_object',
]


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
    """Stands for a torch.Tensor until the storages have been read; a pickle can't change it."""

    storage: _Storage
    offset: int
    size: Tuple[int, ...]
    stride: Tuple[int, ...]
    code: Optional[str] = None


class TorchFile:
    """Reads one file; the class that inherits says which names its pickles may ask for.

    Nothing is allocated that is larger than the file, whatever it claims to hold.
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
        for key in check_keys(keys):
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
        if kind != 'storage' or type(name) is not str or name not in _STORAGES:
            raise ValueError(f'it refers to {reprlib.repr(identity)}')
        code = self.storages.setdefault(*check_keys([key]), _STORAGES[name])
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
        """A :class:`Tensor` as a view of its storage, not to be written to."""
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
        length = sum((length - 1) * step for length, step in zip(size, stride)) + 1 if count else 0
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

    def make_ordered(self, items=()):
        self.limits.spend_items(len(items))
        check_keys(items if isinstance(items, dict) else [key for key, _ in items])
        return collections.OrderedDict(items)

    def make_size(self, size=()):
        if type(size) is not tuple:
            raise TypeError(f'a size {reprlib.repr(size)}')
        return size

    def make_tensor(self, storage, offset, size, stride, *rest):
        return self._make_tensor(storage, offset, size, stride)

    def make_unsigned(self, storage, offset, size, stride, gradient, hooks, name, *rest):
        return self._make_tensor(storage, offset, size, stride, _UNSIGNED[str(name)])

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


#: NumPy's name of a type -> storage
_WRITTEN = {
    np.dtype(code).name: storage
    for storage, code in _STORAGES.items()
    if code != _BFLOAT16 and code[0] != 'c' and storage != 'UntypedStorage'
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
    """A call of ``_rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)``."""
    strides = [stride // array.itemsize for stride in np.empty_like(array, order='C').strides]
    storage = _tuple(
        _text('storage'), _name('torch', _WRITTEN[array.dtype.name]), _text(key), _text('cpu'),
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
    """The tensors of a file of weights, float16 and bfloat16 as float32; and no metadata.

    If they are in a dict in the file's one, such as ``'state_dict'`` beside an optimizer's state,
    they are found there. They are views, some of the same numbers, and not to be written to.
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
        with reading(path):
            if head.startswith(_ZIP):
                content = reader.read_zip(file)
            else:
                reader.load(file)  # the magic number
                content = reader.read_stream(file)
            tensors = _state_dict(path, content)
            return {name: reader.array_of(tensor) for name, tensor in tensors.items()}, {}


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
            type_name = 'dict' if isinstance(value, dict) else type(value).__name__
            raise CheckpointError(
                f'{path!r} holds other things than tensors by their names: {name!r:.80} is a '
                f'{type_name}; save the state_dict alone'
            )
    return content


def _has_tensors(value):
    return isinstance(value, dict) and any(isinstance(item, Tensor) for item in value.values())


class _Weights(TorchFile):
    """What the pickles in a file of weights may call: little, as nothing else is needed."""

    def __init__(self, path, size):
        super().__init__(size)
        self.path = path
        self.names = {
            **self.torch_names,
            'collections.OrderedDict': self.make_ordered,
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

    def make_subclass(self, make, name, arguments, state):
        if name != 'Parameter' or make not in (self.make_tensor, self.make_unsigned):
            raise TypeError(f'a tensor of class {name!r:.80}')
        return make(*arguments)


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


_FREE = 1 << 25  # bytes of memory that any file may take,
_MOST = 32  # and how many for each of its own, beyond texts, bytes and numbers
_ITEM = 64  # bytes of an element of a dict or set
_DEEPEST_TUPLE = 50  # Python computes hashes of tuples recursively
_DEEPEST_MARK = 10000
# Bytes that an instruction of one to five bytes may take. What the others make isn't much larger
# than the instruction is, or it counts where it is made.
_COSTS = {
    64: (pickle.EMPTY_LIST, pickle.LIST),
    72: (pickle.EMPTY_DICT, pickle.DICT),
    100: (
        pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE, pickle.PERSID,
        pickle.BINPERSID,
    ),
    224: (pickle.EMPTY_SET, pickle.FROZENSET),
    240: (pickle.REDUCE, pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX),
}  # fmt: skip
# by their types alone: the hash of other things, or comparing them, may take for ever
_SCALARS = frozenset([str, bytes, int, float, bool, type(None)])
_LARGEST_KEY = 2**61 - 2  # larger numbers may all have the same hash


def check_keys(keys):
    """The keys of a dict, or elements of a set; TypeError unless all are scalars."""
    types = set(map(type, keys))
    if int in types and any(type(key) is int and abs(key) > _LARGEST_KEY for key in keys):
        raise TypeError('a huge number is the key of a dict or element of a set')
    for key_type in types - _SCALARS:
        raise TypeError(f'a {key_type.__name__} is the key of a dict or element of a set')
    return keys


class Limits:
    """What one file may cost: memory in proportion to its size."""

    def __init__(self, size):
        self.size = size
        self.left = _FREE + _MOST * size
        self._tuples = {}  # id -> the tuple, its elements at all depths, its depth

    def spend(self, count):
        """Take `count` bytes of memory."""
        self.left -= count
        if self.left < 0:
            raise ValueError('it makes far more than the file holds')

    def spend_items(self, count):
        """Take the memory of `count` elements of a dict or set."""
        self.spend(_ITEM * count)

    def check_tuple(self, value):
        """Raise ValueError for a tuple of too many elements at all depths; returns it."""
        count, depth = len(value), 1
        for item in value:
            if type(item) is tuple:
                _, inner, below = self._tuples.get(id(item), (item, len(item), 1))
                count, depth = count + inner, max(depth, below + 1)
        if count > _MOST * self.size or depth > _DEEPEST_TUPLE:
            raise ValueError('its tuples are nested too deeply')
        self.spend(8 * len(value) + (40 if depth == 1 else 240))
        if depth > 1:
            self._tuples[id(value)] = value, count, depth
        return value


class Unpickler(pickle._Unpickler):
    """Reads one pickle of a file, within limits.

    Python's reader in C gives a pickle of a few bytes gigabytes for its memo, computes the hashes
    of nested tuples and sets for minutes, and sets attributes on whatever it finds. The one in
    Python can be told not to. It reads a pickled vocabulary of 267,735 words in 2.5 seconds.

    Parameters
    ----------
    reader : object
        ``find(name)`` gives what a pickle gets for ``'module.name'``, ``find_storage(identity)``
        for a reference to something outside of it, and ``build(instance, state)`` sets the state
        of an instance.
    """

    def __init__(self, file, reader, limits):
        super().__init__(file, encoding='latin1')  # Python 2's arrays are such strings
        self._reader, self._limits = reader, limits

    def find_class(self, module, name):
        return self._reader.find(f'{module}.{name}')

    def persistent_load(self, identity):
        return self._reader.find_storage(identity)

    def load_build(self):
        state = self.stack.pop()
        self._reader.build(self.stack[-1], state)

    def load_bytearray8(self):
        (count,) = struct.unpack('<Q', self.read(8))
        if count > self._limits.size:
            raise ValueError(f'{count} bytes in a file of {self._limits.size}')
        self.append(bytearray(self.read(count)))

    def load_mark(self):
        if len(self.metastack) > _DEEPEST_MARK:
            raise ValueError('it is nested too deeply')
        super().load_mark()

    def load_tuple(self):
        items = self.pop_mark()  # which also replaces `append`
        self.append(self._limits.check_tuple(tuple(items)))

    def _last(self, count):
        self.stack[-count:] = [self._limits.check_tuple(tuple(self.stack[-count:]))]

    def load_tuple1(self):
        self._last(1)

    def load_tuple2(self):
        self._last(2)

    def load_tuple3(self):
        self._last(3)

    def load_dict(self):
        check_keys(self.stack[::2])
        super().load_dict()

    def load_setitem(self):
        check_keys(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self):
        check_keys(self.stack[::2])
        super().load_setitems()

    def load_additems(self):
        check_keys(self.stack)
        super().load_additems()

    def load_frozenset(self):
        check_keys(self.stack)
        super().load_frozenset()


def _costly(load, cost):
    def spend_and_load(self):
        limits = self._limits
        limits.left -= cost  # here, as this is done for each instruction
        if limits.left < 0:
            limits.spend(0)
        load(self)

    return spend_and_load


def _instructions():
    """Code of an instruction -> what carries it out."""
    instructions = {
        code: getattr(Unpickler, load.__name__) for code, load in pickle._Unpickler.dispatch.items()
    }
    for cost, codes in _COSTS.items():
        for code in codes:
            instructions[code[0]] = _costly(instructions[code[0]], cost)
    return instructions


Unpickler.dispatch = _instructions()
