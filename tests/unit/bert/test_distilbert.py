"""DistilBERT beside GluonNLP's, and where its names lead."""

import gluonnlp as nlp
import tiny
from arrays import text_inputs
from gluonnlp_models import assert_both_ways, encoder

import bert


def test_gluonnlp_model_both_ways(tmp_path):
    def theirs():
        network = encoder(layer_norm_eps=1e-5)
        return nlp.model.DistilBERTModel(network, vocab_size=40, units=16, embed_size=16)

    sizes = {'n_heads': 4, 'hidden_dim': 512, 'max_position_embeddings': 20}
    config = tiny.make_config(bert.DistilBertConfig, **sizes, layer_norm_eps=1e-5)
    ours = bert.DistilBertModel(config)
    words, _, valid, _ = text_inputs(dtype='float32')
    assert_both_ways(tmp_path, theirs, lambda: ours, [words, valid])
