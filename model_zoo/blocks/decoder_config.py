"""The configuration of GPT and GPT-2, and names in other programs."""

import dataclasses
from operator import attrgetter

from ..checkpoint.mapping import (
    Mapping,
    OneWide,
    Rule,
    Stacked,
    Transposed,
    cell_layers,
    layer_rules,
)
from ..util.fields import Size
from .config import PYTORCH_FORMATS, AttentionConfig

__all__ = ['DecoderConfig']


@dataclasses.dataclass
class DecoderConfig(AttentionConfig):
    """Base of the configurations of OpenAI's decoders.

    Parameters
    ----------
    vocab_size : int
        Number of tokens, without the special ones.
    n_special : int
        Number of special tokens; their embeddings follow the vocabulary's.
    n_positions : int
        Length of the position table: the longest sequence that the model takes.
    n_ctx : int
        The same as `n_positions`, in the originals' files.
    n_embd : int
        Units.
    n_layer : int
        Number of layers.
    n_head : int
        Attention heads per layer; must divide `n_embd`.
    resid_pdrop, embd_pdrop, attn_pdrop : float
        Dropout rates on each sub-layer's output, the embedding, and the attention probabilities.
    layer_norm_epsilon : float
    initializer_range : float
        Standard deviation of the normal initializer.
    pruned_heads : dict of int to list of int, optional
        Heads that were removed, by layer.
    """

    vocab_size: int = 0
    n_special: Size = 0
    n_positions: int = 512
    n_ctx: int = 512
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    pruned_heads: dict | None = None

    #: dropout rate before the multiple choice head
    mc_pdrop = 0.0

    def to_format(self, format, architecture=None):
        name, fields = super().to_format(format, architecture)
        if format in PYTORCH_FORMATS:  # transformers' vocabulary includes them
            fields.update(vocab_size=self.total_tokens_embeddings, n_special=0)
        return name, fields

    @property
    def total_tokens_embeddings(self):
        """Rows of the embedding: the vocabulary's and the special tokens'."""
        return self.vocab_size + self.n_special

    embedding_rows = property(attrgetter('total_tokens_embeddings'))
    #: number of layers
    num_layers = property(attrgetter('n_layer'))
    #: attention heads of a layer, before pruning
    num_heads = property(attrgetter('n_head'))
    #: size of a position's vector
    units = property(attrgetter('n_embd'))
    # as layers name them
    dropout = property(attrgetter('resid_pdrop'))
    attention_dropout = property(attrgetter('attn_pdrop'))
    layer_norm_eps = property(attrgetter('layer_norm_epsilon'))

    @property
    def intermediate_size(self):
        """Units of the feed-forward layer."""
        return 4 * self.n_embd


_LAYERS = 'layers.{i}.'


def huggingface_mapping(word, position, layers=None, ignore=()):
    """Return the `Mapping` of a decoder's files of pytorch-pretrained-bert 0.6.2 and transformers.

    The dense layers of its cells are "Conv1D"; `layers` has further ones, as for `layer_rules`.
    """
    names = 'attn.c_attn attn.c_proj ln_1 mlp.c_fc mlp.c_proj ln_2'
    cells = cell_layers(_LAYERS, 'h.{i}.', names)
    others = {'^mc_head': 'multiple_choice_head.summary', **(layers or {})}
    norm = '.weight', '.bias'
    return Mapping(
        [
            Rule('word_embed.weight', word, tied=('lm_head.weight', 'lm_head.decoder.weight')),
            Rule('position_weight', position),
            *layer_rules(cells, norm=norm, qkv=Stacked(), weight=Transposed),
            *layer_rules(others, norm=norm),
        ],
        'transformer.',
        mark_heads=False,
        outside=('lm_head.', 'multiple_choice_head.'),
        ignore=(r'h\.\d+\.attn\.(masked_)?bias$', *ignore),
        rename=(
            (r'^multiple_choice_head\.linear\.', 'multiple_choice_head.summary.'),
            (r'\.[gw]$', '.weight'),  # of the first versions' files
            (r'\.b$', '.bias'),
        ),
    )


def openai_rules():
    """Make the rules of a decoder's layers in OpenAI's files, in the order of its programs."""
    names = 'attn/c_attn attn/c_proj ln_1 mlp/c_fc mlp/c_proj ln_2'
    layers = cell_layers(_LAYERS, 'model/h{i}/', names)

    def weight(convert):
        return OneWide(Transposed(convert))

    return layer_rules(layers, ('/w', '/b'), ('/g', '/b'), Stacked(), weight)
