"""Files of samples: GluonNLP's form both ways, and what is said of files that can't be used."""

import io
import os
import pathlib
import pickle
import zipfile

import gluonnlp as nlp
import numpy as np
import pytest
from pretraining_statistics import unmasked
from refusals import refuses
from toy_data import make_samples

from model_zoo.tasks.pretraining.files import Samples, read_lengths, read_shard, write_shard
from model_zoo.tokenization.vocab import load_vocab

TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *'abcdefghij']


@pytest.fixture(scope='module')
def vocab():
    return load_vocab(TOKENS)


@pytest.fixture
def samples():
    return make_samples(6, 0, 10, 12, 3)


@pytest.fixture
def shard(samples, vocab, tmp_path):
    path = str(tmp_path / 'part-000.npz')
    write_shard(path, samples, vocab, max_seq_length=12)
    return path


def save(path, samples, **changes):
    """With NumPy: no comment about the vocabulary."""
    np.savez(path, **{**samples._asdict(), **changes})
    return str(path)


def test_there_and_back(shard, samples, vocab, tmp_path):
    for found in (read_shard(shard), read_shard(shard, vocab, 12)):
        for one, other in zip(samples, found):
            assert one.dtype == other.dtype and np.array_equal(one, other)
    assert read_lengths(shard, vocab).tolist() == samples.valid_lengths.tolist()
    again = tmp_path / 'again.npz'
    write_shard(str(again), samples, vocab, max_seq_length=12)
    assert again.read_bytes() == pathlib.Path(shard).read_bytes()


def test_gluonnlp_reads_ours(shard, samples):
    """As its pretraining_utils.py does: seven fields, sorted by name, no pickles."""
    dataset = nlp.data.NumpyDataset(shard, allow_pickle=False)
    assert dataset.keys == sorted(Samples._fields) and len(dataset) == 6
    for name in dataset.keys:
        assert np.array_equal(dataset.get_field(name), getattr(samples, name))


@pytest.mark.parametrize('name', ['gluonnlp', 'gluonnlp_even'])
def test_we_read_gluonnlps(name, fixtures):
    path = str(fixtures / 'pretraining' / f'{name}.npz')
    vocab = load_vocab(fixtures / 'pretraining' / 'vocab.txt')
    found, theirs = read_shard(path, vocab, 64), np.load(path, allow_pickle=True)
    assert found.count == len(theirs['input_ids']) > 10
    for field, array in found._asdict().items():
        assert array.dtype == (np.float32 if field == 'masked_lm_weights' else np.int32)
        for mine, want in zip(array, theirs[field]):
            if array.ndim == 1:
                assert mine == want
            else:
                assert mine[: len(want)].tolist() == list(want) and not mine[len(want) :].any()
    assert (found.masked_lm_weights.sum(axis=1) >= 1).all()
    assert (unmasked(found) != vocab['[MASK]']).all()
    assert read_lengths(path, vocab).tolist() == theirs['valid_lengths'].tolist()


def test_pickles_are_not_run(samples, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / 'touched'),)

    evil = np.array([[1], Evil(), [1], [1], [1], [1]], dtype=object)
    path = save(tmp_path / 'evil.npz', samples, input_ids=evil)
    with refuses(says='evil.npz'):
        read_shard(path)
    assert not (tmp_path / 'touched').exists()
    with zipfile.ZipFile(path, 'w') as archive:
        for name in Samples._fields:
            buffer = io.BytesIO()
            header = {'descr': '|O', 'fortran_order': False, 'shape': (6,)}
            np.lib.format.write_array_header_1_0(buffer, header)
            archive.writestr(f'{name}.npy', buffer.getvalue() + pickle.dumps({'a': 1}))
    with refuses(says='evil.npz'):
        read_shard(path)


def test_another_vocabulary(shard, vocab):
    for other in ([*TOKENS, 'k'], [*TOKENS[:5], *TOKENS[:4:-1]]):
        for read in (read_shard, read_lengths):
            with refuses(says='part-000.npz'):
                read(shard, load_vocab(other))


NUMBERS = [
    ('valid_lengths', 2, 13),  # more than the arrays have
    ('masked_lm_positions', (3, 0), 12),  # behind the sample
    ('input_ids', (1, 4), -1),
    ('input_ids', (1, 4), len(TOKENS)),
    ('masked_lm_ids', (1, 0), -1),
    ('masked_lm_ids', (1, 0), len(TOKENS)),
    ('input_ids', (5, 0), 3),  # not [CLS]
]


@pytest.mark.parametrize('name, row, value', NUMBERS)
def test_numbers_of_another_model(name, row, value, samples, vocab, tmp_path):
    plain = save(tmp_path / 'plain.npz', samples)
    assert read_shard(plain, vocab, 12).count == 6
    getattr(samples, name)[row] = value
    with refuses(says='plain.npz'):
        read_shard(save(tmp_path / 'plain.npz', samples), vocab, 12)


def test_sizes_of_another_model(shard, samples, vocab, tmp_path):
    with refuses(says='part-000.npz'):
        read_shard(shard, vocab, samples.valid_lengths.max() - 1)
    for changes in ({'input_ids': samples.input_ids[:5]}, Samples.empty(0, 12, 3)._asdict()):
        with refuses(says='plain.npz'):
            read_shard(save(tmp_path / 'plain.npz', samples, **changes), vocab)
    samples.valid_lengths[0] = 1
    assert read_lengths(save(tmp_path / 'short.npz', samples), vocab)[0] == 1
    samples.valid_lengths[0] = 0
    with refuses(says='short.npz'):
        read_lengths(save(tmp_path / 'short.npz', samples), vocab)
