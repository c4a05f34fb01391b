"""DistilBERT beside GluonNLP's, and where its names lead."""

import gluonnlp as nlp
import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import text_inputs
from gluonnlp_models import assert_both_ways, encoder

import bert
import model_zoo
from model_zoo.errors import InputError, ZooError

CONFIG = {
    'vocab_size': 40, 'dim': 16, 'n_layers': 2, 'n_heads': 4, 'hidden_dim': 512,
    'max_position_embeddings': 20,
}  # fmt: skip


def test_gluonnlp_model_both_ways(tmp_path):
    def theirs():
        network = encoder(layer_norm_eps=1e-5)
        return nlp.model.DistilBERTModel(network, vocab_size=40, units=16, embed_size=16)

    ours = bert.DistilBertModel(bert.DistilBertConfig(**CONFIG, layer_norm_eps=1e-5))
    words, _, valid, _ = text_inputs(dtype='float32')
    assert_both_ways(tmp_path, theirs, lambda: ours, [words, valid])
    with pytest.raises(InputError, match='layer_norm_eps is 1e-05'):  # theirs is always 1e-12
        ours.save_pretrained(str(tmp_path / 'folder'), format='huggingface')


def test_get_model():
    vocab = nlp.Vocab(nlp.data.count_tokens(map(str, range(30))))
    model, same = nlp.model.get_model('distilbert_6_768_12', vocab=vocab, pretrained=False)
    assert same is vocab and type(model) is bert.DistilBertModel
    assert (model.config.num_layers, model.context_length) == (6, 512)
    model.initialize()
    words, valid = mx.nd.array([[4, 5, 6]]), mx.nd.array([2])
    assert model(words, valid).shape == (1, 3, 768)  # GluonNLP's has no decoder
    model, _ = model_zoo.get_model(
        'distilbert_6_768_12', vocab=vocab, pretrained=False, hparam_allow_override=True,
        num_layers=1, units=16, hidden_size=32, num_heads=2, max_length=9, use_decoder=True,
    )  # fmt: skip
    model.initialize()
    assert model(words, valid, mx.nd.array([[1]]))[1].shape == (1, 1, len(vocab))
    assert model.context_length == 9


def test_names():
    for name in (
        'distilbert-base-uncased', 'distilbert/distilbert-base-uncased', 'distilbert_6_768_12',
        'distilbert_6_768_12_distil_book_corpus_wiki_en_uncased',
        'distilbert_6_768_12_distilbert_book_corpus_wiki_en_uncased',
    ):  # fmt: skip
        found = model_zoo.pretrained.resolve_alias(name)
        assert found == ('distilbert_6_768_12', 'distilbert_book_corpus_wiki_en_uncased')


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'dim': 0}, 'dim must be a positive integer'),
        ({'dim': 10}, '10 units are not a multiple of 4'),
        ({'dropout': 1.5}, 'dropout must be a rate'),
        ({'activation': 'nonsense'}, 'nonsense'),
    ],
)
def test_bad_configurations(fields, message):
    with pytest.raises(ZooError, match=message):
        bert.DistilBertConfig(**{**CONFIG, **fields})


@pytest.mark.parametrize('hybridized', [False, True])
def test_scores_and_loss_of_an_answer(hybridized):
    head = bert.DistilBertForQuestionAnswering
    block = tiny.initialized(head(bert.DistilBertConfig(**CONFIG)), 0.3)
    block.hybridize(hybridized, static_alloc=True, static_shape=True)
    words, valid = mx.nd.array([[3, 4, 5, 6], [7, 8, 0, 0]]), mx.nd.array([4, 2])
    places = mx.nd.array([1, 0])
    scores = [each.asnumpy() for each in block(words, None, valid)]
    loss = block(words, None, valid, places, places)
    expected = []
    for each in scores:
        rows = [row[:length] for row, length in zip(each, (4, 2))]
        logs = [row - np.log(np.exp(row).sum()) for row in rows]
        expected.append(-np.mean([logs[0][1], logs[1][0]]))
    np.testing.assert_allclose(loss.asscalar(), np.mean(expected), rtol=1e-4)
