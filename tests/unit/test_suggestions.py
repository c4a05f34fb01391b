"""A mistyped model, data set, task, flag, choice or keyword argument: the right one is named."""

import pytest

import model_zoo
from bert_embedding import BertEmbedding
from model_zoo.errors import PretrainedNotFoundError, ZooError
from model_zoo.zoo import get_model

CASES = [
    (lambda: get_model('bert_12_768_21'), 'bert_12_768_12'),
    (
        lambda: get_model('bert_12_768_12', dataset_name='book_corpus_wiki_en_uncase'),
        'book_corpus_wiki_en_uncased',
    ),
    (lambda: get_model('bert_12_768_12', pretrained=False, use_poler=True), 'use_pooler'),
    (lambda: model_zoo.open_model('bert-base-uncase'), 'bert-base-uncased'),
    (
        lambda: model_zoo.open_model('bert_12_768_12', dataset_name='wiki_cn', weights=False),
        'wiki_cn_cased',
    ),
    (lambda: model_zoo.pipeline('text-clasification', 'folder'), 'text-classification'),
    (lambda: BertEmbedding(model='bert_6_384_21'), 'bert_6_384_12'),
    (lambda: BertEmbedding(model='bert_6_384_12', dtype='float_32'), 'float32'),
]


@pytest.mark.parametrize(('call', 'meant'), CASES)
def test_names_and_keyword_arguments(call, meant):
    with pytest.raises((ZooError, TypeError)) as caught:
        call()
    assert f'did you mean {meant}?' in str(caught.value)


@pytest.mark.parametrize(
    ('name', 'files'),
    [
        ('gpt2', 'vocab.json and merges.txt'),
        ('openai-gpt', 'vocab.json and merges.txt'),
        ('transfo-xl-wt103', 'vocab.bin'),
        ('roberta-base', 'vocab.json and merges.txt'),
        ('xlm-roberta-base', 'sentencepiece.bpe.model'),
        ('bert-base-uncased', 'vocab.txt'),
    ],
)
def test_weights_that_are_missing_are_asked_for_with_their_vocabulary(
    name, files, tmp_path, monkeypatch
):
    monkeypatch.setenv('HF_HUB_OFFLINE', '1')
    monkeypatch.setenv('MXNET_GLUON_REPO', 'http://127.0.0.1:9')
    with pytest.raises(PretrainedNotFoundError) as caught:
        model_zoo.open_model(name, root=str(tmp_path))
    assert files in str(caught.value)
