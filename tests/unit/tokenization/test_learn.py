"""Byte pairs that are learned from a text."""

import json

from refusals import refuses

from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.tokenization.learn import learn_byte_pairs

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
    with refuses(says='257'):
        learn_byte_pairs(text, 257, str(tmp_path / 'vocab'))
    assert not (tmp_path / 'vocab').exists()
