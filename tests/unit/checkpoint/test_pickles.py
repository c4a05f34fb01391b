"""Pickles of plain data: read without running anything, and refused if they want more."""

import collections
import os
import pathlib
import pickle
import struct

import numpy as np
import pytest

from model_zoo.checkpoint.numpy_files import ArrayArchive
from model_zoo.checkpoint.pickles import read_pickle
from model_zoo.errors import CheckpointError, InputError
from model_zoo.tokenization.vocab import read_words


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
    assert type(found['counter']) is collections.Counter


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
        with pytest.raises(CheckpointError, match=rf'asks for {__name__}.Plain, which is not'):
            read_pickle(dump([plain], protocol))


@pytest.mark.parametrize(
    'function, args, name',
    [
        (os.system, ('touch hacked',), f'{os.system.__module__}.system'),
        (eval, ('open("hacked", "w")',), 'builtins.eval|__builtin__.eval'),
        (getattr, ([], 'append'), 'builtins.getattr|__builtin__.getattr'),
        (pathlib.Path, ('hacked',), f'{pathlib.Path.__module__}.Path'),
        (__import__, ('os',), 'builtins.__import__|__builtin__.__import__'),
        (np.load, ('hacked',), 'numpy.*load'),
    ],
)
@pytest.mark.parametrize('protocol', [0, 2, 4])
def test_what_it_must_not_do(dump, monkeypatch, tmp_path, function, args, name, protocol):
    monkeypatch.chdir(tmp_path)
    path = dump({'idx2sym': ['a'], 'counter': Asks(function, *args)}, protocol)
    with pytest.raises(CheckpointError, match=f'vocab.pkl.* is refused: it asks for ({name})'):
        read_words(path)
    assert not pathlib.Path('hacked').exists()


def test_a_pickle_cannot_change_classes_for_later(dump):
    # BUILD with a pair as the state sets attributes, here of the class that was named
    state = b"(N(S'update'\nS'broken'\ndtb."
    for name in (b'ccollections\nCounter\n', b'c__builtin__\ndict\n', b'cnumpy\nndarray\n'):
        with pytest.raises(CheckpointError):
            read_pickle(dump(name + state)).items  # noqa: B018  a class is no value either
        assert read_pickle(dump(collections.Counter('aa'))) == {'a': 2}
        assert read_pickle(dump(np.arange(2))).tolist() == [0, 1]
    assert callable(collections.Counter.update)


@pytest.mark.parametrize(
    'content',
    [
        b'',
        b'hello',
        b'\x80\x04.',
        b'PK\3\4 no archive',
        pickle.dumps({'a': list(range(99))})[:50],
        pickle.dumps(Asks(bytearray, 10**13)),  # so many zeros
        pickle.dumps(np.array([object()], dtype=object)),
        pickle.dumps(np.arange(9))[:-20],
        b'cnumpy\ndtype\n(S"(99999999,)f8"\ntR.',
        pickle.dumps(0x1950A86A20F9469CFC6C, 2),
    ],
)
def test_damaged_files(dump, content):
    with pytest.raises(CheckpointError, match=r'vocab\.pkl'):
        read_pickle(dump(content))


@pytest.mark.parametrize(
    'content, message',
    [
        # tuples of two of the one before: their hash would take 2**60 steps
        (b'\x80\x02}' + b')' + b'q\x00h\x00\x86' * 60 + b'K\x01s.', 'nested too deeply'),
        (b'\x80\x02}' + b')' + b'\x85' * 100000 + b'K\x01s.', 'nested too deeply'),
        (b'\x80\x02cnumpy\nndarray\n)R(K\x01(' + b'K\x01' * 60000 + b'tNI00\nC\x00tb.', '60000'),
        (b'\x80\x05\x96' + (2**33).to_bytes(8, 'little') + b'.', '8589934592 bytes'),
        (b'\x80\x02c_codecs\nencode\n}X\x01\0\0\0aK\x01sb.', 'a state of a method'),
        (b'\x80\x04]' + b'(' * 20000 + b'.', 'nested too deeply'),
    ],
    ids=['wide tuples', 'deep tuples', 'dimensions', 'bytes', 'attributes of a function', 'marks'],
)
def test_what_would_take_time_or_memory(dump, content, message):
    with pytest.raises(CheckpointError, match=message):
        read_pickle(dump(content))


