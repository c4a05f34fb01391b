"""Pickles of plain data and tensors, read without running anything that they name.

A pickle names classes and functions, and asks for calls of them. Here it gets stand-ins for a short
list of names, and any other name is refused. A stand-in only keeps its arguments, and `plain_value`
makes values of the stand-ins.
"""

import io
import math
import pickle
import types
from typing import NamedTuple

import numpy as np

from ..errors import CheckpointError

#: a type of numbers that NumPy lacks
BFLOAT16 = 'bfloat16'
_WHOLE = {'Bool': '?', 'Byte': 'u1', 'Char': 'i1', 'Short': 'i2', 'Int': 'i4', 'Long': 'i8'}
_FLOATS = {'Half': 'f2', 'BFloat16': BFLOAT16, 'Float': 'f4', 'Double': 'f8'}
_NUMBERS = {**_WHOLE, **_FLOATS, 'ComplexFloat': 'c8', 'ComplexDouble': 'c16'}
#: a class of torch's storages -> the type of its numbers
STORAGES = {f'{name}Storage': code for name, code in _NUMBERS.items()}


# A pickle can set the state of any object, by its `__setstate__` if it has one. So each class has
# one, and a pickle can't set attributes of the class itself, or of a function.


class _Function:
    """A function that a pickle may call."""

    __slots__ = ('_call',)

    def __init__(self, call):
        self._call = call

    def __call__(self, *arguments):
        return self._call(*arguments)

    def __setstate__(self, state):
        raise TypeError('a pickle sets the state of a function')


class _Dict(dict):
    """Stands for a dict with attributes, such as torch's, which are left out."""

    def __setstate__(self, state):
        pass


class _Record:
    """Stands for an instance of a class that the caller lists."""

    def __init__(self, *arguments):
        pass

    def __setstate__(self, state):
        vars(self).update((name, value) for name, value in state.items() if isinstance(name, str))


class _DType:
    """Stands for a numpy.dtype of numbers, booleans or objects."""

    def __init__(self, code, *rest):
        self.dtype = np.dtype(str(code))
        if self.dtype.kind not in 'biufO':
            raise ValueError(f'an array of {code!r:.80}')

    def __setstate__(self, state):
        if state[1] in ('<', '>'):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """Stands for a numpy.ndarray."""

    def __init__(self, *arguments):
        pass

    def __setstate__(self, state):
        _, shape, dtype, is_fortran, data = state
        self.value = _values(data, dtype, shape, 'F' if is_fortran else 'C')


class Storage(NamedTuple):
    """Numbers outside of the pickle; a pickle can't make one by itself."""

    numbers: np.ndarray


def _values(data, dtype, shape, order='C'):
    if dtype.dtype == object:
        flat = np.empty(len(data), object)
        for index, item in enumerate(data):
            flat[index] = item
    else:
        data = data.encode('latin1') if isinstance(data, str) else data
        flat = np.frombuffer(data, dtype.dtype)
    return flat.reshape(shape, order=order)


def _array(*arguments):
    array = _Array()
    array.value = _values(*arguments)
    return array


def _scalar(dtype, data):
    return _values(data, dtype, ()).item()


def _encode(text, encoding='latin1'):
    if encoding not in ('latin1', 'latin-1'):
        raise ValueError(f'encoding {encoding!r:.80}')
    return text.encode('latin1')


