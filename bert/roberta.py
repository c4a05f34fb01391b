"""RoBERTa (Liu et al. 2019): BERT without token types and next sentences, on byte pairs."""

import dataclasses
import functools

import numpy as np

from model_zoo.checkpoint.mapping import Rule, layer_rules
from model_zoo.layers.sequences import is_mask

from . import heads, variants
from .config import BertConfig
from .mapping import CLASSIFIER, gluonnlp_mapping, huggingface_mapping
from .roberta_tokenizer import RobertaTokenizer


@dataclasses.dataclass
class RobertaConfig(BertConfig):
    """Like `BertConfig`; the first two of `max_position_embeddings` are never used."""

    model_type = 'roberta'
    #: row of the original's position table where the positions begin, behind the padding's id
    first_position = 2
    fixed = {**BertConfig.fixed, 'pad_token_id': 1}

    vocab_size: int = 50265
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5
    decoder_act = 'gelu'  # whatever the layers have

    @classmethod
    def field_value(cls, field, value):
        return value + cls.first_position if field == 'max_position_embeddings' else value

    @property
    def position_rows(self):
        return self.max_position_embeddings - self.first_position


class Positions:
    """Their position table, and the vector of token type 0 if there is one, <-> our table."""

    def load(self, arrays, config):
        return arrays[0][config.first_position :] + sum(types[0] for types in arrays[1:])

    def save(self, array, config):
        unused = np.zeros_like(array, shape=(config.first_position, array.shape[1]))
        types = np.zeros_like(array, shape=(config.type_vocab_size, array.shape[1]))
        return [np.concatenate([unused, array]), types]


TABLES = ('embeddings.position_embeddings.weight', 'embeddings.token_type_embeddings.weight')
NAMES = {'transform.LayerNorm': 'layer_norm', 'transform.': '', 'cls.predictions': 'lm_head'}


@functools.lru_cache(None)
def _mappings(head, has_dropout):
    first, second = (1, 3) if has_dropout else (0, 1)
    layers = {'^dense': f'^classifier.{first}', '^classifier': f'^classifier.{second}'}
    positions = Rule('encoder.position_weight', TABLES, Positions())
    return {
        'gluonnlp': gluonnlp_mapping('roberta', has_dropout, *layer_rules(layers)),
        'huggingface': huggingface_mapping(
            'roberta', NAMES, ('lm_head.',), before=(positions, *head), after=CLASSIFIER
        ),
    }


class RobertaBlock(variants.Typeless):
    config_class = RobertaConfig
    optional_parts = ('pooler', 'decoder')
    make_mappings = staticmethod(_mappings)


class RobertaModel(RobertaBlock, variants.TypelessModel):
    """Like `BertModel`, but for the order of its inputs.

    Positions are counted from the first word, or, with an attention mask, over all words except
    padding, as in transformers.

    Inputs
    ------
    words, valid_length, masked_positions, head_mask
        See `BertModel`. `token_types` are ignored.
    """

    def _table_rows(self, F, words, valid_length):
        if not is_mask(valid_length):
            return None
        is_word = 1 - F.cast(words == self.config.fixed['pad_token_id'], 'float32')  # (B, L)
        steps = F.cast(F.contrib.arange_like(words, axis=1), 'float32')
        before = F.broadcast_lesser_equal(F.expand_dims(steps, 1), F.expand_dims(steps, 0))
        return F.maximum(F.dot(is_word, before) - 1, 0)  # (B, L)


class RobertaForSequenceClassification(
    variants.OwnPooler, RobertaBlock, heads.BertForSequenceClassification
):
    """Like `BertForSequenceClassification`, with its own pooler."""

    head_rules = tuple(CLASSIFIER)


#: what ``open_model`` knows of RoBERTa
ROBERTA = variants.add_family('roberta', RobertaModel, RobertaTokenizer)
