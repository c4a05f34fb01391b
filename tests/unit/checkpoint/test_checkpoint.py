"""Reading and writing weights; see test_damaged_files.py, too."""

import json
import struct

import mxnet as mx
import numpy as np
import pytest
import safetensors.numpy
from arrays import assert_equal

from model_zoo.checkpoint import read_tensors
from model_zoo.checkpoint.tensor_files import METADATA, write_params, write_safetensors
from model_zoo.errors import CheckpointError

TENSORS = {
    'weight': np.arange(6, dtype='float32').reshape(2, 3) / 7,
    'number': np.array([5], dtype='int32'),
    'bytes': np.arange(5, dtype='uint8'),
    'wide': np.array([[1.5]], dtype='float64'),
    'long': np.array([2**40], dtype='int64'),
    'half': np.array([0.5, -2], dtype='float16'),
    'name with ünïcode': np.array([1.0], dtype='float32'),
}


# -- formats ------------------------------------------------------------------------------------


@pytest.mark.parametrize('metadata', [{'format': 'native', 'class': 'Test'}, None])
def test_round_trip(metadata, tmp_path):
    """MXNet reads ours, too."""
    path = tmp_path / 'ours.params'
    write_params(str(path), TENSORS, metadata)
    tensors, found = read_tensors(path)
    assert_equal(tensors, TENSORS)
    assert found == ({**metadata, 'version': 1} if metadata else {})
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
    for content in ({'a': mx.nd.ones((2, 2)).tostype('row_sparse')}, [mx.nd.ones((2,))]):
        mx.nd.save(path, content)
        with pytest.raises(CheckpointError):
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
    pickles = b'\x80\x02}q\x01 a pickle', b'\x80\x02].', b'\x80'
    jsons = b'[[2, 3], "x"]', b'{"weights": 1}', b'[[2, 3]', b'[' * 100000 + b']' * 100000
    for content in (b'', b'\0' * 50, b'PK\3\4 a zip archive', b'<html>no</html>', *pickles, *jsons):
        path.write_bytes(content)
        with pytest.raises(CheckpointError) as caught:
            read_tensors(path)
        assert str(path) in str(caught.value)


def test_an_index_names_files_of_weights_in_its_folder(tmp_path):
    (tmp_path / 'outside').write_bytes(b'')
    folder = tmp_path / 'model'
    folder.mkdir()
    names = {'a.bin': 'a.bin', 'b.bin': 'c.bin', 'c.bin': 'b.bin', 'd.json': '../outside'}
    names.update({'e.json': str(tmp_path / 'outside'), 'f.json': 'a\0b', 'g.json': '\ud800'})
    for name, other in names.items():
        (folder / name).write_text(json.dumps({'weight_map': {'a': other}}))
    for path in folder.iterdir():
        with pytest.raises(CheckpointError):
            read_tensors(path)


def test_shards_in_a_subfolder_and_types_that_numpy_lacks(tmp_path):
    (tmp_path / 'parts').mkdir()
    write_safetensors(str(tmp_path / 'parts' / 'one.safetensors'), {'a': np.ones(3, 'f4')})
    index = tmp_path / 'model.safetensors.index.json'
    index.write_text(json.dumps({'weight_map': {'a': 'parts/one.safetensors'}}))
    np.testing.assert_array_equal(read_tensors(index)[0]['a'], np.ones(3))
    header = json.dumps({'a': {'dtype': 'F8_E4M3', 'shape': [4], 'data_offsets': [0, 4]}}).encode()
    path = tmp_path / 'model.safetensors'
    path.write_bytes(struct.pack('<Q', len(header)) + header + bytes(4))
    with pytest.raises(CheckpointError, match='F8_E4M3'):
        read_tensors(path)


def test_files_that_cannot_be_opened(tmp_path):
    for path in (tmp_path / 'none', tmp_path):
        with pytest.raises(CheckpointError):
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


def test_old_format_of_mxnet(tmp_path):
    path = tmp_path / 'old.params'
    write_params(str(path), TENSORS)
    new, old = (struct.pack('<I', 0xF993FAC0 + version) for version in (9, 8))
    path.write_bytes(path.read_bytes().replace(new, old, 1))
    with pytest.raises(CheckpointError):
        read_tensors(path)
