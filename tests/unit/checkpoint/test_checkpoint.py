"""Reading and writing weights: damaged, truncated and foreign files give one clear error."""

import json
import os
import struct

import mxnet as mx
import numpy as np
import pytest
import safetensors.numpy
import tiny

import bert
from model_zoo.checkpoint import read_tensors, tensor_files
from model_zoo.checkpoint.tensor_files import METADATA, read_params, write_params, write_safetensors
from model_zoo.errors import CheckpointError, InputError, ZooError

TENSORS = {
    'weight': np.arange(6, dtype='float32').reshape(2, 3) / 7,
    'number': np.array([5], dtype='int32'),
    'bytes': np.arange(5, dtype='uint8'),
    'wide': np.array([[1.5]], dtype='float64'),
    'long': np.array([2**40], dtype='int64'),
    'half': np.array([0.5, -2], dtype='float16'),
    'name with ünïcode': np.array([1.0], dtype='float32'),
}


def assert_equal(one, two):
    assert sorted(one) == sorted(two)
    for name, value in one.items():
        assert value.dtype == two[name].dtype and value.shape == two[name].shape
        np.testing.assert_array_equal(value, two[name])


@pytest.fixture
def native(tmp_path):
    path = tmp_path / 'native.params'
    write_params(str(path), TENSORS, {'format': 'native', 'class': 'Test'})
    return path


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / 'plain.params'
    write_params(str(path), TENSORS)
    return path


# -- formats ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'name, metadata',
    [('native', {'format': 'native', 'class': 'Test', 'version': 1}), ('plain', {})],
)
def test_round_trip(name, metadata, request):
    """MXNet reads ours, too."""
    path = request.getfixturevalue(name)
    tensors, found = read_tensors(path)
    assert_equal(tensors, TENSORS)
    assert found == metadata
    loaded = {name: array.asnumpy() for name, array in mx.nd.load(str(path)).items()}
    loaded.pop(METADATA, None)
    assert_equal(loaded, TENSORS)


def test_we_read_mxnets(tmp_path):
    path = str(tmp_path / 'theirs.params')
    mx.nd.save(path, {name: mx.nd.array(v, dtype=v.dtype) for name, v in TENSORS.items()})
    assert_equal(read_tensors(path)[0], TENSORS)
    with mx.util.np_shape(True):  # scalars and empty arrays
        mx.nd.save(path, {'scalar': mx.nd.ones(()), 'empty': mx.nd.ones((0, 3))})
    tensors, _ = read_tensors(path)
    assert tensors['scalar'].shape == () and tensors['empty'].shape == (0, 3)


def test_sparse_and_nameless_arrays(tmp_path):
    path = str(tmp_path / 'theirs.params')
    mx.nd.save(path, {'a': mx.nd.ones((2, 2)).tostype('row_sparse')})
    with pytest.raises(CheckpointError, match='holds a sparse array'):
        read_tensors(path)
    mx.nd.save(path, [mx.nd.ones((2,))])
    with pytest.raises(CheckpointError, match='holds arrays without names'):
        read_tensors(path)


def test_safetensors(tmp_path):
    path = str(tmp_path / 'theirs.bin')  # known by its content, whatever it is called
    safetensors.numpy.save_file(TENSORS, path, {'origin': 'test'})
    tensors, metadata = read_tensors(path)
    assert metadata == {'origin': 'test'}
    expected = {**TENSORS, 'half': TENSORS['half'].astype('float32')}
    assert_equal(tensors, expected)


def test_no_known_format(tmp_path):
    path = tmp_path / 'file'
    cases = {
        b'': 'is empty',
        b'\0' * 50: 'is empty',
        b'PK\3\4 a zip archive': 'is damaged .*not a zip file',
        b'\x80\x02}q\x01 a pickle': 'is refused: it is a pickle',
        b'<html>404 not found</html>': 'is none of the files of weights',
        b'[[2, 3], "x"]': 'is neither an index',
        b'{"weights": 1}': 'is neither an index',
        b'[[2, 3]': 'is not JSON',
    }
    for content, message in cases.items():
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=message) as caught:
            read_tensors(path)
        assert str(path) in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(CheckpointError, match='No such file'):
        read_tensors(tmp_path / 'none')
    with pytest.raises(CheckpointError, match='directory'):
        read_tensors(tmp_path)


# -- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['native', 'plain'])
def test_truncated_anywhere(name, request):
    path = request.getfixturevalue(name)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            read_tensors(path)


def damages(content):
    """A bit flipped in any byte; a hole, as a disk that lost a sector leaves it; other parts."""
    for place, byte in enumerate(content):
        yield content[:place] + bytes([byte ^ 1 << place % 8]) + content[place + 1 :]
    for start in range(0, len(content) - 8, 8):
        yield content[:start] + bytes(8) + content[start + 8 :]
    yield from (content + b'\0', content + content, content[:100] + content[101:])


def test_damages_of_native(native):
    content = native.read_bytes()
    for damaged in damages(content):
        if damaged != content:
            native.write_bytes(damaged)
            with pytest.raises(CheckpointError):
                read_tensors(native)


def test_plain_with_a_bit_flipped_in_any_byte_never_crashes(plain):
    """Values can't be checked, but no number that the file gives of itself is trusted."""
    content = bytearray(plain.read_bytes())
    detected = 0
    for position in range(len(content)):
        for bit in (0, 7 - position % 7):
            content[position] ^= 1 << bit
            plain.write_bytes(content)
            try:
                tensors, _ = read_tensors(plain)
            except CheckpointError:
                detected += 1
            else:
                assert sum(value.nbytes for value in tensors.values()) <= len(content)
            content[position] ^= 1 << bit
    assert detected > 200


