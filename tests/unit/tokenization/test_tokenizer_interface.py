"""What the tokenizers of all families have in common."""

import json

import mxnet as mx
import numpy as np
import pytest
from tiny import write_pairs

from bert.tokenizer import BertTokenizer
from gpt.tokenizer import OpenAIGPTTokenizer
from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.errors import InputError, PretrainedNotFoundError, UnknownNameError
from model_zoo.tokenization import BatchEncoding, Encoding, Tokenizer
from model_zoo.tokenization.vocab import load_vocab
from transfo_xl.tokenizer import TransfoXLTokenizer

TEXT = ' The caf\u00e9\u0301s,  \u4e2d\u6587 and\ud800 3 d\u0130gs\n'


@pytest.fixture(scope='module')
def made(fixtures, tmp_path_factory):
    """A tokenizer of each family, over the fixtures' vocabularies."""
    made = {}
    cases = json.loads((fixtures / 'lm_tokenizer_cases.json').read_text())
    for name, cls in (('gpt', OpenAIGPTTokenizer), ('gpt2', GPT2Tokenizer)):
        folder = tmp_path_factory.mktemp(name)
        write_pairs(folder, cases[name]['vocab'], cases[name]['merges'])
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(__import__('sys').modules, 'ftfy', None)  # the basic tokenizer splits
            made[name] = cls.from_pretrained(folder)
    vocab = json.loads((fixtures / 'tokenizer_cases.json').read_text())['vocab']
    made['bert'] = BertTokenizer(load_vocab(vocab))
    words = TransfoXLTokenizer(special=['<unk>', '<eos>'], lower_case=True)
    words.count_sents([words.tokenize(TEXT)])
    words.build_vocab()
    made['transfo_xl'] = words
    return made


@pytest.fixture(params=['bert', 'gpt', 'gpt2', 'transfo_xl'])
def tokenizer(made, request):
    assert isinstance(made[request.param], Tokenizer)
    return made[request.param]


def test_an_encoding_is_the_list_of_its_ids(tokenizer):
    encoding = tokenizer.encode(TEXT)
    assert isinstance(encoding, Encoding) and isinstance(encoding, list)
    assert encoding == encoding.input_ids.tolist() == list(encoding)
    assert tokenizer.convert_tokens_to_ids(encoding['tokens']) == encoding
    assert encoding['tokens'] == encoding.tokens
    assert encoding.input_ids.dtype == encoding.token_types.dtype == np.int32
    assert encoding.valid_length == len(encoding) == len(encoding.offsets) == len(encoding.word_ids)
    assert not encoding.token_types.any() and encoding.truncated == 0
    assert tokenizer.tokenize(TEXT) == tokenizer.encode(TEXT, add_special_tokens=False).tokens


def test_pairs_and_cutting(tokenizer):
    whole = tokenizer.encode('the cafe', 'and 3')
    parts = [tokenizer.encode(text, add_special_tokens=False) for text in ('the cafe', 'and 3')]
    bare = tokenizer.encode('the cafe', 'and 3', add_special_tokens=False)
    assert bare == parts[0] + parts[1]
    assert bare.words == parts[0].words + parts[1].words
    assert bare.word_ids[-1] == len(bare.words) - 1
    for length in range(len(whole) - len(bare), len(whole)):
        cut = tokenizer.encode('the cafe', 'and 3', max_length=length)
        assert len(cut) <= length
        kept = sum(span != (0, 0) for span in cut.offsets)
        assert cut.truncated == len(bare) - kept


def test_what_tasks_and_pipelines_encode_by(tokenizer):
    pairs = [(TEXT, None), ('the', ''), ('the cafe', 'and 3'), ('', None), ('the', TEXT)]
    for encoding, pair in zip(tokenizer.encode_pairs(pairs, 7), pairs):
        wanted = tokenizer.encode(*pair, max_length=7)
        assert (encoding, encoding.tokens) == (wanted, wanted.tokens)
        np.testing.assert_array_equal(encoding.token_types, wanted.token_types)
    assert list(tokenizer.encode_pairs([])) == []
    for pair in (('the cafe',), ('the cafe', 'and 3')):
        bare = [tokenizer.encode(text, add_special_tokens=False) for text in pair]
        ids, types, start = tokenizer.with_special_tokens(*bare)
        wanted = tokenizer.encode(*pair)
        assert ids.tolist() == wanted and ids[start : start + len(bare[-1])].tolist() == bare[-1]
        assert types.tolist() == wanted.token_types.tolist()


def test_batches(tokenizer):
    texts = [TEXT, '', 'the']
    batch = tokenizer.encode_batch(texts, round_to=4)
    assert isinstance(batch, BatchEncoding) and len(batch) == 3
    assert batch.input_ids.shape == batch.token_types.shape
    assert batch.input_ids.shape[1] % 4 == 0
    pad = tokenizer.pad_token_id or 0
    for text, row, ids, length in zip(texts, batch, batch['input_ids'], batch.valid_length):
        assert row == tokenizer.encode(text) == ids[:length].tolist()
        assert (ids[length:] == pad).all()
    assert batch.tokens == [row.tokens for row in batch]


