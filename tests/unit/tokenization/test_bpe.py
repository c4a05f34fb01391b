"""Byte pairs: the original's order of merging, files that don't fit, folders that are known."""

import json
import pickle
import re

import pytest
from tokenizers import models

from gpt.tokenizer import OpenAIGPTTokenizer
from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tokenization.bpe import merge_symbols
from model_zoo.tokenization.bpe_files import read_bpe_vocab, read_merges
from model_zoo.tokenization.vocab_file import find_vocab_file


@pytest.fixture(scope='module')
def expected(fixtures):
    return json.loads((fixtures / 'lm_tokenizer_cases.json').read_text())


@pytest.fixture
def write(tmp_path):
    """Writes the files of a byte pair encoding, by default a sound one."""

    def write(vocab=('a', 'b', 'ab', 'abab'), merges='#version: 0.2\na b\nab ab\n', names=None):
        vocab_name, merges_name = names or ('vocab.json', 'merges.txt')
        if not isinstance(vocab, (bytes, dict)):
            vocab = {token: place for place, token in enumerate(vocab)}
        if isinstance(vocab, dict):
            vocab = json.dumps(vocab).encode()
        merges = merges if isinstance(merges, bytes) else merges.encode()
        (tmp_path / vocab_name).write_bytes(vocab)
        (tmp_path / merges_name).write_bytes(merges)
        return tmp_path / vocab_name, tmp_path / merges_name

    return write


def test_merging_in_any_order_of_pairs_is_the_originals(expected, write):
    python_only = 0
    for case in expected['merging']:
        pairs = [tuple(line.split()) for line in case['merges']]
        ranks = {pair: rank for rank, pair in enumerate(pairs)}
        assert merge_symbols(case['word'], ranks) == case['pieces']
        symbols = dict.fromkeys(['a', 'b', 'c', *(''.join(pair) for pair in pairs)])
        if all(part in symbols for pair in pairs for part in pair):
            lines = ''.join(f'{line}\n' for line in case['merges'])
            tokenizer = GPT2Tokenizer(*write(list(symbols), lines))
            assert tokenizer.bpe(case['word']).split(' ') == case['pieces']
            python_only += tokenizer._rust is None
    assert 0 < python_only < len(expected['merging'])  # both ways were taken


def test_merging_a_long_word_takes_no_quadratic_time():
    ranks = {('a', 'a'): 0, ('aa', 'aa'): 1, ('b', 'c'): 2}
    assert merge_symbols('a' * 40003, ranks) == ['aaaa'] * 10000 + ['aa', 'a']
    assert merge_symbols('abc' * 20000, ranks) == ['a', 'bc'] * 20000
    assert merge_symbols('', ranks) == []


def test_the_rust_library_is_left_where_it_differs(write):
    # 'abc a' comes before 'a bc', which makes its 'abc'
    vocab = ['a', 'b', 'c', 'bc', 'abc', 'abca']
    tokenizer = GPT2Tokenizer(*write(vocab, 'b c\nabc a\na bc\n'))
    assert tokenizer._rust is None
    # all of 'a bc' first, so that no 'a' is left for 'abc a'
    assert tokenizer.tokenize('abcabc') == ['abc', 'abc']
    rust = models.BPE(tokenizer.encoder, list(tokenizer.bpe_ranks))
    assert [token.value for token in rust.tokenize('abcabc')] == ['abca', 'bc']
    sound = GPT2Tokenizer(*write())
    assert sound._rust is not None and sound.tokenize('ababab') == ['abab', 'ab']
    sound._rust = None
    sound._forget()
    assert sound.tokenize('ababab') == ['abab', 'ab']


NAMES = [
    ('vocab.json', 'merges.txt'),
    ('encoder.json', 'vocab.bpe'),
    ('encoder_bpe_40000.json', 'vocab_40000.bpe'),
]


