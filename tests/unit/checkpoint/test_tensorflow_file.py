"""TensorFlow's checkpoints are read without TensorFlow, and verified."""

import os
import shutil
import struct

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_equal, stored

from bert import BertForPreTraining
from gpt2 import GPT2LMHeadModel
from model_zoo.checkpoint import read_tensors
from model_zoo.checkpoint.tensorflow_file import masked_crc32c, read_table
from model_zoo.errors import CheckpointError


@pytest.fixture(autouse=True)
def no_tensorflow(without):
    without('tensorflow')


@pytest.fixture
def copy(fixtures, tmp_path):
    """A copy of the checkpoint in two files of data; its common name."""
    shutil.copytree(str(fixtures / 'tensorflow_files'), str(tmp_path / 'copy'))
    return str(tmp_path / 'copy' / 'model.ckpt')


def test_as_tensorflow_reads_it(copy):
    """All types, two files of data, a variable in parts; strings are left out."""
    tensors, metadata = read_tensors(copy)
    assert_equal(tensors, stored(os.path.join(os.path.dirname(copy), 'expected.npz')))
    assert len(tensors) > 60 and metadata == {}
    assert {type(each) for each in tensors.values()} == {np.ndarray}


OUTPUTS = [
    ('bert_tensorflow', BertForPreTraining, ('masked_lm', 'next_sentence')),
    ('gpt2_tensorflow', GPT2LMHeadModel, ('scores',)),
]


@pytest.mark.parametrize('name, block_class, outputs', OUTPUTS)
def test_predictions_of_the_originals(fixtures, name, block_class, outputs):
    folder = fixtures / 'checkpoints' / name
    block = block_class.from_pretrained(str(folder), from_tf=True)
    expected = stored(folder / 'outputs.npz')
    names = [each for each in ('words', 'types', 'valid') if each in expected]
    found = block(*(mx.nd.array(expected[each], dtype='int32') for each in names))
    for ours, key in zip(found, outputs):
        theirs, ours = expected[key], ours.log_softmax() if name.startswith('bert') else ours
        kept = ...
        if key == 'masked_lm':
            kept = np.arange(theirs.shape[1]) < expected['valid'][:, None]
        np.testing.assert_allclose(ours.asnumpy()[kept], theirs[kept], rtol=0, atol=1e-5)


def test_missing_data(copy):
    os.remove(f'{copy}.data-00001-of-00002')
    with pytest.raises(CheckpointError):
        read_tensors(copy)


def block_of(*entries):
    """A block of a table: entries of (shared, key, value)."""
    parts = []
    for shared, key, value in entries:
        parts += [varint(shared), varint(len(key)), varint(len(value)), key, value]
    content = b''.join([*parts, struct.pack('<II', 0, 1)])
    return content + b'\0' + struct.pack('<I', masked_crc32c(content + b'\0')), len(content)


def varint(number):
    result = b''
    while number > 127:
        result += bytes([number & 127 | 128])
        number >>= 7
    return result + bytes([number])


def table(entries):
    """A table with one block of entries."""
    block, size = block_of(*entries)
    index, index_size = block_of((0, b'', varint(0) + varint(size)))
    footer = varint(0) + varint(0) + varint(len(block)) + varint(index_size)
    return block + index + footer.ljust(40, b'\0') + b'\x57\xfb\x80\x8b\x24\x75\x47\xdb'


HEADER = (0, b'', b'\x08\x01')  # one file of data


def test_a_table(tmp_path):
    path = tmp_path / 'model.ckpt.index'
    path.write_bytes(table([HEADER, (0, b'name', b'x'), (3, b'es', b'y')]))
    assert read_table(str(path)) == {b'': b'\x08\x01', b'name': b'x', b'names': b'y'}


def variable(shape, size, kind=1):
    """What an index says of a variable whose data begins at 0."""
    dims = b''.join(b'\x12' + varint(1 + len(varint(n))) + b'\x08' + varint(n) for n in shape)
    return b'\x08' + varint(kind) + b'\x12' + varint(len(dims)) + dims + b'\x28' + varint(size)


DAMAGED = [
    table([HEADER, (0, b'w', variable((10**9,), 4 * 10**9))]),
    table([HEADER, (0, b'w', variable((3,), 16))]),  # of another size
    table([HEADER, (0, b'w', variable((4,), 16))]),  # without a checksum
    table([HEADER, (0, b'w', variable((0, 1 << 62, 1 << 62), 0))]),
    table([HEADER, (0, b'w', variable((2,), 8, kind=21))]),  # a type that NumPy has not
    table([(0, b'w', b'')]),
]


def test_a_checkpoint_of_objects_says_what_it_is(tmp_path):
    (tmp_path / 'model.ckpt.index').write_bytes(
        table([HEADER, (0, b'_CHECKPOINTABLE_OBJECT_GRAPH', variable((), 4, kind=7))])
    )
    with pytest.raises(CheckpointError, match='TensorFlow 2'):
        read_tensors(tmp_path / 'model.ckpt')


@pytest.mark.parametrize('content', DAMAGED)
def test_what_cannot_be(tmp_path, content):
    prefix = tmp_path / 'model.ckpt'
    (tmp_path / 'model.ckpt.index').write_bytes(content)
    (tmp_path / 'model.ckpt.data-00000-of-00001').write_bytes(bytes(16))
    with pytest.raises(CheckpointError):
        read_tensors(prefix)
