"""Pickles of plain data, read without executing them.

Only dicts, lists, strings, numbers, NumPy arrays and torch's tensors are created, and instances of
classes that the caller lists become namespaces. Any other name is refused. The functions that a
pickle may call are created for each file, so it can't leave anything behind in them.
"""

import collections
import io
import os
import types

import numpy as np

from ..errors import CheckpointError
from .tensor_files import reading
from .torch_file import MAX_DIMENSIONS, Tensor, TorchFile, check_keys

__all__ = ['read_object_array', 'read_pickle']


def read_pickle(path, classes=()):
    """Read a file of ``pickle.dump`` or ``torch.save`` that holds plain data and arrays.

    `classes` are ``'module.name'`` of what may be named; their instances are read as
    ``types.SimpleNamespace`` of their attributes. CheckpointError if it names anything else.
    """
    path = os.fspath(path)
    with reading(path):
        with open(path, 'rb') as file:
            content = file.read()
        return _Reader(path, content, classes).read()


def read_object_array(content, path):
    """An array of plain objects, from the pickle behind the header of an ``.npy`` file at `path`.

    A damaged one can raise anything.
    """
    array = _Reader(path, content, object_arrays=True).read()
    if not isinstance(array, np.ndarray):
        raise ValueError(f'a {type(array).__name__} is not an array of objects')
    return array


class _Reader(TorchFile):
    """What the pickles of one file may call."""

    def __init__(self, path, content, classes=(), object_arrays=False):
        super().__init__(len(content))
        self.path, self.content = path, content
        # classes of this file only: a pickle can set attributes of classes
        record = type('Record', (_Record,), {'limits': self.limits})
        array = type('Array', (_Array,), {'limits': self.limits})
        dtype = type('DType', (_DType,), {'kinds': 'biufO' if object_arrays else 'biuf'})
        self.names = dict.fromkeys(classes, record)
        self.record, self.array = record, array
        for module in ('builtins', '__builtin__'):
            self.names[f'{module}.object'] = object
            self.names[f'{module}.set'] = self.make_set
            self.names[f'{module}.frozenset'] = self.make_frozenset
            self.names[f'{module}.list'] = self.make_list
            self.names[f'{module}.dict'] = self.make_dict
            self.names[f'{module}.tuple'] = self.make_tuple
            self.names[f'{module}.bytes'] = self.make_bytes  # empty ones, in old protocols
            self.names[f'{module}.bytearray'] = self.make_bytearray
        self.names.update(
            {
                'collections.OrderedDict': self.make_ordered,
                'collections.Counter': self.make_counter,
                'copyreg._reconstructor': self.make_record,
                'copy_reg._reconstructor': self.make_record,
                '_codecs.encode': self.encode_latin1,  # how Python 2's protocols hold bytes
                'numpy.dtype': dtype,
                'numpy.ndarray': array,
                **self.torch_names,
            }
        )
        for module in ('numpy.core', 'numpy._core'):
            self.names[f'{module}.multiarray._reconstruct'] = self.make_array
            self.names[f'{module}.multiarray.scalar'] = self.make_scalar
            self.names[f'{module}.numeric._frombuffer'] = self.make_array_from_buffer

    def read(self):
        """A pickle, or what torch.save writes."""
        file = io.BytesIO(self.content)
        if self.content[:4] == b'PK\3\4':
            return self.settle(self.read_zip(file))
        value = self.load(file)
        return self.settle(self.read_stream(file) if self.begins_stream(value) else value)

    def find(self, name):
        if name in self.names:
            return self.names[name]
        raise CheckpointError(
            f'{self.path!r} is refused: it asks for {name}, which is not plain data; '
            'do not load it by other means unless you trust its author'
        )

    def build(self, instance, state):
        if isinstance(instance, (_Record, _DType, _Array)):
            instance.__setstate__(state)
        else:
            super().build(instance, state)

    # What pickles call.

    def make_set(self, items=()):
        return self._made(set, check_keys(items))

    def make_frozenset(self, items=()):
        return self._made(frozenset, check_keys(items))

    def make_counter(self, counts=()):
        return self._made(collections.Counter, check_keys(counts))

    def make_dict(self, items=()):
        return dict(self.make_ordered(items))

    def make_list(self, items=()):
        return self._made(list, items)

    def make_tuple(self, items=()):
        return self.limits.check_tuple(self._made(tuple, items))

    def _made(self, make, items):
        self.limits.spend_items(len(items))
        return make(items)

    def make_bytes(self):
        return b''

    def make_bytearray(self, data=b'', encoding='latin1'):
        self.limits.spend(len(data))
        return bytearray(_to_bytes(data))

    def make_record(self, record_class, base=object, state=None):
        if record_class is not self.record:
            raise TypeError(f'no instance of {record_class!r}')
        return record_class()

    def encode_latin1(self, text, encoding='latin1'):
        if encoding not in ('latin1', 'latin-1'):
            raise ValueError(f'encoding {encoding!r:.80}')
        self.limits.spend(len(text))
        return text.encode('latin1')

    def make_array(self, array_class=None, shape=(), code=b''):
        return self.array()

    def make_array_from_buffer(self, buffer, dtype, shape, order):
        array = self.array()
        array.__setstate__((1, shape, dtype, order == 'F', buffer))
        return array

    def make_scalar(self, dtype, data):
        array = self.make_array_from_buffer(_to_bytes(data), dtype, (), 'C')
        return array.value.item()

    def settle(self, value, seen=None):
        """`value`, with placeholders replaced by arrays and namespaces."""
        seen = {} if seen is None else seen
        if id(value) in seen:
            return seen[id(value)]
        if isinstance(value, Tensor):
            return self.array_of(value)
        if isinstance(value, _Array):
            self.limits.spend(value.value.nbytes)
            settled = value.settled()
            if settled.dtype != object:
                return settled
            items = np.empty(settled.size, object)
            for index, item in enumerate(settled.flat):
                items[index] = self.settle(item, seen)
            return items.reshape(settled.shape)
        if isinstance(value, _Record):
            result = seen[id(value)] = types.SimpleNamespace()
            fields = {key: item for key, item in vars(value).items() if isinstance(key, str)}
            vars(result).update(self.settle(fields, seen))
            return result
        if isinstance(value, dict):
            seen[id(value)] = value
            for key in value:
                if isinstance(value[key], (_Array, Tensor, _Record, dict, list, tuple)):
                    value[key] = self.settle(value[key], seen)
        elif isinstance(value, list):
            seen[id(value)] = value
            for index, item in enumerate(value):
                if isinstance(item, (_Array, Tensor, _Record, dict, list, tuple)):
                    value[index] = self.settle(item, seen)
        elif type(value) is tuple:
            seen[id(value)] = settled = tuple(self.settle(item, seen) for item in value)
            return settled
        return value


