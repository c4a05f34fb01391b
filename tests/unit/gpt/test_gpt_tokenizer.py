"""GPT's tokenizer: the original's tokens and ids, with and without spaCy, offsets, files."""

import json
import re
import types

import numpy as np
import pytest
import tiny
from refusals import refuses

from gpt.tokenizer import OpenAIGPTTokenizer, text_standardize


@pytest.fixture(scope='module')
def expected(fixtures):
    return json.loads((fixtures / 'lm_tokenizer_cases.json').read_text())['gpt']


@pytest.fixture(scope='module')
def folder(expected, tmp_path_factory):
    """The release's own names of files."""
    folder = tmp_path_factory.mktemp('gpt')
    vocab, merges = tiny.write_pairs(folder, expected['vocab'], expected['merges'])
    vocab.rename(folder / 'encoder_bpe_40000.json')
    merges.rename(folder / 'vocab_40000.bpe')
    return folder


@pytest.fixture(autouse=True)
def without_spacy(without):
    without('ftfy')


@pytest.fixture
def tokenizer(folder):
    return OpenAIGPTTokenizer.from_pretrained(folder)


def with_spacy(monkeypatch, folder, words):
    """A tokenizer over stand-ins for ftfy and spaCy, which aren't installed with the tests."""
    modules = __import__('sys').modules
    ftfy = types.SimpleNamespace(fix_text=lambda text: text.replace('\u2019', "'"))
    tokens = lambda text: [types.SimpleNamespace(text=word) for word in words(text)]  # noqa: E731
    nlp = types.SimpleNamespace(tokenizer=tokens)
    monkeypatch.setitem(modules, 'ftfy', ftfy)
    monkeypatch.setitem(modules, 'spacy', types.SimpleNamespace(blank=lambda language: nlp))
    return OpenAIGPTTokenizer.from_pretrained(folder)


# the original's tokens


def test_tokens_and_ids_are_the_originals(expected, tokenizer):
    batch = tokenizer.encode_batch([case['text'] for case in expected['cases']], pad=False)
    for case, row in zip(expected['cases'], batch.input_ids):
        assert tokenizer.tokenize(case['text']) == case['tokens']
        assert tokenizer.encode(case['text']) == case['ids'] == row.tolist()
        assert tokenizer.convert_tokens_to_ids(case['tokens']) == case['ids']
        text = tokenizer.decode(case['ids'])
        plain = tokenizer.decode(case['ids'], clean_up_tokenization_spaces=False)
        assert [text, plain] == case['decoded']


def test_special_tokens_are_the_originals(expected, tokenizer):
    tokenizer.set_special_tokens(expected['special'])
    assert len(tokenizer) == len(expected['vocab']) + 3
    tokens = [*expected['special'], 'the', 'a']
    assert tokenizer.convert_tokens_to_ids(tokens) == expected['special_ids']
    assert tokenizer.convert_tokens_to_ids('_start_') == len(expected['vocab'])
    for case in expected['special_cases']:
        assert tokenizer.tokenize(case['text']) == case['tokens']
        assert tokenizer.encode(case['text']) == case['ids']
    ids = tokenizer.convert_tokens_to_ids(['_start_', 'the</w>', '_classify_'])
    assert tokenizer.convert_ids_to_tokens(ids, skip_special_tokens=True) == ['the</w>']
    assert tokenizer.decode(ids, skip_special_tokens=True) == 'the'
    assert tokenizer.decode(ids) == '_start_the _classify_'
    tokenizer.set_special_tokens(None)
    assert not tokenizer.special_tokens and len(tokenizer) == len(expected['vocab'])
    assert [tokenizer.encode(case['text']) for case in expected['cases']] == [
        case['ids'] for case in expected['cases']
    ]


