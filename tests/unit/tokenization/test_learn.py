"""Byte pairs that are learned from a text."""

import json
import logging

import pytest

from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.errors import InputError
from model_zoo.tokenization.learn import (
    LONGEST_WORD,
    count_words,
    learn_byte_pairs,
    learn_word_pieces,
    split_words,
)

TEXT = 'the lobster and the other lobster\n' * 20 + 'naïve 海老\n'


def test_the_tokenizer_takes_what_was_learned(tmp_path):
    text = tmp_path / 'text.txt'
    text.write_text(TEXT, encoding='utf-8')
    path = learn_byte_pairs(text, 275, str(tmp_path / 'vocab'))
    vocab = json.loads((tmp_path / 'vocab' / 'vocab.json').read_text(encoding='utf-8'))
    assert len(vocab) == 275 and '<|endoftext|>' in vocab
    tokenizer = GPT2Tokenizer.from_pretrained(path)
    assert tokenizer.tokenize('the lobster') == ['the', '\u0120lobster']
    for text in (TEXT, 'Quite another one: 蝦\n\n\t!'):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    learn_byte_pairs(tmp_path / 'text.txt', 275, str(tmp_path / 'again'))
    for name in ('vocab.json', 'merges.txt'):
        again = tmp_path / 'again' / name
        assert again.read_bytes() == (tmp_path / 'vocab' / name).read_bytes()


def test_what_cannot_be_learned(tmp_path):
    text = tmp_path / 'text.txt'
    text.write_text('a\n')
    with pytest.raises(InputError):
        learn_byte_pairs(text, 257, str(tmp_path / 'vocab'))
    with pytest.raises(InputError):
        learn_byte_pairs(text, 300, str(tmp_path / 'vocab'))
    assert not (tmp_path / 'vocab').exists()


@pytest.mark.parametrize('kind', ['words', 'pieces', 'lines', 'pairs'])
def test_endless_words_are_left_out_with_one_warning(tmp_path, kind, caplog):
    text = ['the cat sat'] * 9
    endless = ['x' * 300_000, '\u20acy' * 6_500, 'z' * 13_000, '_!' * 6_500, ' ' * 13_000]
    longer = [*text, ' '.join(['the', *endless, '\u732b' * 9, 'cat'])]
    if kind == 'words':
        counts = count_words(longer)
        assert counts['the'] == 10 and counts['\u732b'] == 9 and counts['sat'] == 9
        assert max(map(len, counts)) <= LONGEST_WORD
    elif kind == 'lines':
        assert max(map(len, ' '.join(split_words(longer)).split())) <= LONGEST_WORD
    elif kind == 'pieces':
        learn_word_pieces(lambda: iter(longer), 60, tmp_path / 'a.txt')
        learn_word_pieces(count_words(longer), 60, tmp_path / 'b.txt')
        assert (tmp_path / 'a.txt').read_text() == (tmp_path / 'b.txt').read_text()
    else:
        (tmp_path / 'text').write_text('\n'.join(longer))
        learn_byte_pairs(tmp_path / 'text', 300, tmp_path)
        assert 'the' in (tmp_path / 'vocab.json').read_text()
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == (2 if kind == 'pieces' else 1)
    assert 'words of more than 1000 characters are left out' in warnings[0].getMessage()