class _Record:
    """Stands for an instance of a listed class, or for what a listed function returned."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __setstate__(self, state):
        if isinstance(state, dict):
            type(self).limits.spend_items(len(state))
            vars(self).update(state)


class _DType:
    """Stands for a numpy.dtype of numbers or booleans, and of objects where these are wanted."""

    kinds = 'biuf'

    def __init__(self, code, *rest):
        known = isinstance(code, str) and len(code) < 8
        self.dtype = np.dtype(code if known else 'V')
        if self.dtype.kind not in self.kinds:
            raise ValueError(f'an array of {code!r:.80}')

    def __setstate__(self, state):
        if state[1] in ('<', '>'):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """Stands for a numpy.ndarray."""

    def __setstate__(self, state):
        _, shape, dtype, fortran, data = state
        if len(shape) > MAX_DIMENSIONS:
            raise ValueError(f'an array of {len(shape)} dimensions')
        self.limits.spend(8 * len(data))
        if dtype.dtype == object:
            flat = np.empty(len(data), object)
            for index, item in enumerate(data):
                flat[index] = item
        else:
            flat = np.frombuffer(_to_bytes(data), dtype.dtype)
        self.value = flat.reshape(shape, order='F' if fortran else 'C')

    def settled(self):
        return self.value.astype(self.value.dtype.newbyteorder('='))


def _to_bytes(data):
    if isinstance(data, str):
        return data.encode('latin1')
    return bytes(memoryview(data))  # of a number, bytes() would make as many zeros
