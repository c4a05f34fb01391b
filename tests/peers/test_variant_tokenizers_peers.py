"""Tokenizers of the models like BERT against transformers', on odd and real texts."""

import pathlib
import unicodedata

import numpy as np
import pytest
from json_files import cases
from tiny import learn_pieces
from variant_models import ALBERT, DEBERTA

import bert
from bert.sentence_pieces import open_model
from model_zoo.opening import open_tokenizer

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
tokenizers = pytest.importorskip('tokenizers')
pytestmark = pytest.mark.peers

ODD = cases('odd_texts')['variants']


@pytest.fixture(scope='module')
def real_texts(data_dir):
    files = sorted(pathlib.Path(data_dir, 'text').iterdir())
    lines = [line for file in files for line in file.read_text('utf-8').splitlines()]
    chinese = pathlib.Path(data_dir, 'xnli')
    for file in sorted(chinese.rglob('*.tsv'))[:1]:
        lines += file.read_text('utf-8').splitlines()[:300]
    return [line for line in lines if line.strip()][:1000]


def assert_same_ids(ours, theirs, texts):
    for text in texts:
        assert ours.encode(text) == theirs(text)['input_ids'], text
    texts = [text for text in texts if ours.tokenize(text)]  # an empty second text is left out
    pairs = list(reversed(texts))
    batch = ours.encode_batch(texts, pairs)
    expected = theirs(texts, pairs, padding=True, return_token_type_ids=True)
    assert batch.input_ids.tolist() == expected['input_ids']
    lengths = np.sum(expected['attention_mask'], axis=1)
    assert batch.valid_length.tolist() == lengths.tolist()
    types = np.array(expected['token_type_ids']) * (theirs.cls_token == '[CLS]')
    assert (batch.token_types == types).all() and batch.token_types.any() == types.any()
    for text in texts[:100]:
        cut = theirs(text, truncation=True, max_length=12)['input_ids']
        assert ours.encode(text, max_length=12) == cut


def test_mpnet_tokenizer(data_dir, real_texts, tmp_path):
    """MPNet's file: BERT's, with RoBERTa's special tokens around it."""
    words = pathlib.Path(data_dir, 'vocab', 'bert-uncased', 'vocab.txt').read_text('utf-8')
    words = f'<s>\n<pad>\n</s>\n<unk>\n{words.rstrip()}\n<mask>\n'
    (tmp_path / 'vocab.txt').write_text(words, 'utf-8')
    (tmp_path / 'config.json').write_text('{"model_type": "mpnet"}')
    texts = [*ODD, '[UNK] of [CLS]', *real_texts]
    for options in ({}, {'do_lower_case': False}):
        theirs = transformers.MPNetTokenizer.from_pretrained(tmp_path, **options)
        ours = bert.MPNetTokenizer.from_pretrained(str(tmp_path), **options)
        assert_same_ids(ours, theirs, texts)
    assert_saved(ours, theirs, texts[:200], tmp_path)


def assert_saved(ours, theirs, texts, folder):
    """What one has saved the other opens."""
    theirs.save_pretrained(folder / 'theirs')
    assert_same_ids(type(ours).from_pretrained(str(folder / 'theirs')), theirs, texts)
    ours.save_pretrained(str(folder / 'ours'))
    assert_same_ids(ours, transformers.AutoTokenizer.from_pretrained(folder / 'ours'), texts)


@pytest.mark.parametrize('options', [{}, {'do_lower_case': False}, {'keep_accents': True}])
def test_albert_tokenizer(real_texts, tmp_path, options):
    """A file with the pieces that the released one has by its user's wish."""
    special = {**ALBERT, 'user_defined_symbols': [*'()"-.', '\u2013', '\u20ac']}
    lines = [text.lower() for text in real_texts]
    learn_pieces(tmp_path / 'spiece.model', lines, 3000, hard_vocab_limit=False, **special)
    (tmp_path / 'config.json').write_text('{"model_type": "albert"}')
    texts = [*ODD, '[CLS] a [MASK]b [SEP]', "``quoted'' (5.1)", *real_texts]
    theirs = transformers.AlbertTokenizer.from_pretrained(tmp_path, **options)
    ours = bert.AlbertTokenizer.from_pretrained(str(tmp_path), **options)
    assert_same_ids(ours, theirs, texts)
    assert_saved(ours, theirs, texts[:200], tmp_path)