@pytest.mark.parametrize('form', ['native', 'gluonnlp', 'huggingface'])
def test_damaged_file_of_a_model(tmp_path, form):
    """Random damage of a whole model's file: load_parameters raises nothing but CheckpointError."""
    path = tmp_path / 'model.params'
    model = tiny.make(
        bert.BertModel, 5, 1, hidden_size=2, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=2, max_position_embeddings=2,
    )  # fmt: skip
    model.save_parameters(str(path), format=form)
    content = path.read_bytes()
    random = np.random.RandomState(1)
    for trial in range(300):
        damaged = bytearray(content)
        if trial % 3 == 0:
            damaged = damaged[: random.randint(len(content))]
        for _ in range(trial % 3):
            damaged[random.randint(len(content))] ^= 1 << random.randint(8)
        path.write_bytes(damaged)
        before = model.pooler.weight.data().asnumpy()
        try:
            model.load_parameters(str(path), ignore_extra=True, allow_missing=True, cast_dtype=True)
        except CheckpointError:
            np.testing.assert_array_equal(model.pooler.weight.data().asnumpy(), before)
        else:
            assert form != 'native' and len(damaged) == len(content)


def test_damaged_safetensors(tmp_path):
    path = tmp_path / 'model.safetensors'
    tensors = {name: value for name, value in TENSORS.items() if name.isascii()}
    safetensors.numpy.save_file(tensors, str(path))
    content = path.read_bytes()
    header = 8 + struct.unpack('<Q', content[:8])[0]
    for length in range(0, len(content), 3):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            read_tensors(path)
    for position in range(header):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            loaded, _ = read_tensors(path)
        except CheckpointError:
            continue
        assert len(loaded) == len(tensors)  # a letter of a name, or another dtype
    path.write_bytes(struct.pack('<Q', 2**62) + content[8:])
    with pytest.raises(CheckpointError, match='damaged'):
        read_tensors(path)


def test_bfloat16_safetensors(tmp_path):
    """NumPy has no such type: the values are float32."""
    path = tmp_path / 'model.safetensors'
    header = {
        'a': {'dtype': 'BF16', 'shape': [2, 1], 'data_offsets': [0, 4]},
        'b': {'dtype': 'F32', 'shape': [1], 'data_offsets': [4, 8]},
        '__metadata__': {'format': 'pt'},
    }
    header = json.dumps(header).encode()
    data = b'\x80\x3f\x00\xc0' + struct.pack('<f', 0.1)
    path.write_bytes(struct.pack('<Q', len(header)) + header + data)
    tensors, metadata = read_tensors(path)
    assert metadata == {'format': 'pt'}
    expected = {'a': np.array([[1], [-2]], 'float32'), 'b': np.array([0.1], 'float32')}
    assert_equal(tensors, expected)


def test_huge_numbers_are_not_believed(plain):
    """A damaged length makes mx.nd.load allocate terabytes."""
    content = plain.read_bytes()
    wanted = struct.pack('<q', 3)  # the columns of 'weight'
    at = content.index(wanted, 24)
    for size in (2**62, 2**31, -1, -(2**62)):
        plain.write_bytes(content[:at] + struct.pack('<q', size) + content[at + 8 :])
        with pytest.raises(CheckpointError, match='damaged'):
            read_tensors(plain)
    for at in (16, 24 + 8):  # number of arrays; dimensions of the first
        plain.write_bytes(content[:at] + b'\xff' * 4 + content[at + 4 :])
        with pytest.raises(CheckpointError):
            read_tensors(plain)


def test_old_format_of_mxnet(plain):
    content = plain.read_bytes()
    old = content.replace(struct.pack('<I', 0xF993FAC9), struct.pack('<I', 0xF993FAC8), 1)
    plain.write_bytes(old)
    with pytest.raises(CheckpointError, match='0xf993fac8.*load and save it once with MXNet'):
        read_tensors(plain)


def test_later_version_of_ours(native, monkeypatch):
    monkeypatch.setattr(tensor_files, 'VERSION', 2)
    write_params(str(native), TENSORS, {'format': 'native'})
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match='version 2 of this format.*upgrade gluon-tr'):
        read_tensors(native)


def test_errors_say_what_to_do(native):
    native.write_bytes(native.read_bytes()[:200])
    with pytest.raises(ZooError, match='is damaged: .*copy or download the file again') as caught:
        read_params(str(native))
    assert str(native) in str(caught.value) and isinstance(caught.value, ValueError)


# -- writing ------------------------------------------------------------------------------------


def test_a_write_that_fails_leaves_the_old_file(native, monkeypatch):
    before = native.read_bytes()

    def full_disk(path, arrays):
        with open(path, 'wb') as file:
            file.write(b'half')
        raise mx.MXNetError('No space left on device')

    monkeypatch.setattr(mx.nd, 'save', full_disk)
    with pytest.raises(InputError, match=r'cannot write .*No space left'):
        write_params(str(native), TENSORS, {})
    assert native.read_bytes() == before
    assert os.listdir(native.parent) == [native.name]


def test_tensors_that_safetensors_cannot_hold(tmp_path):
    path = tmp_path / 'model.safetensors'
    with pytest.raises(InputError, match="model.safetensors' cannot hold these.*object"):
        write_safetensors(str(path), {'weight': np.array([None])})
    assert not path.exists()
