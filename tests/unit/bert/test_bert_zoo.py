"""BERT in the zoo: names, overrides, weights by path, cache and package, and their vocabularies."""

import functools
import logging

import mxnet as mx
import pytest
import tiny
from arrays import assert_same

import bert
import model_zoo
from model_zoo.errors import CheckpointError
from model_zoo.tokenization.vocab import load_vocab

pytestmark = pytest.mark.usefixtures('no_network')

WORDS = ['the', 'cat', 'sat', '##s', '.']
TOKENS = [*tiny.SPECIAL, *WORDS]
SMALL = {'num_layers': 2, 'units': 16, 'hidden_size': 32, 'num_heads': 4, 'max_length': 20}
SMALL['hparam_allow_override'] = True
CONFIG = dict(tiny.BERT, vocab_size=len(TOKENS), num_attention_heads=4, max_position_embeddings=20)
get_base = functools.partial(model_zoo.get_model, 'bert_12_768_12')
ALL_PARTS = {'use_decoder': True, 'use_classifier': True}


@pytest.fixture
def vocab():
    return load_vocab(TOKENS)


@pytest.fixture
def inputs():
    return mx.nd.array([[2, 5, 6, 3], [2, 7, 3, 0]]), None, mx.nd.array([4, 3])


def make(name='BertModel', **options):
    return tiny.initialized(getattr(bert, name)(bert.BertConfig(**CONFIG), **options))


def save(block, folder):
    """The block's files as its save_pretrained and a tokenizer's write them."""
    block.save_pretrained(str(folder))
    tiny.write_words(folder, WORDS)
    return str(folder)


def cached(root, block):
    save(block, root / 'bert_12_768_12_book_corpus_wiki_en_uncased')


# -- names and overrides ------------------------------------------------------------------------


# -- weights ------------------------------------------------------------------------------------


def test_parts_of_weights(tmp_path, inputs):
    saved = make(**ALL_PARTS)
    cached(tmp_path / 'home' / 'models', saved)
    assert_same(get_base()[0](*inputs), saved(*inputs), 1e-6)
    assert_same(bert.BertModel.from_pretrained('bert-base-uncased')(*inputs), saved(*inputs)[:2], 0)
    block, _ = get_base(use_decoder=False, use_classifier=False)
    assert_same(block(*inputs), saved(*inputs)[:2], 1e-6)
    block, _ = get_base(use_decoder=False, use_pooler=False)
    assert_same(block(*inputs), saved(*inputs)[0], 1e-6)


@pytest.mark.parametrize('form', ['native', 'gluonnlp'])
def test_path_of_weights_that_lack_parts(tmp_path, inputs, form):
    saved = make()
    folder = save(saved, tmp_path)
    saved.save_parameters(str(tmp_path / 'model.params'), format=form)
    block, _ = get_base(pretrained=folder)
    assert not block.has_decoder and not block.has_classifier
    assert_same(block(*inputs), saved(*inputs), 1e-6)
    with pytest.raises(CheckpointError):
        get_base(pretrained=folder, use_decoder=True)
    block, _ = get_base(pretrained=folder, use_decoder=True, pretrained_allow_missing=True)
    assert block(*inputs)[2].shape == (2, 4, 10)
    with pytest.raises(CheckpointError):
        make(use_pooler=False).save_parameters(str(tmp_path / 'model.params'), format=form)
        get_base(pretrained=folder)


def test_weights_with_more_layers_are_not_cut_silently(tmp_path, vocab, caplog):
    path = str(tmp_path / 'lone.params')
    make(**ALL_PARTS).save_parameters(path)
    one_layer = {**SMALL, 'num_layers': 1}
    with caplog.at_level(logging.WARNING):
        get_base(pretrained=path, vocab=vocab, **one_layer)
    assert 'lone.params: left out: encoder.layers.1.' in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):  # but parts that weren't asked for are passed over
        get_base(pretrained=path, vocab=vocab, **SMALL, use_pooler=False, use_decoder=False)
    assert caplog.text == ''


# -- from_pretrained and save_pretrained ---------------------------------------------------------


def test_head_on_weights_without_one(tmp_path, inputs, caplog):
    saved = make()
    folder = save(saved, tmp_path)
    with caplog.at_level(logging.WARNING):
        head = bert.BertForSequenceClassification.from_pretrained(folder, num_labels=5, dropout=0)
    assert 'classifier.weight, classifier.bias' in caplog.text
    assert head(*inputs).shape == (2, 5) and head.config.num_labels == 5
    assert_same(head.bert(*inputs), saved(*inputs), 1e-6)
    weight = head.classifier.weight.data().asnumpy()
    assert 0.005 < weight.std() < 0.05 and not head.classifier.bias.data().asnumpy().any()