@pytest.mark.parametrize(
    'made',
    [
        b'}((\x91K\x01u.',
        b'\x8f((\x91\x90.',
        b'((\x91\x91.',
        b'}(\x91K\x01s.',
        b'((\x91K\x01d.',
        b'cbuiltins\nset\n((\x91\x85tR.',
        b'cbuiltins\nfrozenset\n((\x91\x85tR.',
        b'cbuiltins\ndict\n((\x91K\x01\x86\x85tR.',
        b'ccollections\nOrderedDict\n((\x91K\x01\x86\x85tR.',
        b'ccollections\nCounter\n((\x91\x85tR.',
        b'}\x8a\x09' + (2**64).to_bytes(9, 'little') + b'Ns.',
    ],
)
def test_keys_are_scalars(dump, made):
    # a set's hash is that of its elements, and equal ones are compared: this may take for ever
    with pytest.raises(CheckpointError, match='key of a dict or element of a set'):
        read_pickle(dump(b'\x80\x04' + made))


NUMBERS = list(range(60000))
FEW = NUMBERS[:1000]
PICKLED = b''.join(b'M' + struct.pack('<H', number) for number in NUMBERS)
ONE_SET = b'\x80\x04(' + PICKLED + b'\x91\x85\x94cbuiltins\nset\n\x94'


@pytest.mark.parametrize(
    'content',
    [
        *(b'\x80\x04N' + code * 2_000_000 + b'.' for code in (b'\x8f', b']', b'}', b'\x94')),
        ONE_SET + b'0' + b'h\x01h\x00R' * 10000 + b'.',
        [Asks(list, FEW) for _ in range(1000)],
    ],
    ids=['EMPTY_SET', 'EMPTY_LIST', 'EMPTY_DICT', 'MEMOIZE', 'a set again', 'a list again'],
)
def test_what_makes_much_of_a_byte(dump, content):
    with pytest.raises(CheckpointError, match='far more than the file holds'):
        read_pickle(dump(content))


def test_devices_are_not_read():
    """They may have no end."""
    with pytest.raises(CheckpointError, match="cannot read '/dev/zero': it is no regular file"):
        read_pickle('/dev/zero')
    with pytest.raises(CheckpointError, match='it is empty'), ArrayArchive('/dev/zero'):
        pass


def test_a_large_place_of_the_memo_costs_nothing(dump):
    assert read_pickle(dump(b'\x80\x02}r\x00\x00\x00\x80.')) == {}


def test_files_of_torch(fixtures):
    for name in ('zip', 'legacy'):
        found = read_pickle(fixtures / 'lm_pickles' / f'corpus_{name}.bin')
        assert found['train'].dtype == np.int64 and found['train'][:7].tolist() == (
            found['valid'].tolist()
        )


@pytest.mark.parametrize(
    'fields',
    [
        {},
        [1],
        {'idx2sym': 'abc'},
        {'idx2sym': ['a', 3]},
        {'idx2sym': ['a', None]},
        {'idx2sym': ['a', 'b', 'a']},
        {'idx2sym': ['a', 'b'], 'sym2idx': {'a': 1, 'b': 0}},
        {'idx2sym': ['a'], 'counter': [3]},
        {'idx2sym': ['a'], 'lower_case': 'yes'},
        {'idx2sym': ['a'], 'unk_idx': 1},
    ],
)
def test_vocabularies_that_are_none(dump, fields):
    with pytest.raises(InputError):
        read_words(dump(fields))
