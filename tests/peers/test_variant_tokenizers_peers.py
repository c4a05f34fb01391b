"""Tokenizers of RoBERTa and XLM-R against transformers', on odd and real texts."""

import json
import pathlib

import numpy as np
import pytest

import bert
from model_zoo.opening import open_tokenizer

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
tokenizers = pytest.importorskip('tokenizers')
pytestmark = pytest.mark.peers

ODD = [
    '',
    ' ',
    'a',
    ' a',
    '  two  spaces ',
    'line\nbreak\ttab',
    "it's they're I'LL",
    '<mask>',
    'The <mask> sat.',
    'a <mask>b',
    '<s> in </s> text <unk><pad>',
    'na\u00efve caf\u00e9 \u4e2d\u6587 \U0001f600',
    '\u00a0\u3000 wide',
    'x' * 200,
    '\ufeffmark',
    '1,234.5%',
]


@pytest.fixture(scope='module')
def real_texts(data_dir):
    files = sorted(pathlib.Path(data_dir, 'text').iterdir())
    lines = [line for file in files for line in file.read_text('utf-8').splitlines()]
    chinese = pathlib.Path(data_dir, 'xnli')
    for file in sorted(chinese.rglob('*.tsv'))[:1]:
        lines += file.read_text('utf-8').splitlines()[:300]
    return [line for line in lines if line.strip()][:1000]


@pytest.fixture(scope='module')
def roberta_folder(data_dir, tmp_path_factory):
    """RoBERTa's files: GPT-2's byte pairs, with RoBERTa's special tokens around them."""
    folder = tmp_path_factory.mktemp('roberta')
    source = pathlib.Path(data_dir, 'vocab', 'gpt2')
    tokens = list(json.loads((source / 'encoder.json').read_text('utf-8')))
    tokens.remove('<|endoftext|>')
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *tokens, '<mask>']
    ids = {token: number for number, token in enumerate(tokens)}
    (folder / 'vocab.json').write_text(json.dumps(ids), 'utf-8')
    merges = (source / 'vocab.bpe').read_text('utf-8')
    (folder / 'merges.txt').write_text(merges, 'utf-8')
    return folder


def assert_same_ids(ours, theirs, texts):
    for text in texts:
        assert ours.encode(text) == theirs(text)['input_ids'], text
    texts = [text for text in texts if ours.tokenize(text)]  # an empty second text is left out
    pairs = list(reversed(texts))
    batch = ours.encode_batch(texts, pairs)
    expected = theirs(texts, pairs, padding=True)
    assert batch.input_ids.tolist() == expected['input_ids']
    lengths = np.sum(expected['attention_mask'], axis=1)
    assert batch.valid_length.tolist() == lengths.tolist() and not batch.token_types.any()
    for text in texts[:100]:
        cut = theirs(text, truncation=True, max_length=12)['input_ids']
        assert ours.encode(text, max_length=12) == cut


def test_roberta_tokenizer(roberta_folder, real_texts):
    ours = bert.RobertaTokenizer.from_pretrained(str(roberta_folder))
    # the released model's mask takes the space before it, which version 5 has to be told
    mask = tokenizers.AddedToken('<mask>', lstrip=True)
    theirs = transformers.RobertaTokenizer.from_pretrained(roberta_folder, mask_token=mask)
    assert_same_ids(ours, theirs, [*ODD, *real_texts])
    assert len(ours) == len(theirs) and ours.mask_token_id == theirs.mask_token_id
    for text in real_texts[:50]:
        assert ours.decode(ours.encode(text), skip_special_tokens=True) == text


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


#: scripts of the world, and what a normalizer may trip over
HOSTILE = [
    '\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e',
    '\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645',
    '\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd',
    '\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!',
    '\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01',
    '\u3053\u3093\u306b\u3061\u306f\u4e16\u754c',
    '\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4',
    '\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5\u03c2',
    '\uff21\uff22\uff23 \uff11\uff12\uff13',
    '\xbd \xb2 \u2167 \ufb01 \u2122',
    'a\u0301e\u0308',
    'zero\u200bwidth\u200d joiner',
    '\u202eright to left\u202c',
    '\x00\x01 controls \x1f',
    '\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea',
    '\u2581under\u2581bar',
    ' \u2003\u2009 spaces\xa0',
    'tabs\t\tand\r\nlines\n',
    '<mask><mask> <s></s>',
    '<pad> a <unk> b',
]


def test_xlmr_tokenizer_json(spm, real_texts, tmp_path):
    """What is saved is transformers' own conversion, and is opened where there is nothing else."""
    ours = bert.XLMRobertaTokenizer.from_pretrained(str(spm / 'sentencepiece.bpe.model'))
    ours.to_library().save(str(tmp_path / 'tokenizer.json'))
    (tmp_path / 'config.json').write_text('{"model_type": "xlm-roberta"}')
    written = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / 'tokenizer.json'))
    theirs = transformers.XLMRobertaTokenizer.from_pretrained(spm)
    opened = open_tokenizer(str(tmp_path))
    texts = [*ODD, *HOSTILE, *real_texts]
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
