"""A mistyped model, data set, task, flag, choice or keyword argument: the right one is named."""

import re

import pytest

import model_zoo
from bert_embedding import BertEmbedding
from model_zoo.errors import UnknownNameError, ZooError
from model_zoo.zoo import get_model

BERT, BOOKS = 'bert_12_768_12', 'book_corpus_wiki_en_uncased'
CASES = [
    (lambda: get_model('bert_12_768_21'), 'bert_12_768_12'),
    (lambda: get_model(BERT, dataset_name=BOOKS[:-1]), BOOKS),
    (lambda: get_model(BERT, pretrained=False, use_poler=True), 'use_pooler'),
    (lambda: model_zoo.open_model('bert-base-uncase'), 'bert-base-uncased'),
    (lambda: model_zoo.open_model(BERT, dataset_name='wiki_cn', weights=False), 'wiki_cn_cased'),
    (lambda: model_zoo.pipeline('text-clasification', 'folder'), 'text-classification'),
    (lambda: BertEmbedding(model='bert_6_384_21'), 'bert_6_384_12'),
    (lambda: BertEmbedding(model='bert_6_384_12', dtype='float_32'), 'float32'),
]


@pytest.mark.parametrize(('call', 'meant'), CASES)
def test_names_and_keyword_arguments(call, meant):
    with pytest.raises((ZooError, TypeError)) as caught:
        call()
    assert f'did you mean {meant}?' in str(caught.value)


def test_of_very_many_names_the_similar_ones_are_shown():
    with pytest.raises(UnknownNameError) as caught:
        model_zoo.open_model('bert-base-uncase')
    text = str(caught.value)
    assert 'known: bert-base-uncased, bert-base-cased, ' in text and 'gpt2' not in text
    assert re.search(r'; did you mean bert-base-uncased\? known: .* and \d\d+ more', text)
    assert len(text) < 600
