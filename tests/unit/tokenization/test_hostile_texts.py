"""Texts that programs have trouble with, through every tokenizer."""

import pickle

import hypothesis
import pytest
import tiny
import tiny_models
import toy_data
import variant_models
from hostile import quick, texts
from hypothesis import strategies as st

import bert
import gpt
import gpt2
import transfo_xl
from bert.tokenization import BasicTokenizer, WordpieceTokenizer
from model_zoo.tokenization import FileTokenizer


def make_bert(folder, **options):
    return bert.BertTokenizer(str(tiny.write_words(folder, tiny_models.WORDS)), **options)


def make_gpt(folder):
    toy_data.write_texts(folder)
    return gpt.OpenAIGPTTokenizer(str(folder / 'vocab.json'), str(folder / 'merges.txt'))


def make_gpt2(folder):
    return gpt2.GPT2Tokenizer.from_pretrained(tiny_models.save_gpt2(folder))


def make_words(folder):
    words = sorted(set(tiny_models.WORDS))
    (folder / 'words.txt').write_text('\n'.join(['<eos>', '<unk>', *words]) + '\n')
    return transfo_xl.TransfoXLTokenizer.from_pretrained(folder / 'words.txt')


@pytest.fixture(scope='module')
def tokenizers(fixtures, tmp_path_factory):
    folder = tmp_path_factory.mktemp
    return {
        'BERT': make_bert(folder('bert')),
        'BERT, cased': make_bert(folder('cased'), do_lower_case=False),
        'RoBERTa': variant_models.MAKERS['roberta'](folder('roberta'))[1],
        'XLM-R': variant_models.MAKERS['xlmr'](folder('xlmr'))[1],
        'MPNet': variant_models.MAKERS['mpnet'](folder('mpnet'))[1],
        'ALBERT': variant_models.MAKERS['albert'](folder('albert'))[1],
        'GPT': make_gpt(folder('gpt')),
        'GPT-2': make_gpt2(folder('gpt2')),
        'Transformer-XL': make_words(folder('words')),
        'file': FileTokenizer.from_pretrained(str(fixtures / 'sentence_transformers' / 'today')),
    }


NAMES = ['BERT', 'BERT, cased', 'RoBERTa', 'XLM-R', 'MPNet', 'ALBERT']
NAMES += ['GPT', 'GPT-2', 'Transformer-XL', 'file']


@pytest.mark.parametrize('name', NAMES)
@quick(15)
@hypothesis.given(text=texts, gap=st.sampled_from([' ', '\n', '\u3002', ' \t ', '\u2003']))
def test_only_the_beginning_of_a_long_text_is_read(tokenizers, name, text, gap):
    tokenizer, length = tokenizers[name], 12
    long = gap.join(['The cat', *[text[:100], 'sat, it is. '] * 60])
    for pair in ((long, None), (long, 'the cat'), ('the cat', long), (long, f'the {long}')):
        [row], whole = tokenizer.encode_pairs([pair], length), tokenizer.encode(*pair, length)
        assert row == whole and (row.truncated > 0) == (whole.truncated > 0)
        assert row.offsets == whole.offsets and row.word_ids[:6] == whole.word_ids[:6]


@pytest.mark.parametrize('name', NAMES)
@quick(50)
@hypothesis.given(text=texts)
def test_ids_and_tokens(tokenizers, name, text):
    tokenizer = tokenizers[name]
    encoded = tokenizer.encode_batch([text, 'the cat', text])
    rows = [
        list(map(int, row[:length]))
        for row, length in zip(encoded['input_ids'], encoded['valid_length'])
    ]
    assert rows[0] == rows[2]
    assert all(0 <= each < len(tokenizer.vocab) for each in rows[0])
    tokens = tokenizer.convert_ids_to_tokens(rows[0])
    assert list(tokenizer.convert_tokens_to_ids(tokens)) == rows[0]
    tokenizer.decode(rows[0]).encode('utf-8')


@pytest.mark.parametrize('name', ['BERT', 'BERT, cased', 'GPT', 'GPT-2'])
@quick(100)
@hypothesis.given(text=texts)
def test_the_library_and_python_find_the_same(tokenizers, name, text):
    tokenizer = tokenizers[name]
    other = pickle.loads(pickle.dumps(tokenizer))  # all of whose words are found in Python
    splitter = other.basic_tokenizer if 'BERT' in name else other.splitter
    splitter.suits_rust = lambda text: False
    # the last are newer than the tables of the library: letters, a number
    for each in (text, f"{text} it's\n 3", f'{text}\U0001e4d0 a\U0002ebf0\U00010d40'):
        fast, slow = tokenizer.encode(each), other.encode(each)
        for field in ('input_ids', 'tokens', 'offsets', 'words', 'word_ids'):
            assert list(fast[field]) == list(slow[field])


@pytest.mark.parametrize('name, lower', [('BERT', True), ('BERT, cased', False)])
@quick(60)
@hypothesis.given(text=texts)
def test_word_pieces_are_those_of_the_original_in_python(tokenizers, name, lower, text):
    tokenizer = tokenizers[name]
    words = BasicTokenizer(lower).tokenize(text)
    pieces = WordpieceTokenizer(set(tokenizer.vocab.idx_to_token))
    assert tokenizer.tokenize(text) == [piece for word in words for piece in pieces.tokenize(word)]
