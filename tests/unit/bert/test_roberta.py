"""RoBERTa beside GluonNLP's, its tokenizer, and where its names lead."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from gluonnlp_models import SIZES

import bert
import model_zoo
from model_zoo.errors import CheckpointError, InputError
from model_zoo.opening import open_model

CONFIG = {**SIZES, 'vocab_size': 40, 'max_position_embeddings': 22}
TOKENS = ['<s>', '<pad>', '</s>', '<unk>', *'abc<>!', '\u0120', '\u0120a', 'ab', '<mask>']


@pytest.fixture
def folder(tmp_path):
    """A folder of a small RoBERTa with all its files."""
    tiny.write_pairs(tmp_path, TOKENS, ['\u0120 a', 'a b'])
    block = bert.RobertaModel(bert.RobertaConfig(**CONFIG), use_decoder=True)
    tiny.initialized(block, 0.3)
    block.save_pretrained(str(tmp_path), bert.RobertaTokenizer.from_pretrained(str(tmp_path)))
    return str(tmp_path)


def test_folder(folder):
    opened = open_model(folder)
    assert type(opened.block) is bert.RobertaModel and opened.block.has_decoder
    assert opened.tokenizer.encode('ab').tokens == ['<s>', 'ab', '</s>']
    _, vocab = model_zoo.get_model('roberta_12_768_12', pretrained=folder)
    assert vocab.idx_to_token == TOKENS
    assert (vocab.mask_token, vocab.padding_token) == ('<mask>', '<pad>')
    assert (vocab.bos_token, vocab.eos_token) == ('<s>', '</s>')
    with pytest.raises((CheckpointError, InputError)):
        bert.BertForMaskedLM.from_pretrained(folder)


def test_tokenizer(folder):
    tokenizer = bert.RobertaTokenizer.from_pretrained(folder)
    encoding = tokenizer.encode('ab a <mask>', 'c!')
    tokens = ['<s>', 'ab', '\u0120a', '<mask>', '</s>', '</s>', 'c', '!', '</s>']
    assert encoding.tokens == tokens
    assert not any(encoding.token_types)
    none, places = (0, 0), [(0, 2), (3, 4), (5, 11)]
    assert encoding.offsets == [none, *places, none, none, (0, 1), (1, 2), none]
    assert tokenizer.decode(encoding, skip_special_tokens=True) == 'ab ac!'
    # a mask takes the white space before it; looking for that must not take quadratic time: here
    # it would be minutes
    spaced = tokenizer.encode(' ' * 2**18 + 'a  <mask><mask>b <mask>', add_special_tokens=False)
    places = [(start - 2**18, end - 2**18) for start, end in spaced.offsets[-4:]]
    assert places == [(3, 9), (9, 15), (15, 16), (17, 23)]
    assert tokenizer.join(['\u0120a', 'b']) == 'ab'
    assert not tokenizer.is_first_subword('ab') and tokenizer.is_first_subword('\u0120a')
    ids, types, start = tokenizer.with_special_tokens([8], [9])
    assert ids.tolist() == [0, 8, 2, 2, 9, 2] and not types.any() and start == 4


def test_masks_count_positions_over_words():
    """Left padding gives what right padding gives."""
    block = bert.RobertaModel(bert.RobertaConfig(**CONFIG), use_pooler=False)
    tiny.initialized(block, 0.3)
    words = mx.nd.array([[5, 6, 7, 1, 1]])
    left = mx.nd.array([[1, 1, 5, 6, 7]])
    expected = block(words, mx.nd.array([3]))[:, :3].asnumpy()
    for each in (False, True):
        block.hybridize(each)
        result = block(input_ids=left, attention_mask=left != 1)[:, 2:].asnumpy()
        np.testing.assert_allclose(result, expected, atol=1e-5)
