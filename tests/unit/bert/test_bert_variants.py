"""Models like BERT are made by inheritance: other embeddings, and the same heads on top."""

import dataclasses

import mxnet as mx
import numpy as np
import pytest
import tiny

from bert import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel
from bert.model import BertEncoder
from model_zoo.layers.precision import Dense


@dataclasses.dataclass
class SlimConfig(BertConfig):
    model_type = 'slim'

    embedding_size: int = 6

    @property
    def embedding_units(self):
        return self.embedding_size


class SlimEncoder(BertEncoder):
    """Projects the embeddings, which have fewer units."""

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        with self.name_scope():
            self.project = Dense(
                config.hidden_size,
                in_units=config.embedding_units,
                flatten=False,
                prefix='project_',
            )

    def _embed(self, F, x, position_weight):
        return self.project(super()._embed(F, x, position_weight))


class SlimBlock:
    config_class = SlimConfig


class SlimModel(SlimBlock, BertModel):
    """No token types."""

    encoder_class = SlimEncoder

    def _embed(self, F, words, token_types):
        return self.word_embed(words)


class SlimForMaskedLM(SlimBlock, BertForMaskedLM):
    backbone = 'slim'
    model_class = SlimModel


class SlimForSequenceClassification(SlimBlock, BertForSequenceClassification):
    backbone = 'slim'
    model_class = SlimModel


CONFIG = SlimConfig(30, **{**tiny.BERT, 'num_attention_heads': 4})


@pytest.mark.parametrize('hybridized', [False, True])
@pytest.mark.parametrize('head', [SlimForMaskedLM, SlimForSequenceClassification])
def test_heads_of_a_variant(tmp_path, head, hybridized):
    block = head(CONFIG)
    block.initialize(mx.init.Normal(0.3))
    block.hybridize(hybridized)
    assert type(block.base) is SlimModel and block.slim.word_embed.weight.shape == (30, 6)
    words, valid = mx.nd.array([[3, 4, 5], [6, 7, 8]]), mx.nd.array([3, 2])
    scores = block(words, None, valid)
    assert scores.shape == ((2, 3, 30) if head is SlimForMaskedLM else (2, 2))
    masked = block(words, None, valid, head_mask=mx.nd.array([0, 1, 1, 1]))
    block.prune_heads({0: [0], 1: [0]})
    pruned = block(words, None, valid)
    np.testing.assert_allclose(pruned.asnumpy(), masked.asnumpy(), atol=1e-5)
    block.save_pretrained(str(tmp_path))
    again = head.from_pretrained(str(tmp_path))
    np.testing.assert_allclose(again(words, None, valid).asnumpy(), pruned.asnumpy(), atol=1e-5)
    with mx.autograd.record():
        loss = block(words, None, valid, **_labels(head, words))
    loss.backward()
    assert loss.shape == (1,) and block.slim.encoder.project.weight.grad().asnumpy().any()


def _labels(head, words):
    if head is SlimForMaskedLM:
        return {'masked_lm_labels': words}
    return {'labels': mx.nd.array([0, 1])}
