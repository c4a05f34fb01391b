"""PyTorch's files of weights are read without torch and without running them."""

import collections
import io
import os
import pickle
import struct
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
from arrays import assert_equal, stored

from model_zoo.checkpoint import read_tensors
from model_zoo.errors import CheckpointError

MAGIC = 0x1950A86A20F9469CFC6C
FORMATS = ['zip', 'stream']


@pytest.fixture(autouse=True)
def no_torch(without):
    without('torch')


class Global(NamedTuple):
    """Pickles as a name."""

    name: str


class Call:
    """Pickles as a call of a name, and of what is set afterwards."""

    def __init__(self, name, *arguments, state=None):
        self.name, self.arguments, self.state = name, arguments, state


class Storage:
    """Pickles as a reference to something outside of the pickle."""

    def __init__(self, *identity):
        self.identity = identity


class Pickler(pickle._Pickler):  # the one in Python can write names that don't exist
    def persistent_id(self, value):
        return value.identity if isinstance(value, Storage) else None

    def save(self, value, **options):
        if isinstance(value, Call):
            self._name(value.name)
            self.save(value.arguments)
            self.write(pickle.REDUCE)
            if value.state is not None:
                self.save(value.state)
                self.write(pickle.BUILD)
        elif isinstance(value, Global):
            self._name(value.name)
        else:
            super().save(value, **options)

    def _name(self, name):
        module, _, name = name.rpartition('.')
        self.write(f'c{module}\n{name}\n'.encode())


def dumps(value):
    file = io.BytesIO()
    Pickler(file, 2).dump(value)
    return file.getvalue()


def storage(kind, key, count, *window):
    """What a pickle says of a storage."""
    return Storage('storage', Global(f'torch.{kind}'), key, 'cpu', count, *window)


def stream(value, is_little=True, **storages):
    """A file as torch wrote it until 2020."""
    machine = {'protocol_version': 1001, 'little_endian': is_little, 'type_sizes': {}}
    parts = [dumps(each) for each in (MAGIC, 1001, machine, value, list(storages))]
    for data, count in storages.values():
        parts += [struct.pack('<q', count), data]
    return b''.join(parts)


def archive(value, is_little=True, **storages):
    """A file as torch writes it now."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w') as target:
        target.writestr('model/data.pkl', value if isinstance(value, bytes) else dumps(value))
        target.writestr('model/byteorder', 'little' if is_little else 'big')
        for key, (data, _) in storages.items():
            target.writestr(f'model/data/{key}', data)
    return file.getvalue()


def tensor(kind, count, offset, size, stride, *window, version=2):
    place = storage(kind, 'a', count, *window), offset, size, stride
    rest = (False, collections.OrderedDict())
    return Call(f'torch._utils._rebuild_tensor_v{version}', *place, *rest)


@pytest.fixture
def read(tmp_path):
    def read(data):
        path = tmp_path / 'pytorch_model.bin'
        path.write_bytes(data)
        return read_tensors(path)[0]

    return read


TWO = tensor('FloatStorage', 6, 0, (2,), (1,))
SIX = (np.arange(6, dtype='<f4').tobytes(), 6)


@pytest.mark.parametrize('name', FORMATS)
def test_as_torch_reads_it(fixtures, name):
    tensors, metadata = read_tensors(fixtures / 'torch_files' / f'{name}.pt')
    assert_equal(tensors, stored(fixtures / 'torch_files' / 'expected.npz'))
    assert metadata == {}
    assert np.shares_memory(tensors['whole'], tensors['tied'])
    assert not tensors['whole'].flags.writeable


@pytest.mark.parametrize('write', [stream, archive])
def test_what_2019_wrote(read, write):
    """The first function for tensors, parts of storages, and dicts with attributes."""
    part = storage('FloatStorage', 'a', 6, None)
    first = Call('torch._utils._rebuild_tensor', part, 1, (2, 2), (2, 1))
    state = {'_metadata': {'version': 1}}
    value = Call('collections.OrderedDict', [['first', first]], state=state)
    tensors = read(write(value, a=SIX))
    assert tensors['first'].tolist() == [[1, 2], [3, 4]]


OUTSIDE = [
    (6, 3, (2, 2), (2, 1)),
    (6, -1, (2,), (1,)),
    (6, 0, (2,), (-1,)),
    (6, 0, (2.0,), (1,)),
    (6, 0, (2, 3), (1,)),
    (6, 0, [2], [1]),  # which a pickle could still change
    (6, 0, (1,) * 70, (1,) * 70),
    (6, 0, (0, 10**30), (1, 1)),
    (6, 0, (2,), (2**62,)),
    (6, 0, (2,), (1,), ('b', 2, 4)),
]


@pytest.mark.parametrize('write', [stream, archive])
@pytest.mark.parametrize('arguments', OUTSIDE)
def test_tensors_outside_of_their_storage(read, write, arguments):
    with pytest.raises(CheckpointError):
        read(write({'w': tensor('FloatStorage', *arguments)}, a=SIX))


FORBIDDEN = [
    Call('os.system', 'touch hacked'),
    {'w': Global('builtins.eval')},
    {'w': Call('torch._utils._rebuild_qtensor')},
    {'w': Storage('module', Global('torch.FloatStorage'), 'a', 'cpu', 6)},
    {'w': Storage('storage', 'os', 'a', 'cpu', 6)},
    {'w': Call('torch._utils._rebuild_tensor_v2')},
    {3: TWO},
    # a pickle can set attributes of what it gets, if that lets it
    {'w': Call('torch.Size', (), state=(None, {'x': 1}))},
    {'w': Call('torch._utils._rebuild_parameter', TWO, state={'size': (9,)})},
]


@pytest.mark.parametrize('value', FORBIDDEN)
@pytest.mark.parametrize('write', [stream, archive])
def test_what_it_must_not_do(read, write, here, tmp_path, value):
    with pytest.raises(CheckpointError):
        read(write(value, a=SIX))
    assert os.listdir(tmp_path) == ['pytorch_model.bin']


@pytest.mark.parametrize('write', [stream, archive])
def test_machines_of_another_byte_order(read, write):
    with pytest.raises(CheckpointError):
        read(write({'w': TWO}, is_little=False, a=SIX))
