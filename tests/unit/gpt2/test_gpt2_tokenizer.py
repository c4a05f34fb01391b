"""GPT-2's tokenizer: the release's tokens and ids, every text comes back, offsets, files."""

import json

import pytest
import tiny
from refusals import refuses

from gpt2.tokenizer import GPT2Tokenizer

hypothesis = pytest.importorskip('hypothesis')


@pytest.fixture(scope='module')
def expected(fixtures):
    return json.loads((fixtures / 'lm_tokenizer_cases.json').read_text())['gpt2']


@pytest.fixture(scope='module')
def folder(expected, tmp_path_factory):
    """The release's own names of files."""
    folder = tmp_path_factory.mktemp('gpt2')
    vocab, merges = tiny.write_pairs(folder, expected['vocab'], expected['merges'])
    vocab.rename(folder / 'encoder.json')
    merges.rename(folder / 'vocab.bpe')
    return folder


@pytest.fixture(scope='module')
def tokenizer(folder):
    return GPT2Tokenizer.from_pretrained(folder)


def test_tokens_and_ids_are_the_releases(expected, tokenizer):
    for case in expected['cases']:
        assert tokenizer.tokenize(case['text']) == case['tokens']
        assert tokenizer.encode(case['text']) == case['ids']
        assert tokenizer.convert_tokens_to_ids(case['tokens']) == case['ids']
        assert [tokenizer.decode(case['ids'])] == case['decoded']


@hypothesis.settings(max_examples=300, deadline=None, database=None)
@hypothesis.given(text=hypothesis.strategies.text())
def test_any_text_comes_back(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    batch = tokenizer.encode_batch([text, text * 2])
    assert tokenizer.decode(batch['input_ids'][0, : batch['valid_length'][0]]) == text
    assert ids.tokens == tokenizer.convert_ids_to_tokens(ids)
    last = 0
    for piece, (start, end) in zip(ids.tokens, ids.offsets):
        assert start <= last <= end and start < end
        if len(piece) == len(text[start:end].encode()):  # no character is shared with another one
            assert tokenizer.decode(tokenizer.convert_tokens_to_ids([piece])) == text[start:end]
        last = end
    assert last == len(text)


def test_lone_surrogates_are_replaced(tokenizer):
    assert tokenizer.decode(tokenizer.encode('a\ud800b\udfff')) == 'a\ufffdb\ufffd'


def test_parts_of_characters_are_decoded_by_rule(folder, tokenizer):
    ids = tokenizer.encode('\U0001f600')
    assert len(ids) > 1 and tokenizer.decode(ids[:1]) == '\ufffd'
    assert GPT2Tokenizer.from_pretrained(folder, errors='ignore').decode(ids[:1]) == ''


def test_end_of_text_is_a_token_and_not_in_texts(expected, tokenizer):
    end = len(expected['vocab']) - 1
    assert tokenizer.convert_tokens_to_ids('<|endoftext|>') == end
    assert end not in tokenizer.encode('<|endoftext|>')
    assert tokenizer.decode([end]) == '<|endoftext|>'


def test_special_tokens(expected, folder):
    special = [*expected['special'], '\u00e9\u00e9']
    tokenizer = GPT2Tokenizer.from_pretrained(folder, special_tokens=special)
    start = len(expected['vocab'])
    ids = tokenizer.convert_tokens_to_ids([*expected['special'], 'a'])
    assert ids[:3] == expected['special_ids'][:3] == [start, start + 1, start + 2]
    ids = [start, *tokenizer.encode(' \u00e9'), start + 3]
    assert tokenizer.decode(ids) == '_start_ \u00e9\u00e9\u00e9'
    assert tokenizer.decode([start, start + 3], skip_special_tokens=True) == ''
    for case in expected['special_cases']:
        assert tokenizer.encode(case['text']) == case['ids']


def test_unknown_tokens_are_named(tokenizer):
    with refuses(says='no such'):
        tokenizer.convert_tokens_to_ids(['a', 'no such'])


@pytest.mark.data
def test_real_texts_come_back(data_dir):
    tokenizer = GPT2Tokenizer.from_pretrained(data_dir / 'vocab' / 'gpt2')
    assert len(tokenizer) == 50257 == len(tokenizer.vocab)
    assert tokenizer.encode('Hello world') == [15496, 995]
    for path in sorted(data_dir.rglob('*.t*')):
        text = path.read_bytes().decode('utf-8')[:4000]
        assert tokenizer.decode(tokenizer.encode(text)) == text