@pytest.fixture(scope='module')
def spm(data_dir, tmp_path_factory):
    """XLM-R's file: a real, small SentencePiece model."""
    folder = tmp_path_factory.mktemp('xlmr')
    (source,) = pathlib.Path(data_dir, 'vocab', 'sentencepiece').glob('*.model')
    (folder / 'sentencepiece.bpe.model').write_bytes(source.read_bytes())
    (folder / 'config.json').write_text('{"model_type": "xlm-roberta"}')
    return folder


def test_xlmr_tokenizer(spm, real_texts):
    ours = bert.XLMRobertaTokenizer.from_pretrained(str(spm / 'sentencepiece.bpe.model'))
    theirs = transformers.XLMRobertaTokenizer.from_pretrained(spm)
    assert_same_ids(ours, theirs, [*ODD, *real_texts])
    assert len(ours) == len(theirs) and ours.mask_token_id == theirs.mask_token_id
    assert len(ours.vocab) == ours.mask_token_id + 1
    for text in real_texts[:50]:
        assert ours.decode(ours.encode(text), skip_special_tokens=True) == theirs.decode(
            theirs(text)['input_ids'], skip_special_tokens=True
        )


def test_xlmr_tokenizer_json(spm, real_texts, tmp_path):
    """What is saved is transformers' own conversion, and is opened where there is nothing else."""
    ours = bert.XLMRobertaTokenizer.from_pretrained(str(spm / 'sentencepiece.bpe.model'))
    ours.to_library().save(str(tmp_path / 'tokenizer.json'))
    (tmp_path / 'config.json').write_text('{"model_type": "xlm-roberta"}')
    written = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / 'tokenizer.json'))
    theirs = transformers.XLMRobertaTokenizer.from_pretrained(spm)
    opened = open_tokenizer(str(tmp_path))
    texts = [*ODD, *real_texts]
    for text in texts:
        expected = theirs(text)['input_ids']
        assert written(text)['input_ids'] == expected, text
        assert opened.encode(text) == expected, text
    pairs = list(zip(texts, reversed(texts)))
    assert written(pairs)['input_ids'] == theirs(pairs)['input_ids']
    assert opened.mask_token == '<mask>' and opened.pad_token_id == 1
    for text in real_texts[:100]:
        ids = theirs(text)['input_ids']
        assert written.decode(ids) == theirs.decode(ids)


def test_deberta_tokenizer(data_dir, real_texts, tmp_path):
    """SentencePiece's own pieces; version 5 leaves out the model's normalization (NFKC)."""
    path = learn_pieces(tmp_path / 'spm.model', real_texts, 1500, hard_vocab_limit=False, **DEBERTA)
    (tmp_path / 'config.json').write_text('{"model_type": "deberta-v2"}')
    ours, processor = open_tokenizer(str(tmp_path)), open_model(path)
    assert type(ours) is bert.DebertaV2Tokenizer
    plain = [text for text in ODD if '<' not in text]
    for text in (*plain, *real_texts):
        assert ours.encode(text)[1:-1] == processor.EncodeAsIds(text), text
    theirs = transformers.DebertaV2Tokenizer.from_pretrained(tmp_path)
    texts = [text for text in real_texts if unicodedata.normalize('NFKC', text) == text]
    assert len(texts) > 100
    for text in ('', 'a [MASK]b', '[CLS] in [SEP] text', *texts):
        assert ours.encode(text) == theirs(text)['input_ids'], text
    batch, expected = (
        ours.encode_batch(texts, texts[::-1]),
        theirs(texts, texts[::-1], padding=True),
    )
    assert batch.input_ids.tolist() == expected['input_ids']
    assert batch.token_types.tolist() == expected['token_type_ids']
    ours.save_pretrained(tmp_path / 'saved')
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=f'{tmp_path}/saved/tokenizer.json')
    again = open_tokenizer(str(tmp_path / 'saved'), family='deberta')
    for text in (*ODD, *real_texts):
        assert ours.encode(text) == fast(text)['input_ids'] == again.encode(text)
    assert len(ours) == len(theirs) and ours.mask_token_id == theirs.mask_token_id
