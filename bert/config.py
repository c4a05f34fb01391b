"""Hyper-parameters of BERT, and of its variants with different ones."""

import dataclasses
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import Field

from model_zoo.blocks.config import AttentionConfig, check_field
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.layers.cells import ACTIVATIONS
from model_zoo.util.fields import Count, Size, Whole

__all__ = [
    'AlbertConfig',
    'BertConfig',
    'DebertaV2Config',
    'DistilBertConfig',
    'ElectraConfig',
    'ModernBertConfig',
]


class EncoderConfig(AttentionConfig):
    """Fields that the layers of BERT and its variants read, by the names of most files."""

    #: number of encoder layers
    num_layers = property(attrgetter('num_hidden_layers'))
    #: attention heads of a layer, before pruning
    num_heads = property(attrgetter('num_attention_heads'))
    #: size of a position's vector
    units = property(attrgetter('hidden_size'))
    #: units of the embeddings, before the first layer
    embedding_units = property(attrgetter('units'))
    #: rows of the position table: the most positions that the model takes
    position_rows = property(attrgetter('max_position_embeddings'))
    #: activation of the masked language model's head
    decoder_act = property(attrgetter('activation'))

    def to_format(self, format, architecture=None):
        name, fields = super().to_format(format, architecture)
        # transformers makes the outputs of num_labels
        of_two = 'ForQuestionAnswering', 'ForPreTraining'
        if format != 'native' and architecture.endswith(of_two):
            fields['num_labels'] = 2
        return name, fields


@dataclasses.dataclass
class BertConfig(EncoderConfig):
    """Hyper-parameters of a BERT model, named as in Google's ``bert_config.json``.

    Parameters
    ----------
    vocab_size : int
        Number of word pieces.
    hidden_size : int
        Units of the encoder (H in the paper, "units" in GluonNLP).
    num_hidden_layers : int
        Number of encoder layers (L in the paper).
    num_attention_heads : int
        Attention heads per layer (A in the paper); must divide `hidden_size`.
    intermediate_size : int
        Units of the feed-forward layer ("hidden_size" in GluonNLP).
    hidden_act : str
        Activation of the feed-forward layer: 'gelu', 'gelu_new' (also 'gelu_fast', \
'gelu_pytorch_tanh'), 'gelu_10', 'quick_gelu', 'relu', 'swish' (also 'silu'), 'mish' or 'tanh'.
    hidden_dropout_prob, attention_probs_dropout_prob : float
        Dropout rates.
    max_position_embeddings : int
        Length of the position table: the longest sequence that the model takes.
    type_vocab_size : int
        Number of token types.
    initializer_range : float
        Standard deviation of the normal initializer.
    layer_norm_eps : float
    num_labels : int
        Outputs of a task head.
    pruned_heads : dict of int to list of int, optional
        Heads that were removed, by layer.

    References
    ----------
    Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
    Understanding", section 3; ``BertConfig`` of google-research/bert's modeling.py.
    """

    model_type = 'bert'
    fixed = {**AttentionConfig.fixed, 'position_embedding_type': 'absolute', 'is_decoder': False}

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = 'gelu'
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    num_labels: int = 2
    pruned_heads: dict | None = None

    # as layers name them
    activation = property(attrgetter('hidden_act'))
    dropout = property(attrgetter('hidden_dropout_prob'))
    attention_dropout = property(attrgetter('attention_probs_dropout_prob'))

    def to_format(self, format, architecture=None):
        name, fields = super().to_format(format, architecture)
        return 'bert_config.json' if format == 'tensorflow' else name, fields


@dataclasses.dataclass
class ElectraConfig(BertConfig):
    """Like `BertConfig`; `embedding_size` is the number of the embeddings' units."""

    model_type = 'electra'
    summary = {'summary_type': 'first', 'summary_use_proj': True, 'summary_activation': 'gelu'}
    fixed = {**BertConfig.fixed, **summary}
    decoder_act = 'gelu'  # whatever the layers have

    hidden_size: int = 256
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    embedding_size: int = 128
    summary_last_dropout: float = 0.1

    embedding_units = property(attrgetter('embedding_size'))


