"""DeBERTa 2 and 3 (He et al. 2021): attention from contents and from relative positions."""

import dataclasses
import functools
from typing import Literal

import mxnet as mx
from mxnet.gluon import HybridBlock, nn

from model_zoo.blocks.config import check_field
from model_zoo.checkpoint.mapping import Rule, layer_rules
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.layers.cells import ACTIVATIONS
from model_zoo.layers.graphs import uses_standard_operators
from model_zoo.layers.precision import LayerNorm
from model_zoo.layers.relative import DisentangledStack, relative_positions
from model_zoo.layers.sequences import batch_major
from model_zoo.util.fields import Size, Whole

from . import heads, variants
from .catalogue import DEBERTA_ARCHITECTURES
from .config import BertConfig
from .deberta_tokenizer import DebertaV2Tokenizer
from .mapping import huggingface_mapping

__all__ = [
    'DEBERTA',
    'DebertaV2Config',
    'DebertaV2ForMaskedLM',
    'DebertaV2ForMultipleChoice',
    'DebertaV2ForQuestionAnswering',
    'DebertaV2ForSequenceClassification',
    'DebertaV2ForTokenClassification',
    'DebertaV2Model',
    'DebertaV2SentenceEncoder',
    'deberta_v3_6_768_12',
    'deberta_v3_12_384_6',
    'deberta_v3_12_768_12',
    'deberta_v3_24_1024_16',
]


@dataclasses.dataclass
class DebertaV2Config(BertConfig):
    """Like `BertConfig`, with the fields of transformers' ``DebertaV2Config``.

    There are no token types and no absolute positions. `position_buckets` is half of the number of
    relative positions with vectors of their own; with -1 it is `max_relative_positions`, which with
    -1 is `max_position_embeddings`. `legacy` is what transformers calls the head for masked words.
    """

    model_type = 'deberta-v2'
    fixed = {
        **BertConfig.fixed,
        'relative_attention': True,
        'position_biased_input': False,
        'type_vocab_size': 0,
        'conv_kernel_size': 0,  # the convolution of deberta-v2-xlarge
    }

    vocab_size: int = 128100
    type_vocab_size: Size = 0
    layer_norm_eps: float = 1e-7
    relative_attention: bool = True
    position_biased_input: bool = False
    pos_att_type: list[Literal['c2p', 'p2c']] | None = None
    share_att_key: bool = False
    position_buckets: Whole = -1
    max_relative_positions: Whole = -1
    norm_rel_ebd: str = 'none'
    pooler_dropout: float = 0.0
    pooler_hidden_act: str = 'gelu'
    legacy: bool = True

    def __post_init__(self, vocab_size_or_config_json_file):
        if isinstance(self.pos_att_type, str):
            self.pos_att_type = [part.strip() for part in self.pos_att_type.lower().split('|')]
        super().__post_init__(vocab_size_or_config_json_file)
        UnknownNameError.check('activation', self.pooler_hidden_act, ACTIVATIONS)
        if 0 < self.position_buckets and self.longest_distance - 1 <= self.position_buckets // 2:
            problem = f'must be above half of {self.position_buckets} buckets'
            raise InputError(problem, field='max_relative_positions')

    @classmethod
    def from_dict(cls, values):
        # transformers' defaults, which aren't ours
        config = super().from_dict(
            {'relative_attention': False, 'position_biased_input': True, **values}
        )
        for name, only in {
            'attention_head_size': config.head_size,
            'embedding_size': config.hidden_size,
            'pooler_hidden_size': config.hidden_size,
        }.items():
            if config.extras.get(name, only) != only:
                raise InputError(f'is {values[name]!r:.80}; only {only} is supported', field=name)
        if config.extras.get('cls_dropout') is not None:
            check_field('cls_dropout', config.extras['cls_dropout'], float)
        return config

    @property
    def longest_distance(self):
        """The distance from which on relative positions have the same vector."""
        return (
            self.max_position_embeddings
            if self.max_relative_positions < 1
            else (self.max_relative_positions)
        )

    @property
    def span(self):
        """Half of the rows of the table of relative positions."""
        return self.position_buckets if self.position_buckets > 0 else self.longest_distance

    @property
    def head_dropout(self):
        """Rate before a head's dense layer, on a text's vector."""
        given = self.extras.get('cls_dropout')
        return self.dropout if given is None else given


