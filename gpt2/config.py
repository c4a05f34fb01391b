"""GPT-2's hyper-parameters."""

import dataclasses
from operator import attrgetter

from model_zoo.blocks.decoder_config import DecoderConfig
from model_zoo.errors import InputError
from model_zoo.util.fields import Count


@dataclasses.dataclass
class GPT2Config(DecoderConfig):
    """Hyper-parameters of a GPT-2 model, named as in pytorch-pretrained-bert and transformers.

    Parameters
    ----------
    vocab_size, n_special, n_positions, n_ctx, n_embd, n_layer, n_head, resid_pdrop, embd_pdrop, \
attn_pdrop, layer_norm_epsilon, initializer_range, pruned_heads
        See `DecoderConfig`.
    n_inner : int, optional
        Units of the feed-forward layer; by default four times `n_embd`.
    activation_function : str
        Activation of the feed-forward layer, as in `BertConfig`.

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners", section 2.3;
    ``GPT2Config`` of pytorch-pretrained-bert's modeling_gpt2.py; ``hparams.json`` of openai/gpt-2.
    """

    model_type = 'gpt2'
    scaling = {'scale_attn_weights': True, 'scale_attn_by_inverse_layer_idx': False}
    fixed = {**DecoderConfig.fixed, **scaling}
    other_names = {'n_vocab': 'vocab_size', 'n_ctx': 'n_positions'}  # of OpenAI's hparams.json

    vocab_size: int = 50257
    n_positions: int = 1024
    n_ctx: int = 1024
    n_inner: Count | None = None
    activation_function: str = 'gelu_new'

    def to_format(self, format, architecture=None):
        name, fields = super().to_format(format, architecture)
        if format == 'tensorflow':
            if self.intermediate_size != 4 * self.n_embd:
                raise InputError(f'hparams.json has no place for n_inner {self.n_inner}')
            names = ('n_ctx', 'n_embd', 'n_head', 'n_layer')
            fields = {name: getattr(self, name) for name in names}
            return 'hparams.json', {'n_vocab': self.total_tokens_embeddings, **fields}
        return name, fields

    activation = property(attrgetter('activation_function'))

    @property
    def intermediate_size(self):
        return 4 * self.n_embd if self.n_inner is None else self.n_inner