@dataclasses.dataclass
class AlbertConfig(BertConfig):
    """Like `BertConfig`, for layers that share parameters.

    The layers are in `num_hidden_groups` groups; the layers of a group share parameters. Each layer
    consists of `inner_group_num` layers with separate parameters, so that there are
    `num_hidden_layers` times `inner_group_num` layers. `embedding_size` is the number of the
    embeddings' units, and `classifier_dropout_prob` the rate before a head's dense layer.
    """

    model_type = 'albert'

    vocab_size: int = 30000
    hidden_size: int = 4096
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    hidden_act: str = 'gelu_new'
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    embedding_size: int = 128
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    classifier_dropout_prob: float = 0.1

    embedding_units = property(attrgetter('embedding_size'))

    def __post_init__(self, vocab_size_or_config_json_file):
        super().__post_init__(vocab_size_or_config_json_file)
        if self.num_hidden_groups > self.num_hidden_layers:
            few = f'{self.num_hidden_layers} layers have no {self.num_hidden_groups} groups'
            raise InputError(few, field='num_hidden_groups')

    @property
    def num_layers(self):
        """Number of layers; a shared one counts each time it computes."""
        return self.num_hidden_layers * self.inner_group_num

    def cell_of(self, layer):
        """Return the group of a layer, and the layer's number in it, whose parameters it has."""
        step, inner = divmod(layer, self.inner_group_num)
        return step * self.num_hidden_groups // self.num_hidden_layers, inner

    def layers_like(self, layer):
        layers = range(self.num_layers)
        return [each for each in layers if self.cell_of(each) == self.cell_of(layer)]

    def add_pruned(self, heads_to_prune):
        """Return `pruned_heads` with more heads: layers that share parameters lose the same."""
        merged, lost = super().add_pruned(heads_to_prune), {}
        for layer in range(self.num_layers):
            lost[layer] = [n for each in self.layers_like(layer) for n in merged.get(each, ())]
        return super().add_pruned(lost)


@dataclasses.dataclass
class DebertaV2Config(BertConfig):
    """Like `BertConfig`, with the fields of transformers' ``DebertaV2Config``.

    There are no token types and no absolute positions. `position_buckets` is half of the number of
    relative positions with separate vectors; with -1 it is `max_relative_positions`, which with
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
        UnknownNameError.check('name', self.pooler_hidden_act, ACTIVATIONS, 'pooler_hidden_act')
        if self.position_buckets > 0 and self.longest_distance - 1 <= self.position_buckets // 2:
            problem = f'must be above half of {self.position_buckets} buckets'
            raise InputError(problem, field='max_relative_positions')

    @classmethod
    def from_dict(cls, values):
        # transformers' defaults, which differ from these fields'
        usual = {'relative_attention': False, 'position_biased_input': True}
        config = super().from_dict({**usual, **values})
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
        given = self.max_relative_positions
        return given if given > 0 else self.max_position_embeddings

    @property
    def span(self):
        """Half of the rows of the table of relative positions."""
        return self.position_buckets if self.position_buckets > 0 else self.longest_distance

    @property
    def head_dropout(self):
        """Rate before a head's dense layer, on a text's vector."""
        given = self.extras.get('cls_dropout')
        return self.dropout if given is None else given


@dataclasses.dataclass
class DistilBertConfig(EncoderConfig):
    """Hyper-parameters with the names of transformers' files; see `BertConfig`."""

    model_type = 'distilbert'

    vocab_size: int = 30522
    dim: int = 768
    n_layers: int = 6
    n_heads: int = 12
    hidden_dim: int = 3072
    activation: str = 'gelu'
    dropout: float = 0.1
    attention_dropout: float = 0.1
    qa_dropout: float = 0.1
    seq_classif_dropout: float = 0.2
    max_position_embeddings: int = 512
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    num_labels: int = 2
    pruned_heads: dict | None = None

    # BertConfig's names
    type_vocab_size = 1
    num_hidden_layers = property(attrgetter('n_layers'))
    num_attention_heads = property(attrgetter('n_heads'))
    hidden_size = property(attrgetter('dim'))
    intermediate_size = property(attrgetter('hidden_dim'))