@pytest.mark.parametrize('names', NAMES)
def test_folders_are_recognised_by_their_names(write, tmp_path, names):
    path, _ = write(names=names)
    file = find_vocab_file(None, path=str(tmp_path))
    assert file.kind == 'bpe' and file.path == str(path)
    vocab = find_vocab_file(path=str(tmp_path)).vocab
    assert vocab.idx_to_token == ['a', 'b', 'ab', 'abab']
    assert find_vocab_file(None, path=str(path)).kind == 'bpe'
    assert GPT2Tokenizer.from_pretrained(tmp_path).encode('ab') == [2]


def test_merges_files_of_all_sorts_are_read(write):
    want = {('a', 'b'): 0, ('ab', 'ab'): 1}
    windows = '#version: 0.2\r\na b\r\nab ab\r\n'
    for text in ('a b\nab ab', windows, '\ufeff#version\na b\n\nab ab\n'):
        assert read_merges(write(merges=text)[1]) == want
    # the last place of a pair counts, as in the original
    assert read_merges(write(merges='a b\nab ab\na b\n')[1]) == {('ab', 'ab'): 0, ('a', 'b'): 1}


@pytest.mark.parametrize(
    'vocab, merges, message',
    [
        (b'{"a": 0', 'a b\n', 'vocab.json.* not JSON'),
        (b'{"a": 0, "\xff": 1}', 'a b\n', 'vocab.json.* byte 0xff in position 10'),
        (b'[1, 2]', 'a b\n', 'vocab.json.* object is expected'),
        (b'{}', 'a b\n', 'vocab.json.* no tokens'),
        (b'{"a": "0"}', 'a b\n', 'vocab.json.*: a .* number is expected'),
        (b'{"a": 0, "b": -1}', 'a b\n', "'b' has -1"),
        (b'{"a": 0, "b": 0}', 'a b\n', "'b' has 0, as 'a' has"),
        (['a', 'b', 'ab'], '', 'holds no pairs'),
        (['a', 'b', 'ab'], '#version: 0.2\n', 'holds no pairs'),
        (['a', 'b', 'ab'], '#version: 0.2\na b\na', "line 3: 'a' must be two symbols"),
        (['a', 'b', 'ab'], 'a b\na b c\n', "line 2: 'a b c' must be two symbols"),
        (['a', 'b', 'ab'], b'a b\n\xe9 b\n', 'line 2: byte 0xe9'),
        (['a', 'b', 'b</w>', 'ab</w>'], 'a b</w>\n', 'has tokens that end in </w>'),
    ],
)
def test_files_that_cannot_be_used(write, tmp_path, vocab, merges, message):
    write(vocab, merges)
    with pytest.raises(InputError, match=message):
        GPT2Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize('merges, message', [
    ('a b\na c\n', r"no 'c', which pair 2 of the merges, 'a c', needs \(2 such tokens\)"),
    ('a b\nb a\n', "no 'ba', which pair 2 of the merges, 'b a', needs; merges"),
])  # fmt: skip
def test_merges_that_lead_to_no_token(write, caplog, merges, message):
    """Taken as by the original: a text that they are for has no ids, the others have theirs."""
    tokenizer = GPT2Tokenizer(*write(['a', 'b', 'ab', 'abab'], merges + 'ab ab\n'))
    assert len(caplog.messages) == 1 and re.search(message, caplog.text)
    assert tokenizer.encode('abab') == [3]
    if 'ba' in message:
        with pytest.raises(InputError, match="token 'ba' is not in the vocabulary"):
            tokenizer.encode('ba')


def test_tokens_that_no_merges_lead_to(write, caplog):
    """Taken as by the original, whose own tests have such files."""
    tokenizer = GPT2Tokenizer(*write(['a', 'b', 'ab', 'abab', 'bab', 'aab'], 'a b\n'))
    assert re.search("no merges lead to 3 tokens .* such as 'abab'.* whole", caplog.text)
    assert tokenizer.encode('abab') == [2, 2]


