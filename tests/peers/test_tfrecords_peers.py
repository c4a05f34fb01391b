"""TFRecord files of samples: TensorFlow reads ours, with Google's schema, and we read its own."""

import numpy as np
import pytest
from toy_data import LENGTH, MASKS, make_samples

from model_zoo.tasks.pretraining.files import read_shard, write_tfrecords

tf = pytest.importorskip('tensorflow')

pytestmark = pytest.mark.peers

# as run_pretraining.py of google-research/bert parses them
SCHEMA = {
    'input_ids': ((LENGTH,), 'int64'),
    'input_mask': ((LENGTH,), 'int64'),
    'segment_ids': ((LENGTH,), 'int64'),
    'masked_lm_positions': ((MASKS,), 'int64'),
    'masked_lm_ids': ((MASKS,), 'int64'),
    'masked_lm_weights': ((MASKS,), 'float32'),
    'next_sentence_labels': ((1,), 'int64'),
}


@pytest.fixture(scope='module')
def samples():
    return make_samples(50, 1)


def features(samples, row):
    """Name -> list, of a sample, as Google's script fills in its features."""
    lists = {name: array[row].tolist() for name, array in samples._asdict().items()}
    lists['next_sentence_labels'] = [lists['next_sentence_labels']]
    length = lists.pop('valid_lengths')
    return {**lists, 'input_mask': [1] * length + [0] * (LENGTH - length)}


def example(samples, row):
    """The message that Google's script writes."""
    message = tf.train.Example()
    for name, values in features(samples, row).items():
        feature = message.features.feature[name]
        kind = feature.float_list if name.endswith('weights') else feature.int64_list
        kind.value.extend(values)
    return message


def test_tensorflow_reads_ours(samples, tmp_path):
    path = str(tmp_path / 'ours.tfrecord')
    write_tfrecords([path], [samples], LENGTH, MASKS)
    records = [record.numpy() for record in tf.data.TFRecordDataset(path)]
    assert len(records) == samples.count
    schema = {name: tf.io.FixedLenFeature(*row) for name, row in SCHEMA.items()}
    for row, record in enumerate(records):
        wanted = example(samples, row)
        assert tf.train.Example.FromString(record) == wanted
        assert len(record) == wanted.ByteSize()
        parsed = tf.io.parse_single_example(record, schema)
        for name, values in features(samples, row).items():
            assert parsed[name].numpy().tolist() == values, name


def test_we_read_tensorflows(samples, tmp_path):
    path = str(tmp_path / 'theirs.tfrecord')
    with tf.io.TFRecordWriter(path) as writer:
        for row in range(samples.count):
            writer.write(example(samples, row).SerializeToString())
    for ours, theirs in zip(read_shard(path), samples):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
