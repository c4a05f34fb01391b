"""Pickles of plain data, read without executing them.

A pickle names the functions that build its objects, and Python's own reader calls any function that
it names. Here only dicts, lists, strings, numbers, NumPy arrays and torch's tensors are created.
Instances of classes that the caller lists become namespaces of their attributes. Any other name is
refused. The functions that a pickle may call are created for each file, so a pickle can't leave
anything behind in them. Neither torch nor the listed classes are imported.
"""

import collections
import io
import math
import os
import pickle
import struct
import types
import zipfile

import numpy as np

from ..errors import CheckpointError

__all__ = ['read_object_array', 'read_pickle']

_TORCH_MAGIC = 0x1950A86A20F9469CFC6C  # begins the files of torch.save before version 1.6
_STORAGES = {
    'ByteStorage': 'u1',
    'CharStorage': 'i1',
    'ShortStorage': 'i2',
    'IntStorage': 'i4',
    'LongStorage': 'i8',
    'HalfStorage': 'f2',
    'FloatStorage': 'f4',
    'DoubleStorage': 'f8',
}


def read_pickle(path, classes=()):
    """Read a file of ``pickle.dump`` or ``torch.save`` that holds plain data.

    Parameters
    ----------
    path : str or os.PathLike
    classes : iterable of str
        ``'module.name'`` of classes and functions that may be named. Their instances are read as
        ``types.SimpleNamespace`` objects of their attributes.

    Returns
    -------
    object
        Tensors are NumPy arrays.

    Raises
    ------
    CheckpointError
        If the file can't be read, isn't a pickle, or names something else; the message says what.
    """
    path = os.fspath(path)
    try:
        with open(path, 'rb') as file:
            content = file.read()
        reader = _Reader(path, classes)
        if content[:4] == b'PK\3\4':
            return reader.read_zip(content)
        return reader.read_stream(content)
    except OSError as error:
        raise CheckpointError(f'cannot read {path!r}: {error.strerror or error}') from error
    except CheckpointError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise CheckpointError(
            f'{path!r} is not a readable pickle ({type(error).__name__}: {error})'
        ) from error


def read_object_array(content, path):
    """Read a pickled array of plain objects, such as arrays of several lengths.

    Parameters
    ----------
    content : bytes
        The pickle behind the header of an ``.npy`` file.
    path : str
        For messages.

    Returns
    -------
    numpy.ndarray
        Of objects.

    Raises
    ------
    CheckpointError
        If the pickle is damaged, or names something else; the message says what.
    """
    try:
        array = _Reader(path, (), object_arrays=True).read_stream(content)
        if not isinstance(array, np.ndarray):
            raise ValueError(f'a {type(array).__name__}')
        return array
    except CheckpointError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise CheckpointError(
            f'{path!r} holds no readable array of objects ({type(error).__name__}: {error})'
        ) from error