def test_ids_with_gaps(write, caplog):
    """Taken with a warning; special tokens come behind the last id."""
    vocab = b'{"a": 0, "b": 2, "ab": 5}'
    tokenizer = GPT2Tokenizer(*write(vocab, 'a b\n'), special_tokens=['<x>'])
    assert 'no token has 3 of the ids up to 5' in caplog.text
    assert tokenizer.encode('abba') == [5, 2, 0] and tokenizer.decode([5, 2, 0]) == 'abba'
    assert tokenizer.convert_tokens_to_ids(['<x>', 'ab']) == [6, 5] and len(tokenizer) == 7
    assert tokenizer.vocab.idx_to_token == [
        'a', '[no token 1]', 'b', '[no token 3]', '[no token 4]', 'ab', '<x>'
    ]  # fmt: skip
    with pytest.raises(InputError, match='id 3 is not in the vocabulary'):
        tokenizer.decode([3])


def test_files_of_another_family(write, tmp_path):
    write()
    with pytest.raises(InputError, match='lacks tokens that end in </w>'):
        OpenAIGPTTokenizer.from_pretrained(tmp_path)
    (tmp_path / 'vocab.txt').write_text('[UNK]\n[SEP]\n[PAD]\n[CLS]\n[MASK]\n')
    with pytest.raises(InputError, match='no tokenizer for .*vocab.txt'):
        GPT2Tokenizer.from_pretrained(tmp_path / 'vocab.txt')


def test_missing_files_and_names(write, tmp_path):
    vocab, merges = write()
    with pytest.raises(InputError, match='no such file or folder'):
        GPT2Tokenizer.from_pretrained(tmp_path / 'none')
    with pytest.raises(InputError, match='no-such.json.*: No such file'):
        GPT2Tokenizer(tmp_path / 'no-such.json', merges)
    with pytest.raises(InputError, match='no-such.txt.*: No such file'):
        GPT2Tokenizer(vocab, tmp_path / 'no-such.txt')
    merges.unlink()
    with pytest.raises(InputError, match='put merges.txt or .* beside it'):
        GPT2Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(InputError, match='put their merges.txt beside it'):
        assert find_vocab_file(path=str(tmp_path)).vocab
    with pytest.raises(UnknownNameError, match="'gpt17'"):
        GPT2Tokenizer.from_pretrained('gpt17')


def test_a_few_tokens_of_ones_own_do_no_harm(write):
    vocab = ['a', 'b', 'ab', 'abab', '<|endoftext|>', '[PAD]', '__x__', 'own']
    tokenizer = GPT2Tokenizer(*write(vocab))
    assert tokenizer.convert_tokens_to_ids('own') == 7
    assert tokenizer.decode([2, 5, 7]) == 'ab[PAD]own'
    assert read_bpe_vocab(write(vocab)[0]) == {token: n for n, token in enumerate(vocab)}


def test_a_symbol_that_the_vocabulary_lacks_is_named(write):
    tokenizer = GPT2Tokenizer(*write())
    with pytest.raises(InputError, match="token 'x' is not in the vocabulary, which has no <unk>"):
        tokenizer.encode('abx')
    unknown = GPT2Tokenizer(*write(['<unk>', 'a', 'b', 'ab', 'abab']))
    assert unknown.encode('ab x') == [3, 0, 0]


def test_the_cache_is_bounded_and_not_pickled(write, monkeypatch):
    monkeypatch.setattr('model_zoo.tokenization.chunks._CACHED_CHARS', 50)
    tokenizer = GPT2Tokenizer(*write(['<unk>', 'a', 'b', 'ab', 'abab']))
    for number in range(40):
        tokenizer.encode('ab' * number)
        assert tokenizer._cached_chars <= 50 + 2 * number
    assert not pickle.loads(pickle.dumps(tokenizer))._cache
