"""Samples in TensorFlow's record files; tests/peers has TensorFlow itself read and write them."""

import pathlib

import numpy as np
import pytest
from refusals import refuses
from toy_data import make_samples

from model_zoo.checkpoint.tensorflow_file import masked_crc32c
from model_zoo.tasks.pretraining.files import read_lengths, read_shard, write_tfrecords


@pytest.fixture(scope='module')
def samples():
    """Nine of them, with ids of one to three bytes."""
    return make_samples(9, 3, 30000, 16, 4)


@pytest.fixture
def path(samples, tmp_path):
    path = str(tmp_path / 'samples.tfrecord')
    write_tfrecords([path], [samples.take(slice(0, 4)), samples.take(slice(4, 9))], 20, 6)
    return path


def test_there_and_back(path, samples):
    found = read_shard(path, max_len=16)
    assert found.input_ids.shape == (9, 20) and found.masked_lm_ids.shape == (9, 6)
    for name, array in found._asdict().items():
        wanted = getattr(samples, name)
        assert array.dtype == wanted.dtype
        if array.ndim == 2:
            assert not array[:, wanted.shape[1] :].any()  # padding
            array = array[:, : wanted.shape[1]]
        np.testing.assert_array_equal(array, wanted, err_msg=name)
    np.testing.assert_array_equal(read_lengths(path), samples.valid_lengths)


def test_several_files_get_a_sample_each_in_turn(samples, tmp_path):
    paths = [str(tmp_path / name) for name in 'ab']
    write_tfrecords(paths, [samples], 16, 4)
    for number, each in enumerate(paths):
        np.testing.assert_array_equal(read_shard(each).input_ids, samples.input_ids[number::2])


def test_damage_is_found(path):
    file, rng = pathlib.Path(path), np.random.default_rng(0)
    content = file.read_bytes()
    for place in [12, len(content) - 1, *rng.integers(12, len(content), 40)]:
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with refuses(says='samples.tfrecord'):
            read_shard(path)
    for size in (13, 100, len(content) - 1):
        file.write_bytes(content[:size])
        with refuses(says='samples.tfrecord'):
            read_shard(path)


def record(content):
    head = len(content).to_bytes(8, 'little')
    sums = (masked_crc32c(part).to_bytes(4, 'little') for part in (head, content))
    return head + next(sums) + content + next(sums)


def test_other_records(tmp_path):
    """Whole, and with right checksums, but of something else."""

    def file(content):
        other = tmp_path / 'other.tfrecord'
        other.write_bytes(record(content))
        return str(other)

    label = b'\n\x01y\x12\x05\x1a\x03\n\x01\x07'  # y: [7]
    features = b'\n' + bytes([len(label)]) + label
    with refuses(says='other.tfrecord'):
        read_shard(file(b'\n' + bytes([len(features)]) + features))
    for content in (b'', b'text', b'\x08\x01', b'\n\x7f'):
        with refuses(says='other.tfrecord'):
            read_shard(file(content))