@dataclasses.dataclass
class ModernBertConfig(EncoderConfig):
    """Hyper-parameters with the names of transformers' files; see `BertConfig`.

    Words attend to all words in the layers 0, `global_attn_every_n_layers`, and so on, or where
    `layer_types` has 'full_attention'; in the others to half of `local_attention` words on each
    side. The two kinds of layers have their own base of the angles of positions, `..._rope_theta`.
    """

    model_type = 'modernbert'
    fixed = {
        **AttentionConfig.fixed,
        **dict.fromkeys(('attention_bias', 'mlp_bias', 'norm_bias'), False),
        'decoder_bias': True,
        'rope_scaling': None,
    }

    vocab_size: int = 50368
    hidden_size: int = 768
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    intermediate_size: int = 1152
    hidden_activation: str = 'gelu'
    max_position_embeddings: int = 8192
    global_attn_every_n_layers: int = 3
    layer_types: list[Literal['full_attention', 'sliding_attention']] | None = None
    local_attention: Annotated[Count, Field(ge=2)] = 128
    global_rope_theta: float = 160000.0
    local_rope_theta: float = 10000.0
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    mlp_dropout: float = 0.0
    classifier_dropout: float = 0.0
    classifier_pooling: Literal['cls', 'mean'] = 'cls'
    classifier_activation: str = 'gelu'
    classifier_bias: bool = False
    initializer_range: float = 0.02
    norm_eps: float = 1e-5
    num_labels: int = 2
    pruned_heads: dict | None = None

    # as layers name them
    type_vocab_size = 1
    activation = property(attrgetter('hidden_activation'))
    decoder_act = property(attrgetter('classifier_activation'))
    transform_bias = property(attrgetter('classifier_bias'))
    dropout = property(attrgetter('embedding_dropout'))
    layer_norm_eps = property(attrgetter('norm_eps'))

    def __post_init__(self, vocab_size_or_config_json_file):
        super().__post_init__(vocab_size_or_config_json_file)
        field, name = 'classifier_activation', self.classifier_activation
        UnknownNameError.check('name', name, ACTIVATIONS, field)
        if self.layer_types is not None and len(self.layer_types) != self.num_layers:
            raise InputError(f'must have {self.num_layers} names', field='layer_types')
        if self.head_size % 2:
            problem = f'{self.head_size} units of a head are odd, which rotary positions cannot be'
            raise InputError(problem, field='num_attention_heads')

    @classmethod
    def from_dict(cls, values):
        values = dict(values)
        ropes = values.pop('rope_parameters', None) or {}  # of transformers 5
        for name, kind in {'global': 'full_attention', 'local': 'sliding_attention'}.items():
            rope = ropes.get(kind) or {}
            if rope.get('rope_type', 'default') != 'default':
                problem = f'has the type {rope["rope_type"]!r:.80}; only the default is supported'
                raise InputError(problem, field='rope_parameters')
            if rope.get('rope_theta') is not None:
                values[f'{name}_rope_theta'] = float(rope['rope_theta'])
        return super().from_dict(values)

    def to_format(self, format, architecture=None):
        name, fields = super().to_format(format, architecture)
        if format != 'native' and self.vocab_size != ModernBertConfig.vocab_size:
            # transformers' defaults are ids of the released vocabulary
            roles = 'pad', 'cls', 'sep', 'bos', 'eos'
            fields = {**{f'{role}_token_id': None for role in roles}, **fields}
        return name, fields

    def is_local(self, layer):
        """Return whether the words of a layer attend to near ones alone."""
        if self.layer_types is None:
            return layer % self.global_attn_every_n_layers > 0
        return self.layer_types[layer] == 'sliding_attention'
