"""PyTorch's files of weights are read without torch, without running them, and within bounds."""

import collections
import io
import os
import pickle
import struct
import sys
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
from spoiled import damaged, peak_of

from model_zoo.checkpoint import read_tensors
from model_zoo.errors import CheckpointError

MAGIC = 0x1950A86A20F9469CFC6C
FORMATS = ['zip', 'stream']


@pytest.fixture(autouse=True)
def no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, 'torch', None)


@pytest.fixture
def content(fixtures):
    return lambda name: (fixtures / 'torch_files' / f'{name}.pt').read_bytes()


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
    rest = (False, collections.OrderedDict())
    return Call(
        f'torch._utils._rebuild_tensor_v{version}',
        storage(kind, 'a', count, *window), offset, size, stride, *rest,
    )  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def read(data):
        path = tmp_path / 'pytorch_model.bin'
        path.write_bytes(data)
        return read_tensors(path)[0]

    return read


SIX = (np.arange(6, dtype='<f4').tobytes(), 6)


@pytest.mark.parametrize('name', FORMATS)
def test_as_torch_reads_it(fixtures, name):
    tensors, metadata = read_tensors(fixtures / 'torch_files' / f'{name}.pt')
    with np.load(fixtures / 'torch_files' / 'expected.npz') as expected:
        assert sorted(tensors) == sorted(expected) and metadata == {}
        for key, array in tensors.items():
            assert array.dtype == expected[key].dtype
            np.testing.assert_array_equal(array, expected[key])
    assert np.shares_memory(tensors['whole'], tensors['tied'])
    assert not tensors['whole'].flags.writeable


@pytest.mark.parametrize('write', [stream, archive])
def test_what_2019_wrote(read, write):
    """The first function for tensors, parts of storages, and dicts with attributes."""
    first = Call(
        'torch._utils._rebuild_tensor', storage('FloatStorage', 'a', 6, None), 1, (2, 2), (2, 1)
    )
    window = tensor('FloatStorage', 6, 1, (2,), (1,), ('b', 2, 4))
    value = Call(
        'collections.OrderedDict', [['first', first], ['window', window]],
        state={'_metadata': {'version': 1}},
    )  # fmt: skip
    tensors = read(write(value, a=SIX))
    assert tensors['first'].tolist() == [[1, 2], [3, 4]] and tensors['window'].tolist() == [3, 4]


