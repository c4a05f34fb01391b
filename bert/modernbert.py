"""ModernBERT (Warner et al. 2024): rotary positions, attention to near words, 8,192 tokens."""

import functools

import mxnet as mx
from mxnet.gluon import nn

from model_zoo.checkpoint.mapping import Mapping, Rule, Stacked, layer_rules
from model_zoo.layers.precision import ScaleNorm
from model_zoo.layers.rotary import SHORT_TEXTS, RotaryStack

from . import heads, variants
from .config import ModernBertConfig
from .model import BertDecoder, BertEncoder, BertModel, Transform
from .roberta_tokenizer import ModernBertTokenizer

_CELL = 'encoder.layers.{i}.'
_LAYERS = {
    'encoder.norm': 'embeddings.norm',
    'encoder.layers.norm': 'final_norm',
    f'{_CELL}attention_norm': 'layers.{i}.attn_norm',
    f'{_CELL}attention.qkv': 'layers.{i}.attn.Wqkv',
    f'{_CELL}attention.proj': 'layers.{i}.attn.Wo',
    f'{_CELL}ffn_norm': 'layers.{i}.mlp_norm',
    f'{_CELL}ffn.into': 'layers.{i}.mlp.Wi',
    f'{_CELL}ffn.out': 'layers.{i}.mlp.Wo',
    'decoder.dense': 'head.dense',
    'decoder.norm': 'head.norm',
    '^classifier': 'classifier',
}


_TIED = {'tied': ('decoder.weight',), 'tied_to': 'decoder.bias'}


@functools.lru_cache(None)
def _mappings(head, has_dropout):
    rules = [
        *layer_rules(dict(head), norm=('.weight', '.bias')),
        Rule('word_embed.weight', 'embeddings.tok_embeddings.weight', **_TIED),
        Rule('decoder.bias', 'decoder.bias'),
        *layer_rules(_LAYERS, norm=('.weight', '.bias'), qkv=Stacked()),
    ]
    outside = 'head.', 'decoder.', 'classifier.'
    return {'huggingface': Mapping(rules, 'model.', mark_heads=False, outside=outside)}


class ModernBertBlock(variants.Typeless):
    config_class = ModernBertConfig
    graph_options = (*BertModel.graph_options, 'has_short_texts')
    make_mappings = staticmethod(_mappings)
    #: whether attention has a matrix of all pairs in the graph that runs
    has_short_texts = property(lambda self: SHORT_TEXTS.is_on)

    short_length = property(lambda self: 2 * self.config.local_attention)

    def for_short_texts(self):
        """Return a context in which the graph for any length is the one for short texts."""
        return SHORT_TEXTS.turned(True)

    def run(self, *inputs):
        short = SHORT_TEXTS.is_on  # part of a larger graph, or a graph for any length
        if not isinstance(inputs[0], mx.sym.Symbol):
            short = inputs[0].shape[-1] <= self.short_length
        with SHORT_TEXTS.turned(short or self.base.output_attentions):
            return super().run(*inputs)


class PredictionHead(Transform):
    norm_class = ScaleNorm


class ModernBertDecoder(BertDecoder):
    norm_class = ScaleNorm


class ModernBertEncoder(BertEncoder):
    stack_class, norm_class, has_positions = RotaryStack, ScaleNorm, False


class ModernBertModel(ModernBertBlock, variants.TypelessModel):
    """Like `RobertaModel`, for up to 8,192 tokens; it has no pooler."""

    encoder_class, decoder_class = ModernBertEncoder, ModernBertDecoder


class WithHead(ModernBertBlock):
    """A task whose dense layer is behind a `PredictionHead`."""

    parts = {'use_pooler': False}
    dropout_field = 'classifier_dropout'
    head_rules = (('^head.dense', 'head.dense'), ('^head.norm', 'head.norm'))

    def __init__(self, bert, *args, **options):
        super().__init__(bert, *args, **options)
        if self.pooling is None:
            is_last = self.task == 'question_answering'  # the others drop out behind it
            with self.name_scope():
                self.head = PredictionHead(self.config, prefix='head_')
                self.head_dropout = nn.Dropout(self.config.classifier_dropout * is_last)

    def _pool(self, F, encoded, valid_length=None):
        pooling = self.config.classifier_pooling
        x = heads.pool_tokens(F, encoded.sequence, valid_length, pooling, self.precision)
        return self.dropout(self.head(x))


class OfTokens(WithHead):
    def encode(self, *inputs, **named):
        encoded = super().encode(*inputs, **named)
        encoded.sequence = self.head_dropout(self.head(encoded.sequence))
        return encoded


class ModernBertForSequenceClassification(WithHead, heads.BertForSequenceClassification):
    """Like `BertForSequenceClassification`; with `pooling` there is no `PredictionHead`.

    Without it, the head's input is the vector that ``classifier_pooling`` of the configuration
    names, as in transformers.
    """

    pooling_field = 'vector_pooling'


class ModernBertForMultipleChoice(WithHead, heads.BertForMultipleChoice):
    """Like `BertForMultipleChoice`."""


class ModernBertForTokenClassification(OfTokens, heads.BertForTokenClassification):
    """Like `BertForTokenClassification`."""


class ModernBertForQuestionAnswering(OfTokens, heads.BertForQuestionAnswering):
    """Like `BertForQuestionAnswering`, with a dropout on the vectors."""

    head_rules = (*WithHead.head_rules, ('^span_classifier', 'classifier'))


#: what ``open_model`` knows of ModernBERT
MODERNBERT = variants.add_family('modernbert', ModernBertModel, ModernBertTokenizer)
