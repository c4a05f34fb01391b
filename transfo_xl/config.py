"""Transformer-XL's hyper-parameters."""

import dataclasses
import itertools
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import Field

from model_zoo.blocks.config import PYTORCH_FORMATS, Config
from model_zoo.errors import InputError
from model_zoo.util.fields import Count, Size, Whole


@dataclasses.dataclass
class TransfoXLConfig(Config):
    """Hyper-parameters of a Transformer-XL, named as in pytorch-pretrained-bert 0.6.2.

    Parameters
    ----------
    vocab_size : int
        Number of words ("n_token" in files of pytorch-pretrained-bert).
    cutoffs : list of int
        Ids at which the vocabulary, sorted by frequency, is cut into clusters; ascending. Empty:
        one cluster.
    d_model : int
        Units of the layers; even.
    d_embed : int
        Units of the first cluster's embedding.
    n_head, d_head : int
        Attention heads per layer, and their size.
    d_inner : int
        Units of the feed-forward layer.
    div_val : int
        The embedding of cluster i has ``d_embed // div_val ** i`` units.
    pre_lnorm : bool
        Whether normalization precedes each sub-layer, instead of following each residual.
    n_layer : int
    tgt_len : int
        Length of the segments that scripts feed to the model.
    ext_len : int
        Number of positions at the end of a segment that the memory leaves out.
    mem_len : int
        Length of the memory.
    clamp_len : int
        Larger distances count as this one; 0 or less: no limit.
    same_length : bool
        Whether each position attends to `mem_len` positions, itself included, instead of all.
    proj_share_all_but_first : bool
        Whether the softmax shares the embedding's projections, except the first.
    attn_type : {0}
        Only Transformer-XL's own kind of attention is supported.
    sample_softmax : int
        Must be below 1: a sampled softmax isn't supported.
    adaptive : bool
        Has no effect, as in the originals.
    tie_weight : bool
        Whether the softmax shares the embedding's tables.
    dropout, dropatt : float
        Rates on the outputs of embeddings and sub-layers, and on the attention probabilities.
    untie_r : bool
        Whether each layer has its own relative attention biases.
    init : {'normal', 'uniform'}
        Initializer of weights: with standard deviation `init_std`, or in the range `init_range`.
    init_range, proj_init_std, init_std : float
        `proj_init_std` is the standard deviation of the projections.
    layer_norm_epsilon : float
        1e-12 in pytorch-pretrained-bert, 1e-5 in transformers' files.
    tie_projs : list of bool, optional
        For each cluster, whether the softmax shares the embedding's projection. Default: see
        `proj_share_all_but_first`.

    Source: Dai et al., "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context";
    ``TransfoXLConfig`` of pytorch-pretrained-bert's modeling_transfo_xl.py.
    """

    model_type = 'transfo-xl'
    # pytorch-pretrained-bert's and transformers' names
    other_names = {'n_token': 'vocab_size', 'tie_word_embeddings': 'tie_weight'}

    vocab_size: int = 267735
    cutoffs: list[Count] = dataclasses.field(default_factory=lambda: [20000, 40000, 200000])
    d_model: int = 1024
    d_embed: int = 1024
    n_head: int = 16
    d_head: int = 64
    d_inner: int = 4096
    div_val: int = 4
    pre_lnorm: bool = False
    n_layer: int = 18
    tgt_len: int = 128
    ext_len: Size = 0
    mem_len: Size = 1600
    clamp_len: Annotated[Whole, Field(lt=2**31)] = 1000
    same_length: bool = True
    proj_share_all_but_first: bool = True
    attn_type: Literal[0] = 0
    sample_softmax: Annotated[Whole, Field(lt=1)] = -1
    adaptive: bool = True
    tie_weight: bool = True
    dropout: float = 0.1
    dropatt: float = 0.0
    untie_r: bool = True
    init: Literal['normal', 'uniform'] = 'normal'
    init_range: float = 0.01
    proj_init_std: float = 0.01
    init_std: float = 0.02
    layer_norm_epsilon: float = 1e-12
    tie_projs: list[bool] | None = None

    num_layers = property(attrgetter('n_layer'))
    num_heads = property(attrgetter('n_head'))
    units = property(attrgetter('d_model'))
    intermediate_size = property(attrgetter('d_inner'))

    def __post_init__(self, vocab_size_or_config_json_file):
        super().__post_init__(vocab_size_or_config_json_file)
        ends = [0, *self.cutoffs, self.vocab_size]
        if any(start >= end for start, end in itertools.pairwise(ends)):
            raise InputError(f'cutoffs {self.cutoffs} must ascend and be below {self.vocab_size}')
        self.cutoffs = list(self.cutoffs)
        if self.same_length and self.mem_len == 0:
            raise InputError('mem_len is 0: with same_length=True it must be at least 1')
        if self.d_model % 2:
            raise InputError(f'd_model must be even, but is {self.d_model}')
        if not self.embedding_units[-1]:
            raise InputError(f'div_val is {self.div_val}, too much for d_embed {self.d_embed}')
        if self.tie_projs is None:
            self.tie_projs = [False] + [bool(self.proj_share_all_but_first)] * len(self.cutoffs)
        if len(self.tie_projs) != len(self.sizes):
            raise InputError(f'tie_projs must have {len(self.sizes)} values, one for each cluster')

    def changed(self, fields):
        if 'cutoffs' in fields:  # which change the number of clusters
            fields = {'tie_projs': None, **fields}
        return super().changed(fields)

    def to_format(self, format, architecture=None):
        name, fields = super().to_format(format, architecture)
        if format in PYTORCH_FORMATS:
            fields.update(n_token=self.vocab_size, tie_word_embeddings=self.tie_weight)
        return name, fields

    #: the same as `vocab_size`, by pytorch-pretrained-bert's name
    n_token = property(attrgetter('vocab_size'))

    @property
    def ends(self):
        """Ends of the vocabulary's clusters: the cutoffs and its size."""
        return [*self.cutoffs, self.vocab_size]

    @property
    def sizes(self):
        """Number of words in each cluster."""
        return [end - start for start, end in zip([0, *self.cutoffs], self.ends)]

    @property
    def embedding_units(self):
        """Units of each cluster's embedding."""
        return [self.d_embed // self.div_val**i for i in range(len(self.ends))]

    @property
    def has_projections(self):
        """Whether there are matrices between the embeddings' units and `d_model`."""
        return self.div_val != 1 or self.d_embed != self.d_model
