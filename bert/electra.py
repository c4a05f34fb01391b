"""ELECTRA (Clark et al. 2020): BERT without a pooler, trained to find replaced words."""

import functools

from mxnet.gluon import nn

from model_zoo.checkpoint.mapping import layer_rules
from model_zoo.layers.cells import ACTIVATIONS
from model_zoo.layers.losses import binary_cross_entropy
from model_zoo.layers.precision import Dense
from model_zoo.layers.sequences import without_padding

from . import heads, variants
from .config import ElectraConfig
from .mapping import CLASSIFIER, huggingface_mapping
from .model import BertModel
from .tokenizer import BertTokenizer

_NAMES = {
    'cls.predictions.transform': 'generator_predictions',
    'cls.predictions.decoder': 'generator_lm_head',
    'cls.predictions': 'generator_lm_head',
}
_OUTSIDE = ('generator_', 'discriminator_predictions.', 'sequence_summary.')
_CHOICE = tuple(layer_rules({'^dense': 'sequence_summary.summary'}))
_DENSE = layer_rules(
    {
        'encoder.project': 'embeddings_project',
        '^discriminator_dense': 'discriminator_predictions.dense',
        '^discriminator': 'discriminator_predictions.dense_prediction',
    }
)


@functools.lru_cache(None)
def _mappings(head, has_dropout):
    after = (*CLASSIFIER, *_CHOICE, *_DENSE)
    return {'huggingface': huggingface_mapping('electra', _NAMES, _OUTSIDE, head, after)}


class ElectraBlock:
    config_class = ElectraConfig
    optional_parts = ('decoder',)
    make_mappings = staticmethod(_mappings)


class ElectraModel(ElectraBlock, BertModel):
    """Like `BertModel`; it has no pooler."""

    encoder_class = variants.ProjectingEncoder


class ElectraForPreTraining(ElectraBlock, heads.BertForTokenClassification):
    """ELECTRA's discriminator: it predicts which words were replaced.

    See `BertForTokenClassification` for inputs and labels. The scores are (batch, length), for the
    label 1: replaced.
    """

    task = 'replaced_words'

    def _make_classifier(self, units, dropout):
        with self.name_scope():
            options, units = self.dense_options, self.config.units
            self.discriminator_dense = Dense(units, prefix='discriminator_dense_', **options)
            self.activation = nn.HybridLambda(ACTIVATIONS[self.config.activation])
            self.discriminator = Dense(1, prefix='discriminator_', **options)

    def _classify(self, F, encoded, valid_length):
        x = self.activation(self.discriminator_dense(encoded.sequence))
        return F.squeeze(self.discriminator(x), axis=2)  # (B, L)

    def _loss(self, F, scores, labels, valid_length):
        return binary_cross_entropy(F, scores, without_padding(F, labels, valid_length))


class ElectraForMaskedLM(ElectraBlock, heads.BertForMaskedLM):
    """Like `BertForMaskedLM`: the generator, which replaces words."""


class OfSequence(variants.OwnPooler, ElectraBlock):
    pooler_activation = 'gelu'


class ElectraForSequenceClassification(OfSequence, heads.BertForSequenceClassification):
    """Like `BertForSequenceClassification`, with its own pooler."""

    head_rules = tuple(CLASSIFIER)


class ElectraForMultipleChoice(OfSequence, heads.BertForMultipleChoice):
    """Like `BertForMultipleChoice`, with its own pooler."""

    drops_twice = False
    dropout_field = 'summary_last_dropout'
    head_rules = _CHOICE


#: what ``open_model`` knows of ELECTRA
ELECTRA = variants.add_family('electra', ElectraModel, BertTokenizer)