class _Reader:
    """What the pickles of one file may call."""

    def __init__(self, path, classes, object_arrays=False):
        self.path = path
        self.storages = {}  # key -> its bytes, as far as they have been read
        # classes of this file only: a pickle can set attributes of classes
        record = type('Record', (_Record,), {})
        kinds = 'biufO' if object_arrays else 'biuf'
        dtype, array = type('DType', (_DType,), {'kinds': kinds}), type('Array', (_Array,), {})
        self.names = dict.fromkeys(classes, record)
        self.record, self.array = record, array
        for module in ('builtins', '__builtin__'):
            for kind in (set, frozenset, list, dict, tuple, object):
                self.names[f'{module}.{kind.__name__}'] = kind
            self.names[f'{module}.bytes'] = self.make_bytes  # empty ones, in old protocols
            self.names[f'{module}.bytearray'] = self.make_bytearray
        self.names.update(
            {
                'collections.OrderedDict': collections.OrderedDict,
                'collections.Counter': self.make_counter,
                'copyreg._reconstructor': self.make_record,
                'copy_reg._reconstructor': self.make_record,
                '_codecs.encode': self.encode_latin1,  # how Python 2's protocols hold bytes
                'numpy.dtype': dtype,
                'numpy.ndarray': array,
                'torch.Size': tuple,
                'torch._utils._rebuild_tensor': self.make_tensor,
                'torch._utils._rebuild_tensor_v2': self.make_tensor,
            }
        )
        for module in ('numpy.core', 'numpy._core'):
            self.names[f'{module}.multiarray._reconstruct'] = self.make_array
            self.names[f'{module}.multiarray.scalar'] = self.make_scalar
            self.names[f'{module}.numeric._frombuffer'] = self.make_array_from_buffer
        self.storage_names = {f'torch.{name}': f'torch {code}' for name, code in _STORAGES.items()}

    def read_stream(self, content):
        """A pickle, or what torch.save wrote before version 1.6: pickles and then storages."""
        file = io.BytesIO(content)
        value = self.load(file)
        if value != _TORCH_MAGIC:
            return self.settle(value)
        self.load(file)  # version of the protocol
        self.check_byteorder(self.load(file).get('little_endian', True))
        value, keys = self.load(file), self.load(file)
        for key in keys:
            code, numel = self.storages[key].code, struct.unpack('<q', file.read(8))[0]
            self.storages[key].data = file.read(numel * np.dtype(code).itemsize)
        return self.settle(value)

    def read_zip(self, content):
        """What torch.save writes: a ZIP archive with data.pkl and a file for each storage."""
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            (name,) = (name for name in archive.namelist() if name.split('/')[1:] == ['data.pkl'])
            folder = name[: -len('data.pkl')]
            if f'{folder}byteorder' in archive.namelist():
                self.check_byteorder(archive.read(f'{folder}byteorder') == b'little')
            value = self.load(io.BytesIO(self.member(archive, name)))
            for key, storage in self.storages.items():
                storage.data = self.member(archive, f'{folder}data/{key}')
        return self.settle(value)

    def member(self, archive, name):
        if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
            raise ValueError(f'{name} is compressed')  # torch never does that; a bomb might
        return archive.read(name)

    def check_byteorder(self, little):
        if not little:
            raise ValueError('the file was written on a big-endian machine')

    def load(self, file):
        unpickler = _Unpickler(file, encoding='latin1')  # Python 2's arrays are such strings
        unpickler.reader = self
        return unpickler.load()

    def find(self, name):
        if name in self.names:
            return self.names[name]
        if name in self.storage_names:
            return self.storage_names[name]
        raise CheckpointError(
            f'{self.path!r} is refused: it asks for {name}, which is no plain data; '
            'do not load it by other means unless you trust its author'
        )

    def find_storage(self, identity):
        kind, storage_type, key = identity[:3]
        if kind != 'storage' or storage_type not in self.storage_names.values():
            raise CheckpointError(f'{self.path!r} is refused: it refers to {identity!r:.80}')
        return self.storages.setdefault(key, _Storage(storage_type.split()[1]))

    # What pickles call. Bound methods: nothing can be set on them.

    def make_counter(self, counts=()):
        return collections.Counter(counts)

    def make_bytes(self):
        return b''

    def make_bytearray(self, data=b'', encoding='latin1'):
        return bytearray(_to_bytes(data))

    def make_record(self, kind, base=object, state=None):
        if kind is not self.record:
            raise TypeError(f'no instance of {kind!r}')
        return kind()

    def encode_latin1(self, text, encoding='latin1'):
        if encoding not in ('latin1', 'latin-1'):
            raise ValueError(f'encoding {encoding!r}')
        return text.encode('latin1')

    def make_array(self, kind=None, shape=(), code=b''):
        return self.array()

    def make_array_from_buffer(self, buffer, dtype, shape, order):
        array = self.array()
        array.__setstate__((1, shape, dtype, order == 'F', bytes(buffer)))
        return array

    def make_scalar(self, dtype, data):
        array = self.make_array_from_buffer(_to_bytes(data), dtype, (), 'C')
        return array.value.item()

    def make_tensor(self, storage, offset, size, stride, *rest):
        size, stride = tuple(size), tuple(stride)
        contiguous = tuple(math.prod(size[place + 1 :]) for place in range(len(size)))
        if stride != contiguous and math.prod(size):
            raise ValueError(f'a tensor of shape {size} has strides {stride}')
        return _Tensor(storage, offset, size)

    def settle(self, value, seen=None):
        """`value`, with placeholders replaced by arrays and namespaces."""
        seen = {} if seen is None else seen
        if id(value) in seen:
            return seen[id(value)]
        if isinstance(value, (_Array, _Tensor)):
            settled = value.settled()
            if settled.dtype != object:
                return settled
            items = np.empty(settled.size, object)
            for place, item in enumerate(settled.flat):
                items[place] = self.settle(item, seen)
            return items.reshape(settled.shape)
        if isinstance(value, _Record):
            result = seen[id(value)] = types.SimpleNamespace()
            fields = {key: item for key, item in vars(value).items() if isinstance(key, str)}
            vars(result).update(self.settle(fields, seen))
            return result
        if isinstance(value, dict):
            seen[id(value)] = value
            for key in value:
                if isinstance(value[key], (_Array, _Tensor, _Record, dict, list, tuple)):
                    value[key] = self.settle(value[key], seen)
        elif isinstance(value, list):
            seen[id(value)] = value
            for place, item in enumerate(value):
                if isinstance(item, (_Array, _Tensor, _Record, dict, list, tuple)):
                    value[place] = self.settle(item, seen)
        elif type(value) is tuple:
            return tuple(self.settle(item, seen) for item in value)
        return value


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        return self.reader.find(f'{module}.{name}')

    def persistent_load(self, identity):
        return self.reader.find_storage(identity)