def test_offsets_cover_what_the_pieces_were_made_of(expected, tokenizer):
    text = 'Caf\u00e9\u0301s, THE\u4e2dx'
    parts = [text[start:end] for start, end in tokenizer.encode(text).offsets]
    assert ''.join(parts) == text.replace(' ', '')
    assert '\u00e9\u0301s' in ''.join(parts) and parts[-1] == 'x' and parts[-2] == '\u4e2d'
    for case in expected['cases']:
        encoding = tokenizer.encode(case['text'])
        assert encoding.tokens == case['tokens'] and len(encoding.offsets) == len(encoding)


def test_spacy_and_ftfy_are_taken_where_they_are(folder, monkeypatch):
    split = re.compile(r'\S+|\s+').findall
    tokenizer = with_spacy(monkeypatch, folder, split)
    # the original's odd cases: a line break with a space is its token, spaces are cut at
    tokens = tokenizer.tokenize('THE\u2019 \n a')
    assert tokens[0] == 'the' and "'</w>" in tokens
    breaks = with_spacy(monkeypatch, folder, lambda text: ['A', '\n ', 'b'])
    assert breaks.tokenize('A \n b') == ['a</w>', '\n</w>', 'b</w>']
    with refuses(says='words'):
        assert tokenizer.encode('a').offsets
    tokenizer.set_special_tokens(['_x_'])
    assert tokenizer.tokenize('THE\u2019 \n a') == tokens


def test_text_is_standardized_as_the_original_does():
    text = 'a\u2014b\u2026 ((x)) "" \u00b4q\u00b4 \t\n\n c  __d[]'
    assert text_standardize(text) == 'a - b... (( x )) "" \'q\' \n c __ d [ ]'
    text = ' ' * 2**18  # in quadratic time this would be minutes
    assert text_standardize(f'{text}a{text}b{text}\n{text}c') == 'a b \n c'


# files


def test_saved_files_give_the_same_tokenizer(expected, tokenizer, tmp_path):
    tokenizer.set_special_tokens(expected['special'])
    tokenizer.max_len = 7
    paths = tokenizer.save_pretrained(tmp_path / 'new')
    names = ['vocab.json', 'merges.txt', 'special_tokens.txt']
    names += ['added_tokens.json', 'tokenizer_config.json']
    assert [path.rsplit('/', 1)[1] for path in paths] == names
    again = OpenAIGPTTokenizer.from_pretrained(tmp_path / 'new')
    assert again.encoder == tokenizer.encoder and again.bpe_ranks == tokenizer.bpe_ranks
    assert again.special_tokens == tokenizer.special_tokens and again.max_len == 7
    by_file = OpenAIGPTTokenizer.from_pretrained(paths[0], special_tokens=None, max_len=9)
    assert not by_file.special_tokens and by_file.max_len == 9
    assert tokenizer.save_vocabulary(tmp_path / 'new') == paths[:3]
    direct = OpenAIGPTTokenizer(*paths[:2], special_tokens=expected['special'])
    assert direct.encode('the end') == tokenizer.encode('the end')


# bad input


def test_unknown_tokens_have_the_originals_id(expected, tokenizer):
    unknown = expected['vocab'].index('<unk>')
    assert tokenizer.convert_tokens_to_ids(['\u4e2d</w>', 'no such']) == [unknown] * 2
    assert tokenizer.convert_ids_to_tokens(3) == expected['vocab'][3]
    assert tokenizer.convert_ids_to_tokens(np.array([3, 4])) == expected['vocab'][3:5]


@pytest.mark.parametrize('special', [['a', 'a'], ['x\ny'], [''], [3], 'abc', ['the</w>']])
def test_bad_special_tokens(tokenizer, special):
    with refuses(says='special'):
        tokenizer.set_special_tokens(special)


@pytest.mark.data
def test_the_released_vocabulary(data_dir):
    tokenizer = OpenAIGPTTokenizer.from_pretrained(data_dir / 'vocab' / 'openai-gpt')
    assert len(tokenizer) == 40478 == len(tokenizer.vocab)
    text = 'Hello, world! This is a test.'
    assert tokenizer.decode(tokenizer.encode(text)) == text.lower()
