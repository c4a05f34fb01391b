"""DistilBERT beside GluonNLP's, and where its names lead."""

import gluonnlp as nlp
import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import text_inputs
from gluonnlp_models import assert_both_ways, encoder

import bert
from model_zoo.errors import InputError

CONFIG = {
    'vocab_size': 40,
    'dim': 16,
    'n_layers': 2,
    'n_heads': 4,
    'hidden_dim': 512,
    'max_position_embeddings': 20,
}


def test_gluonnlp_model_both_ways(tmp_path):
    def theirs():
        network = encoder(layer_norm_eps=1e-5)
        return nlp.model.DistilBERTModel(network, vocab_size=40, units=16, embed_size=16)

    ours = bert.DistilBertModel(bert.DistilBertConfig(**CONFIG, layer_norm_eps=1e-5))
    words, _, valid, _ = text_inputs(dtype='float32')
    assert_both_ways(tmp_path, theirs, lambda: ours, [words, valid])
    with pytest.raises(InputError):  # theirs is always 1e-12
        ours.save_pretrained(str(tmp_path / 'folder'), format='huggingface')


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
