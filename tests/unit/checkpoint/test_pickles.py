"""Pickles of plain data: read without running anything, and refused if they ask for more."""

import collections
import os
import pathlib
import pickle

import numpy as np
import pytest

from model_zoo.checkpoint.torch_file import read_pickle
from model_zoo.errors import CheckpointError
from transfo_xl.vocabulary import read_words


@pytest.fixture
def dump(tmp_path):
    def dump(content, protocol=2):
        path = tmp_path / 'vocab.pkl'
        if not isinstance(content, bytes):
            content = pickle.dumps(content, protocol)
        path.write_bytes(content)
        return path

    return dump


class Asks:
    """Pickles as a call."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


class Plain:
    pass


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data(dump, protocol):
    array = np.arange(6).reshape(2, 3)
    value = {
        'ordered': collections.OrderedDict([('b', 1), ('a', [None, True, 2.5])]),
        'counter': collections.Counter('abca'),
        'sets': [{1}, frozenset([2]), b'\xff\0', bytearray(b'ab'), '\u4e2d'],
        'arrays': [array, np.asfortranarray(array), array.astype('>i2'), array > 2, np.empty(0)],
        'scalars': (np.int64(4), np.float32(0.5)),
    }
    found = read_pickle(dump(value, protocol))
    for mine, want in zip(found.pop('arrays'), value.pop('arrays')):
        assert mine.tolist() == want.tolist() and mine.dtype.kind == want.dtype.kind
        assert mine.shape == want.shape
    assert found == value


def test_names_of_newer_and_older_libraries(dump):
    text = pickle.dumps(np.arange(3), 0)
    assert read_pickle(dump(text.replace(b'numpy.core', b'numpy._core'))).tolist() == [0, 1, 2]
    assert read_pickle(dump(b'c__builtin__\nset\n((lI1\natR.')) == {1}  # Python 2's


def test_instances_of_listed_classes_are_namespaces(dump):
    plain = Plain()
    plain.words, plain.self = ['a'], plain
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = read_pickle(dump([plain], protocol), [f'{__name__}.Plain'])[0]
        assert type(found).__name__ == 'SimpleNamespace'
        assert found.words == ['a'] and found.self is found
        with pytest.raises(CheckpointError):
            read_pickle(dump([plain], protocol))


CALLS = [
    (os.system, ('touch hacked',)),
    (eval, ('open("hacked", "w")',)),
    (getattr, ([], 'append')),
    (pathlib.Path, ('hacked',)),
    (__import__, ('os',)),
    (np.load, ('hacked',)),
]


@pytest.mark.parametrize('function, args', CALLS)
@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_code_runs(dump, here, tmp_path, function, args, protocol):
    path = dump({'idx2sym': ['a'], 'counter': Asks(function, *args)}, protocol)
    with pytest.raises(CheckpointError):
        read_words(path)
    assert os.listdir(tmp_path) == ['vocab.pkl']


def test_a_pickle_cannot_change_classes_for_later(dump):
    # BUILD with a pair as the state sets attributes, here of the class that was named
    state = b"(N(S'update'\nS'broken'\ndtb."
    for name in (b'ccollections\nCounter\n', b'c__builtin__\ndict\n', b'cnumpy\nndarray\n'):
        with pytest.raises(CheckpointError):
            read_pickle(dump(name + state)).items  # noqa: B018  a class is no value either
        assert read_pickle(dump(collections.Counter('aa'))) == {'a': 2}
        assert read_pickle(dump(np.arange(2))).tolist() == [0, 1]
    assert callable(collections.Counter.update)


def test_files_of_torch(fixtures):
    for name in ('zip', 'legacy'):
        found = read_pickle(fixtures / 'lm_pickles' / f'corpus_{name}.bin')
        assert found['train'].dtype == np.int64
        assert found['train'][:7].tolist() == found['valid'].tolist()
