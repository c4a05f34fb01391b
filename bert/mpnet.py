"""MPNet (Song et al. 2020): RoBERTa with relative positions, on word pieces."""

import dataclasses
import functools
import math

import mxnet as mx

from model_zoo.checkpoint.mapping import Rule
from model_zoo.layers.cells import EncoderStack
from model_zoo.layers.graphs import uses_standard_operators
from model_zoo.layers.sequences import positions_of

from . import roberta, variants
from .mapping import CLASSIFIER, huggingface_mapping
from .model import BertEncoder
from .roberta_tokenizer import MPNetTokenizer


@dataclasses.dataclass
class MPNetConfig(roberta.RobertaConfig):
    """Like `RobertaConfig`; there are always 32 buckets of relative positions."""

    model_type = 'mpnet'
    # the original computes buckets of 32, whatever the field says
    fixed = {**roberta.RobertaConfig.fixed, 'relative_attention_num_buckets': 32}

    vocab_size: int = 30527
    layer_norm_eps: float = 1e-12
    relative_attention_num_buckets: int = 32


_NAMES = {
    'attention.self.query': 'attention.attn.q',
    'attention.self.key': 'attention.attn.k',
    'attention.self.value': 'attention.attn.v',
    'attention.output.dense': 'attention.attn.o',
    'attention.output': 'attention',
    **roberta.NAMES,
}
_RULES = (
    Rule('encoder.position_weight', roberta.TABLES[0], roberta.Positions()),
    Rule('encoder.layers.relative_bias', 'encoder.relative_attention_bias.weight'),
)


@functools.lru_cache(None)
def _mappings(head, has_dropout):
    options = {'before': (*_RULES, *head), 'after': CLASSIFIER}
    return {'huggingface': huggingface_mapping('mpnet', _NAMES, ('lm_head.',), **options)}


class RelativeStack(EncoderStack):
    """The layers of an encoder, to whose scores a head's number for each distance is added.

    T5's buckets of distances (Raffel et al. 2020, section 2.1): 16 for the words before and 16 for
    those after, one for each of the first 8 distances, and then two for each doubling. The numbers
    are computed once for all layers.
    """

    def __init__(self, config):
        super().__init__(config)
        shape = config.relative_attention_num_buckets, config.num_heads
        init = mx.init.Normal(config.initializer_range)
        with self.name_scope():
            self.relative_bias = self.params.get('relative_bias', shape=shape, init=init)

    def mask_key(self, layer, heads):
        return tuple(heads)

    def _mask(self, F, x, valid_length, heads, dtype, relative_bias):
        mask = super()._mask(F, x, valid_length, heads, dtype)
        standard = uses_standard_operators()
        positions = F.contrib.arange_like(x, axis=1) if standard else positions_of(F, x)  # (L,)
        if len(heads) < self._config.num_heads:
            columns = [F.slice_axis(relative_bias, axis=1, begin=n, end=n + 1) for n in heads]
            relative_bias = F.concat(*columns, dim=1)
        table = {'input_dim': self.relative_bias.shape[0], 'output_dim': len(heads)}
        bias = F.Embedding(_buckets(F, positions), F.cast(relative_bias, 'float32'), **table)
        bias = F.transpose(bias, axes=(2, 0, 1))  # (heads, L, L)
        if standard:
            bias = F.expand_dims(bias, 0)
            return bias if mask is None else F.broadcast_add(bias, mask)
        # a product, since the backward pass of a broadcast is slow
        ones = F.expand_dims(F.ones_like(positions_of(F, x, axis=1)), 1)  # (B, 1)
        every = F.dot(ones, F.reshape(bias, shape=(1, -1)))
        axes = {'lhs_begin': 1, 'lhs_end': 2, 'rhs_begin': 0, 'rhs_end': 3}
        every = F.cast(F.reshape(F.reshape_like(every, bias, **axes), shape=(-3, 0, 0)), dtype)
        return every if mask is None else every + mask


def _buckets(F, positions):
    """Return the number of the bucket of each query's distance from each key, (L, L)."""
    queries, keys = F.expand_dims(positions, 1), F.expand_dims(positions, 0)
    size = F.abs(F.broadcast_sub(keys, queries))
    # a thousandth more, as the logarithm of a power of two may be a little too small
    octaves = F.log(F.maximum(size, 1)) * (2 / math.log(2)) + 2.001
    buckets = F.clip(F.broadcast_minimum(size, F.floor(octaves)), 0, 15)
    return buckets + 16 * F.broadcast_lesser(queries, keys)


class MPNetEncoder(BertEncoder):
    stack_class = RelativeStack


class MPNetBlock:
    config_class = MPNetConfig
    make_mappings = staticmethod(_mappings)


class MPNetModel(MPNetBlock, roberta.RobertaModel):
    """Like `RobertaModel`, with relative positions besides."""

    encoder_class = MPNetEncoder


#: what ``open_model`` knows of MPNet
MPNET = variants.add_family('mpnet', MPNetModel, MPNetTokenizer, heads=roberta.ROBERTA.tasks)
