"""DeBERTa 2 and 3 (He et al. 2021): attention from contents and from relative positions."""

import functools

from mxnet.gluon import nn

from model_zoo.checkpoint.mapping import Rule, layer_rules
from model_zoo.layers.relative import DisentangledStack

from . import heads, variants
from .config import DebertaV2Config
from .mapping import huggingface_mapping
from .model import BertEncoder
from .roberta_tokenizer import DebertaV2Tokenizer

_PARTS = 'query', 'key', 'value'
_LAYERS = {f'attention.self.{name}': f'attention.self.{name}_proj' for name in _PARTS}
_OTHER_HEAD = {  # its bias and its word vectors are stored once
    'cls.predictions.decoder.weight': '',
    'cls.predictions.decoder.bias': '',
    'cls.predictions.transform': 'lm_predictions.lm_head',
    'cls.predictions': 'lm_predictions.lm_head',
}
_SELF = 'encoder.layer.{i}.attention.self.'
_BEFORE = (
    Rule('encoder.layers.relative_weight', 'encoder.rel_embeddings.weight'),
    *layer_rules(
        {
            'encoder.layers.position_norm': 'encoder.LayerNorm',
            'encoder.layers.{i}.attention.pos_key': f'{_SELF}pos_key_proj',
            'encoder.layers.{i}.attention.pos_query': f'{_SELF}pos_query_proj',
            '^dense': 'pooler.dense',
        },
        norm=('.weight', '.bias'),
    ),
)


@functools.lru_cache(None)
def _mapping(legacy):
    names = _LAYERS if legacy else {**_LAYERS, **_OTHER_HEAD}
    outside = ('cls.', 'lm_predictions.', 'pooler.')
    ignore = r'embeddings\.position_embeddings', r'mask_predictions\.'
    return huggingface_mapping('deberta', names, outside, _BEFORE, ignore=ignore)


class DebertaBlock(variants.Typeless):
    config_class = DebertaV2Config

    @classmethod
    def name_maps(cls, config):
        # a file may have the other head than its configuration says, as the released ones do
        return {'huggingface': _mapping(config.legacy), 'other head': _mapping(not config.legacy)}

    def mappings(self):
        return {'huggingface': _mapping(self.config.legacy)}


class DebertaEncoder(BertEncoder):
    stack_class, has_positions = DisentangledStack, False


class DebertaV2Model(DebertaBlock, variants.TypelessModel):
    """Like `RobertaModel`, with relative positions alone; it has no pooler."""

    encoder_class = DebertaEncoder


class OfSequence(variants.OwnPooler, DebertaBlock):
    dropout_field = 'head_dropout'

    def _make_classifier(self, units, dropout):
        super()._make_classifier(units, dropout)
        self.pooler_dropout = nn.Dropout(self.config.pooler_dropout)

    @property
    def pooler_activation(self):
        return self.config.pooler_hidden_act

    def _drop_before(self, x):
        return self.pooler_dropout(x)


class DebertaV2ForSequenceClassification(OfSequence, heads.BertForSequenceClassification):
    """Like `BertForSequenceClassification`, with its own pooler."""


class DebertaV2ForMultipleChoice(OfSequence, heads.BertForMultipleChoice):
    """Like `BertForMultipleChoice`, with its own pooler."""


#: what ``open_model`` knows of DeBERTa
DEBERTA = variants.add_family('deberta', DebertaV2Model, DebertaV2Tokenizer)