class _Record:
    """Stands for an instance of a listed class, or for what a listed function returned."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __setstate__(self, state):
        if isinstance(state, dict):
            vars(self).update(state)


class _DType:
    """Stands for a numpy.dtype of numbers or booleans, and of objects where these are wanted."""

    kinds = 'biuf'

    def __init__(self, code, *rest):
        self.dtype = np.dtype(code if isinstance(code, str) else 'V')
        if self.dtype.kind not in self.kinds:
            raise ValueError(f'an array of {code!r}')

    def __setstate__(self, state):
        if state[1] in ('<', '>'):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """Stands for a numpy.ndarray."""

    def __setstate__(self, state):
        _, shape, dtype, fortran, data = state
        if dtype.dtype == object:
            flat = np.empty(len(data), object)
            for place, item in enumerate(data):
                flat[place] = item
        else:
            flat = np.frombuffer(_to_bytes(data), dtype.dtype)
        self.value = flat.reshape(shape, order='F' if fortran else 'C')

    def settled(self):
        return self.value.astype(self.value.dtype.newbyteorder('='))


class _Storage:
    """What torch's tensors take their numbers from."""

    def __init__(self, code):
        self.code, self.data = code, None


class _Tensor:
    """Stands for a contiguous torch.Tensor until the storages have been read."""

    def __init__(self, storage, offset, size):
        self.storage, self.offset, self.size = storage, offset, size

    def settled(self):
        flat = np.frombuffer(self.storage.data, f'<{self.storage.code}')
        count = math.prod(self.size)
        if not 0 <= self.offset <= len(flat) - count:
            raise ValueError(f'a tensor of shape {self.size} in a storage of {len(flat)}')
        return flat[self.offset : self.offset + count].reshape(self.size).copy()


def _to_bytes(data):
    if isinstance(data, str):
        return data.encode('latin1')
    return bytes(memoryview(data))  # of a number, bytes() would make as many zeros