@pytest.mark.parametrize('texts', [['the', 'cafe and 3', ''], ['the cafe', 'the cafe']])
def test_rows_without_padding_are_a_list(tokenizer, texts):
    """Even if their lengths are equal; only such rows are a batch for a block."""
    batch = tokenizer.encode_batch(texts, pad=False)
    for rows in (batch.input_ids, batch.token_types):
        assert isinstance(rows, list) and [len(row) for row in rows] == list(map(len, batch))
    assert [ids.tolist() for ids in batch.input_ids] == [tokenizer.encode(text) for text in texts]
    if len({*texts}) == 1:
        words = tokenizer(texts, padding=False).words
        assert words.asnumpy().tolist() == [ids.tolist() for ids in batch.input_ids]


def test_repr_names_kind_and_size(tokenizer):
    assert repr(tokenizer).startswith(f'{type(tokenizer).__name__}({len(tokenizer)} tokens')


def test_special_tokens_have_ids(made):
    none = dict.fromkeys(['unk', 'pad', 'mask', 'cls', 'sep', 'bos', 'eos'])
    found = {
        name: {role: getattr(tokenizer, f'{role}_token') for role in none}
        for name, tokenizer in made.items()
    }
    of_bert = {role: f'[{role.upper()}]' for role in ('unk', 'pad', 'mask', 'cls', 'sep')}
    assert found['bert'] == {**none, **of_bert}
    assert found['gpt'] == {**none, 'unk': '<unk>'}
    assert found['gpt2'] == {**none, 'bos': '<|endoftext|>', 'eos': '<|endoftext|>'}
    assert found['transfo_xl'] == {**none, 'unk': '<unk>', 'eos': '<eos>'}
    for tokenizer in made.values():
        for role in none:
            token = getattr(tokenizer, f'{role}_token')
            want = None if token is None else tokenizer.vocab[token]
            assert getattr(tokenizer, f'{role}_token_id') == want


def test_special_tokens_change_with_the_vocabulary(made):
    words = TransfoXLTokenizer()
    words.add_symbol('a')
    assert words.eos_token is None
    words.add_special('<eos>')
    assert words.eos_token_id == 1
    gpt2 = made['gpt2']
    gpt2.set_special_tokens(['<pad>'])
    try:
        assert gpt2.pad_token_id == len(gpt2) - 1
        ids = gpt2.encode_batch(['a', '']).input_ids
        assert ids.tolist() == [[gpt2.encoder['a']], [len(gpt2) - 1]]
    finally:
        gpt2.set_special_tokens(None)
    assert gpt2.pad_token is None


def test_decode(made):
    texts = {'bert': 'the fox, jumps', 'gpt': 'the fox, the', 'gpt2': ' The  caf\u00e9'}
    for name, text in {**texts, 'transfo_xl': '3 the'}.items():
        tokenizer = made[name]
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
        assert tokenizer.decode(mx.nd.array(ids)) == tokenizer.decode(ids)
    assert made['bert'].decode(made['bert'].encode('the')) == '[CLS] the [SEP]'


def test_bad_ids(tokenizer):
    for ids in ([len(tokenizer)], [-1]):
        with pytest.raises(InputError):
            tokenizer.decode(ids)
    for odd in (0.5, 'a', None):
        with pytest.raises(InputError):
            tokenizer.convert_ids_to_tokens([odd])


def test_a_folder_that_is_called_as_a_model_is(made, tmp_path, monkeypatch):
    """As this project's own gpt2/ is for who works in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('MXNET_GLUON_REPO', 'http://127.0.0.1:9/')
    (tmp_path / 'gpt2').mkdir()
    with pytest.raises(PretrainedNotFoundError):
        GPT2Tokenizer.from_pretrained('gpt2', root=str(tmp_path / 'cache'))
    made['gpt2'].save_pretrained('gpt2')
    assert GPT2Tokenizer.from_pretrained('gpt2').tokenize(TEXT) == made['gpt2'].tokenize(TEXT)


def test_called_as_in_transformers_it_gives_a_batch_for_a_block(tokenizer):
    texts = ['the cafe', 'the 3 cafe and 3']
    batch = tokenizer(texts, padding=True, truncation=True, max_length=4)
    same = tokenizer.encode_batch(texts, max_length=4)
    np.testing.assert_array_equal(batch.words.asnumpy(), same.input_ids)
    np.testing.assert_array_equal(batch['valid_length'].asnumpy(), same.valid_length)
    takes_types = tokenizer.pair_type > 0
    names = {'words', 'valid_length', *(['token_types'] if takes_types else [])}
    assert {*dict(batch)} == names and batch.words.dtype == np.int32
    assert tokenizer('the cafe', padding='max_length', max_length=9).words.shape == (1, 9)
    uncut = tokenizer(texts, truncation=False, max_length=2).words.shape
    assert uncut == tokenizer.encode_batch(texts).input_ids.shape
    assert tokenizer('the cafe') == tokenizer.tokenize('the cafe')
    paired = tokenizer('the cafe', 'and 3')
    assert paired.words.asnumpy().tolist() == [tokenizer.encode('the cafe', 'and 3')]


REFUSED = [{'padding': each} for each in ('left', 'max_length', False)]
REFUSED += [{'truncation': 'only_first'}]


@pytest.mark.parametrize('options', REFUSED)
def test_what_a_call_refuses(tokenizer, options):
    with pytest.raises((InputError, UnknownNameError)):
        tokenizer(['the cafe', 'the 3 cafe and 3'], **options)
    with pytest.raises((InputError, UnknownNameError)):
        tokenizer([])