def _tensor(storage, offset, size, stride, *rest):
    """Return a part of a storage's numbers, which may overlap with other tensors."""
    is_whole = isinstance(storage, Storage) and type(size) is type(stride) is tuple
    if not is_whole or not all(type(n) is int and n >= 0 for n in (offset, *size, *stride)):
        raise ValueError(f'a tensor of shape {size}, strides {stride}')
    numbers = storage.numbers
    if not math.prod(size):
        return numbers[:0].reshape(size)
    length = sum((length - 1) * step for length, step in zip(size, stride, strict=True)) + 1
    if offset + length > len(numbers):
        place = f'begins at {offset} in a storage of {len(numbers)}'
        raise ValueError(f'a tensor of shape {size} {place}')
    part = numbers[offset : offset + length]
    strides = [step * part.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(part, size, strides, writeable=False)


def _of_data(kind):
    """Return the function that makes bytes of data; of a number it would make that many."""

    def make(*arguments):
        if any(isinstance(argument, int) for argument in arguments):
            raise ValueError(f'{kind.__name__} of a number')
        return kind(*arguments)

    return _Function(make)


#: modules' names in older or newer versions of Python and NumPy -> the names below
_RENAMED = {
    '__builtin__': 'builtins',
    'copy_reg': 'copyreg',
    'numpy._core.multiarray': 'numpy.core.multiarray',
    'numpy._core.numeric': 'numpy.core.numeric',
}
_NAMES = {
    'builtins.object': 'object',  # which is only passed on, to `_reconstructor`
    **{f'builtins.{each.__name__}': each for each in (set, frozenset, list, dict, tuple)},
    **{f'builtins.{each.__name__}': _of_data(each) for each in (bytes, bytearray)},
    'collections.OrderedDict': _Dict,
    'collections.Counter': _Dict,
    'copyreg._reconstructor': _Function(lambda kind, base, state: kind()),
    '_codecs.encode': _Function(_encode),  # how old protocols hold bytes
    'numpy.dtype': _DType,
    'numpy.ndarray': 'ndarray',  # which is only passed on, to `_reconstruct`
    'numpy.core.multiarray._reconstruct': _Array,
    'numpy.core.multiarray.scalar': _Function(_scalar),
    'numpy.core.numeric._frombuffer': _Function(_array),
    'torch.Size': tuple,
    'torch._utils._rebuild_tensor': _Function(_tensor),
    'torch._utils._rebuild_tensor_v2': _Function(_tensor),
    'torch._utils._rebuild_parameter': _Function(lambda tensor, *rest: tensor),
    'torch._utils._rebuild_parameter_with_state': _Function(lambda tensor, *rest: tensor),
    'torch._tensor._rebuild_from_type_v2': _Function(lambda make, kind, given, state: make(*given)),
    'torch.nn.parameter.Parameter': 'Parameter',
    **{f'torch.{name}': code for name, code in STORAGES.items()},
}


class Unpickler(pickle._Unpickler):
    """Reads a pickle of `path`, in which only listed names have a meaning.

    It is Python's reader in Python: the one in C takes gigabytes of memory for a pickle with one
    damaged bit.

    Parameters
    ----------
    classes : iterable of str
        ``'module.name'`` of classes whose instances are read, as namespaces.
    find_storage : callable, optional
        ``find_storage(identity)`` returns the `Storage` that a pickle of torch refers to.
    """

    def __init__(self, file, path, classes=(), find_storage=None):
        super().__init__(file, encoding='latin1')  # Python 2's arrays are such strings
        self._path, self._find_storage = path, find_storage
        self._names = {**_NAMES, **dict.fromkeys(classes, _Record)}

    def find_class(self, module, name):
        found = self._names.get(f'{_RENAMED.get(module, module)}.{name}')
        if found is None:
            problem = f'asks for {module}.{name}, which is neither data nor a tensor'
            raise CheckpointError(f'{self._path!r} {problem}')
        return found

    def persistent_load(self, identity):
        return self._find_storage(identity)


def plain_value(value):
    """Return what an `Unpickler` has loaded, with values instead of the stand-ins."""
    seen = {}  # an object may be in several others, or in itself

    def plain(value):
        if id(value) in seen:
            return seen[id(value)]
        if isinstance(value, (dict, _Record)):
            made = seen[id(value)] = {} if isinstance(value, dict) else types.SimpleNamespace()
            items = value if isinstance(value, dict) else vars(value)
            target = made if isinstance(value, dict) else vars(made)
            target.update((key, plain(item)) for key, item in items.items())
        elif isinstance(value, list):
            made = seen[id(value)] = []
            made.extend(map(plain, value))
        elif isinstance(value, tuple):
            made = seen[id(value)] = tuple(map(plain, value))
        elif isinstance(value, _Array):
            made = seen[id(value)] = value.value.astype(value.value.dtype.newbyteorder('='))
            if made.dtype == object:
                for index in np.ndindex(made.shape):
                    made[index] = plain(made[index])
        else:
            return value
        return made

    return plain(value)


def read_object_array(content, path):
    """Return an array of plain objects, from the pickle in an ``.npy`` file at `path`."""
    array = plain_value(Unpickler(io.BytesIO(content), path).load())
    if not isinstance(array, np.ndarray):
        raise ValueError(f'a {type(array).__name__} is not an array of objects')
    return array