@pytest.mark.parametrize('write', [stream, archive])
@pytest.mark.parametrize(
    'arguments, message',
    [
        ((6, 3, (2, 2), (2, 1)), r'shape \(2, 2\) begins at 3 in a storage of 6'),
        ((6, -1, (2,), (1,)), 'a tensor of shape'),
        ((6, 0, (2,), (-1,)), 'a tensor of shape'),
        ((6, 0, (-2,), (1,)), 'a tensor of shape'),
        ((6, 0, (2.0,), (1,)), 'a tensor of shape'),
        ((6, 0, (2, 3), (1,)), 'a tensor of shape'),
        ((6, 0, (True,), (1,)), 'a tensor of shape'),
        ((6, 0, (1,) * 40, (1,) * 40), 'of 40 dimensions'),
        ((6, 0, (10**6, 10**6), (0, 0)), 'repeats 1 numbers'),
        ((6, 0, (2, 10**6), (1, 0)), 'repeats 2 numbers'),
        ((6, 0, (0, 10**30), (1, 1)), 'is damaged'),
        ((6, 0, (1,), (2**62,)), 'is damaged'),
        ((6, 2, (2,), (1,), ('b', 3, 4)), 'a tensor of shape'),
        ((6, 0, (2,), (1,), ('b', -3, 2)), 'a tensor of shape'),
        ((6, 0, (2,), (1,), ('b', 'x', 2)), 'a tensor of shape'),
    ],
)
def test_tensors_that_cannot_be(read, write, arguments, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        read(write({'w': tensor('FloatStorage', *arguments)}, a=SIX))
    assert 'pytorch_model.bin' in str(caught.value)


@pytest.mark.parametrize(
    'value, message',
    [
        (Call('os.system', 'touch hacked'), r'other things than tensors \(os.system\)'),
        ({'w': Global('builtins.eval')}, r'other things than tensors \(builtins.eval\)'),
        ({'w': Call('torch._utils._rebuild_qtensor')}, 'tensors that NumPy has not: torch'),
        ({'w': Storage('module', Global('torch.FloatStorage'), 'a', 'cpu', 6)}, 'it refers to'),
        ({'w': Storage('storage', 'os', 'a', 'cpu', 6)}, 'it refers to'),
        ({'w': Call('torch._utils._rebuild_tensor_v2', [1], 0, (1,), (1,))}, 'is damaged'),
        ({'w': Call('torch._utils._rebuild_tensor_v2')}, 'is damaged'),
        ({3: tensor('FloatStorage', 6, 0, (2,), (1,))}, '3 is a Tensor'),
        # a pickle can set attributes of what it gets, if that lets it
        ({'w': Call('torch.Size', (), state=(None, {'x': 1}))}, 'is damaged'),
        (
            {'w': Call('torch._utils._rebuild_parameter',
                       tensor('FloatStorage', 6, 0, (2,), (1,)), state={'size': (9,)})},
            'is damaged',
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize('write', [stream, archive])
def test_what_it_must_not_do(read, write, monkeypatch, tmp_path, value, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=message):
        read(write(value, a=SIX))
    assert os.listdir(tmp_path) == ['pytorch_model.bin']


def test_no_more_memory_than_the_file_has(read):
    table = b'\x80\x02}r' + struct.pack('<I', 2**31) + b'.'  # place 2**31 of a table
    data = np.zeros(10**6, 'u1').tobytes()
    several = io.BytesIO()
    with zipfile.ZipFile(several, 'w') as target:  # a hundred parts that lie in one place
        target.writestr('model/data.pkl', dumps({}))
        target.writestr('model/data/0', data)
        info = target.getinfo('model/data/0')
        for key in range(1, 100):
            again = zipfile.ZipInfo(f'model/data/{key}')
            for field in ('CRC', 'compress_size', 'file_size', 'header_offset'):
                setattr(again, field, getattr(info, field))
            target.filelist.append(again)
    compressed = io.BytesIO()
    with zipfile.ZipFile(compressed, 'w', zipfile.ZIP_DEFLATED) as target:
        target.writestr('model/data.pkl', dumps({}))
        target.writestr('model/data/0', data * 50)
    items = [['a', 1]] * 1000
    dicts = [Call('collections.OrderedDict', items) for _ in range(1000)]
    huge = {'w': tensor('FloatStorage', 2**50, 0, (2**50,), (1,))}
    assert peak_of(read, archive(table)) < 2**20
    for bomb in (
        archive(b'\x80\x04\x8e' + struct.pack('<Q', 2**34) + b'x.'),  # as many bytes
        archive(b'\x80\x05\x96' + struct.pack('<Q', 2**34) + b'x.'),
        several.getvalue(),
        compressed.getvalue(),
        archive(dumps(dicts)),
        stream(huge, a=(b'', 2**50)),
        stream(huge, a=(b'', -1)),
        archive(huge, a=(b'', 2**50)),
    ):
        with pytest.raises(CheckpointError, match='is damaged'):
            read(bomb)
        assert peak_of(read, bomb) < 5 * len(bomb) + 2**20
    with pytest.raises(CheckpointError, match='data.pkl is compressed'):
        read(compressed.getvalue())


@pytest.mark.parametrize('name', FORMATS)
@pytest.mark.parametrize('cut', [True, False])
def test_truncated_and_spoiled_files(read, content, name, cut):
    """One clear error, or numbers; in little memory."""
    sound = content(name)
    for spoiled in damaged(sound, 150, cut):
        try:
            read(spoiled)
        except CheckpointError:
            continue
        assert not cut
    assert peak_of(read, spoiled) < 20 * len(sound) + 2**20


@pytest.mark.parametrize('write', [stream, archive])
def test_machines_of_another_byte_order(read, write):
    value = {'w': tensor('FloatStorage', 6, 0, (2,), (1,))}
    with pytest.raises(CheckpointError, match='big-endian'):
        read(write(value, is_little=False, a=SIX))