_LAYERS = {
    **{
        f'attention.self.{name}': f'attention.self.{name}_proj'
        for name in ('query', 'key', 'value')
    },
}
_OTHER_HEAD = {  # its bias and its word vectors are stored once
    'cls.predictions.decoder.weight': '',
    'cls.predictions.decoder.bias': '',
    'cls.predictions.transform': 'lm_predictions.lm_head',
    'cls.predictions': 'lm_predictions.lm_head',
}
_BEFORE = (
    Rule('encoder.position_weight', 'encoder.rel_embeddings.weight'),
    *layer_rules(
        {
            'encoder.position_norm': 'encoder.LayerNorm',
            'encoder.layers.{i}.attention.pos_key': 'encoder.layer.{i}.attention.self.pos_key_proj',
            'encoder.layers.{i}.attention.pos_query': (
                'encoder.layer.{i}.attention.self.pos_query_proj'
            ),
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
    architectures = DEBERTA_ARCHITECTURES
    optional_parts = ('decoder',)
    backbone = 'deberta'

    @classmethod
    def name_maps(cls, config):
        # a file may have the other head than its configuration says, as the released ones do
        return {'huggingface': _mapping(config.legacy), 'other head': _mapping(not config.legacy)}

    def mappings(self):
        return {'huggingface': _mapping(self.config.legacy)}


class DebertaEncoder(HybridBlock):
    """Normalization, and the layers with the vectors of relative positions."""

    def __init__(self, config, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self._config = config
        norm = {'epsilon': config.layer_norm_eps, 'in_channels': config.units}
        shape, init = (2 * config.span, config.units), mx.init.Normal(config.initializer_range)
        with self.name_scope():
            self.position_weight = self.params.get('position_weight', shape=shape, init=init)
            normalizes = 'layer_norm' in config.norm_rel_ebd.lower().replace(' ', '').split('|')
            self.position_norm = LayerNorm(**norm) if normalizes else None
            self.norm, self.dropout = LayerNorm(**norm), nn.Dropout(config.dropout)
            self.layers = DisentangledStack(config)

    def hybrid_forward(
        self, F, x, valid_length=None, head_mask=None, rows=None, position_weight=None
    ):
        standard = uses_standard_operators()
        x = x if standard else F.transpose(x, axes=(1, 0, 2))  # (L, B, C)
        x = self.dropout(self.norm(x))
        vectors, *others = relative_positions(F, x, position_weight, self._config)
        if self.position_norm is not None:
            vectors = self.position_norm(vectors)
        states, attentions = self.layers(x, valid_length, head_mask, vectors, *others)
        return (
            states if standard else [batch_major(F, x, valid_length) for x in states],
            attentions,
        )


class DebertaV2Model(DebertaBlock, variants.TypelessModel):
    """Like `RobertaModel`, with relative positions alone; it has no pooler."""

    backbone = None
    encoder_class = DebertaEncoder
    huggingface_names = {(True, False): 'DebertaV2ForMaskedLM'}


class DebertaTask(DebertaBlock):
    model_class = DebertaV2Model


class OfSequence(variants.OwnPooler, DebertaTask):
    dropout_field = 'head_dropout'

    def _make_classifier(self, units, dropout):
        super()._make_classifier(units, dropout)
        self.pooler_dropout = nn.Dropout(self.config.pooler_dropout)

    @property
    def pooler_activation(self):
        return self.config.pooler_hidden_act

    def _drop_before(self, x):
        return self.pooler_dropout(x)


class DebertaV2ForMaskedLM(DebertaTask, heads.BertForMaskedLM):
    """Like `BertForMaskedLM`."""


class DebertaV2ForSequenceClassification(OfSequence, heads.BertForSequenceClassification):
    """Like `BertForSequenceClassification`, with its own pooler."""


class DebertaV2ForMultipleChoice(OfSequence, heads.BertForMultipleChoice):
    """Like `BertForMultipleChoice`, with its own pooler."""


class DebertaV2ForTokenClassification(DebertaTask, heads.BertForTokenClassification):
    """Like `BertForTokenClassification`."""


class DebertaV2ForQuestionAnswering(DebertaTask, heads.BertForQuestionAnswering):
    """Like `BertForQuestionAnswering`."""


class DebertaV2SentenceEncoder(DebertaTask, heads.BertSentenceEncoder):
    """Like `BertSentenceEncoder`."""

    huggingface_name = 'DebertaV2Model'


#: what ``open_model`` knows of DeBERTa
DEBERTA = variants.add_family(
    'deberta',
    DebertaV2Model,
    DebertaV2Tokenizer,
    classification=DebertaV2ForSequenceClassification,
    tagging=DebertaV2ForTokenClassification,
    multiple_choice=DebertaV2ForMultipleChoice,
    question_answering=DebertaV2ForQuestionAnswering,
    masked_lm=DebertaV2ForMaskedLM,
    sentence_embedding=DebertaV2SentenceEncoder,
)
deberta_v3_12_384_6 = variants.add_model(DEBERTA, 'deberta_v3_12_384_6', 'DeBERTa 3 extra small.')
deberta_v3_6_768_12 = variants.add_model(DEBERTA, 'deberta_v3_6_768_12', 'DeBERTa 3 small.')
deberta_v3_12_768_12 = variants.add_model(DEBERTA, 'deberta_v3_12_768_12', 'DeBERTa 3 base.')
deberta_v3_24_1024_16 = variants.add_model(DEBERTA, 'deberta_v3_24_1024_16', 'DeBERTa 3 large.')
