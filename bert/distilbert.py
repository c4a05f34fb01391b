"""DistilBERT (Sanh et al. 2019): half of BERT's layers, no token types, no pooler.

The model has the inputs of ``gluonnlp.model.DistilBERTModel``, its heads BERT's.
"""

import functools

from mxnet.gluon import nn

from model_zoo.checkpoint.mapping import layer_rules

from . import heads, variants
from .config import DistilBertConfig
from .mapping import gluonnlp_mapping, huggingface_mapping
from .tokenizer import BertTokenizer

_NAMES = {
    'encoder.layer.': 'transformer.layer.',
    'self.query': 'q_lin',
    'self.key': 'k_lin',
    'self.value': 'v_lin',
    'attention.output.dense': 'attention.out_lin',
    'attention.output.LayerNorm': 'sa_layer_norm',
    'intermediate.dense': 'ffn.lin1',
    'output.dense': 'ffn.lin2',
    'output.LayerNorm': 'output_layer_norm',
    'cls.predictions.transform.dense': 'vocab_transform',
    'cls.predictions.transform.LayerNorm': 'vocab_layer_norm',
    'cls.predictions.decoder': 'vocab_projector',
    'cls.predictions': 'vocab_projector',
}


@functools.lru_cache(None)
def _mappings(head, has_dropout):
    outside = ('vocab_transform.', 'vocab_layer_norm.', 'vocab_projector.', 'pre_classifier.')
    dense = layer_rules({'^dense': 'pre_classifier'})
    huggingface = huggingface_mapping('distilbert', _NAMES, outside, after=dense)
    return {'gluonnlp': gluonnlp_mapping('distilbert', has_dropout), 'huggingface': huggingface}


class DistilBertBlock(variants.Typeless):
    config_class = DistilBertConfig
    make_mappings = staticmethod(_mappings)


class DistilBertModel(DistilBertBlock, variants.TypelessModel):
    """Like `RobertaModel`; it has no pooler."""


class OfSequence(variants.OwnPooler, DistilBertBlock):
    pooler_activation = 'relu'
    drops_twice = False
    dropout_field = 'seq_classif_dropout'


class DistilBertForSequenceClassification(OfSequence, heads.BertForSequenceClassification):
    """Like `BertForSequenceClassification`, with its own pooler."""


class DistilBertForMultipleChoice(OfSequence, heads.BertForMultipleChoice):
    """Like `BertForMultipleChoice`, with its own pooler."""


class DistilBertForQuestionAnswering(DistilBertBlock, heads.BertForQuestionAnswering):
    """Like `BertForQuestionAnswering`, with a dropout on the vectors."""

    def __init__(self, bert, **options):
        super().__init__(bert, **options)
        self.dropout = nn.Dropout(self.config.qa_dropout)

    def encode(self, *inputs, **named):
        encoded = super().encode(*inputs, **named)
        encoded.sequence = self.dropout(encoded.sequence)
        return encoded


#: what ``open_model`` knows of DistilBERT
DISTILBERT = variants.add_family('distilbert', DistilBertModel, BertTokenizer)
