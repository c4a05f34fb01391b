"""Byte pairs: files of all sorts, files that don't fit, folders that are known."""

import json

import pytest
from refusals import refuses

from gpt.tokenizer import OpenAIGPTTokenizer
from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tokenization.bpe import read_bpe_vocab, read_merges


@pytest.fixture
def write(tmp_path):
    """Writes the files of a byte pair encoding, by default a sound one."""

    def write(vocab=('a', 'b', 'ab', 'abab'), merges='#version: 0.2\na b\nab ab\n'):
        if not isinstance(vocab, (bytes, dict)):
            vocab = {token: place for place, token in enumerate(vocab)}
        if isinstance(vocab, dict):
            vocab = json.dumps(vocab).encode()
        merges = merges if isinstance(merges, bytes) else merges.encode()
        (tmp_path / 'vocab.json').write_bytes(vocab)
        (tmp_path / 'merges.txt').write_bytes(merges)
        return tmp_path / 'vocab.json', tmp_path / 'merges.txt'

    return write


def test_merges_files_of_all_sorts_are_read(write):
    want = {('a', 'b'): 0, ('ab', 'ab'): 1}
    windows = '#version: 0.2\r\na b\r\nab ab\r\n'
    for text in ('a b\nab ab', windows, '\ufeff#version\na b\n\nab ab\n'):
        assert read_merges(write(merges=text)[1]) == want
    # the last place of a pair counts, as in the original
    assert read_merges(write(merges='a b\nab ab\na b\n')[1]) == {('ab', 'ab'): 0, ('a', 'b'): 1}


def test_tokens_that_no_merges_lead_to(write):
    """Taken as by the original, whose own tests have such files."""
    tokenizer = GPT2Tokenizer(*write(['a', 'b', 'ab', 'abab', 'bab', 'aab'], 'a b\n'))
    assert tokenizer.encode('abab') == [2, 2]


def test_ids_with_gaps(write, caplog):
    """Taken with a warning; special tokens come behind the last id. No text has the ids between."""
    vocab = b'{"a": 0, "b": 2, "ab": 5}'
    tokenizer = GPT2Tokenizer(*write(vocab, 'a b\n'), special_tokens=['<x>'])
    assert '3 ids' in caplog.text
    assert tokenizer.encode('abba') == [5, 2, 0] and tokenizer.decode([5, 1, 2, 3, 0]) == 'abba'
    assert tokenizer.convert_tokens_to_ids(['<x>', 'ab']) == [6, 5] and len(tokenizer) == 7
    gaps = [f'[no token {number}]' for number in (1, 3, 4)]
    assert tokenizer.vocab.idx_to_token == ['a', gaps[0], 'b', *gaps[1:], 'ab', '<x>']


def test_files_of_another_family(write, tmp_path):
    write()
    with refuses(says='merges.txt'):
        OpenAIGPTTokenizer.from_pretrained(tmp_path)
    (tmp_path / 'vocab.txt').write_text('[UNK]\n[SEP]\n[PAD]\n[CLS]\n[MASK]\n')
    with refuses(says='vocab.txt'):
        GPT2Tokenizer.from_pretrained(tmp_path / 'vocab.txt')


def test_missing_files_and_names(write, tmp_path):
    vocab, merges = write()
    for make in (
        lambda: GPT2Tokenizer.from_pretrained(tmp_path / 'none'),
        lambda: GPT2Tokenizer(tmp_path / 'no-such.json', merges),
        lambda: GPT2Tokenizer(vocab, tmp_path / 'no-such.txt'),
    ):
        with pytest.raises(InputError):
            make()
    merges.unlink()
    with refuses(says='vocab.json'):
        GPT2Tokenizer.from_pretrained(tmp_path)
    with pytest.raises(UnknownNameError):
        GPT2Tokenizer.from_pretrained('gpt17')


def test_a_few_tokens_of_ones_own_do_no_harm(write):
    vocab = ['a', 'b', 'ab', 'abab', '<|endoftext|>', '[PAD]', '__x__', 'own']
    tokenizer = GPT2Tokenizer(*write(vocab))
    assert tokenizer.convert_tokens_to_ids('own') == 7 and tokenizer.pad_token_id == 5
    assert tokenizer.decode([2, 5, 7]) == 'ab[PAD]own'
    assert read_bpe_vocab(write(vocab)[0]) == {token: n for n, token in enumerate(vocab)}
