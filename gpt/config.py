"""OpenAI GPT's hyper-parameters."""

import dataclasses
from operator import attrgetter

from model_zoo.blocks.decoder_config import DecoderConfig

# OpenAI's name of an activation function -> this project's: its gelu is the approximation by tanh
_ACTIVATIONS = {'gelu': 'gelu_new'}


@dataclasses.dataclass
class OpenAIGPTConfig(DecoderConfig):
    """Hyper-parameters of an OpenAI GPT model, named as in pytorch-pretrained-bert.

    Parameters
    ----------
    vocab_size, n_special, n_positions, n_ctx, n_embd, n_layer, n_head, resid_pdrop, embd_pdrop, \
attn_pdrop, layer_norm_epsilon, initializer_range, pruned_heads
        See `DecoderConfig`.
    afn : str
        Activation of the feed-forward layer, as in `BertConfig`; "gelu" is its approximation by
        tanh here.

    References
    ----------
    Radford et al., "Improving Language Understanding by Generative Pre-Training", section 4.1;
    ``OpenAIGPTConfig`` of pytorch-pretrained-bert's modeling_openai.py.
    """

    model_type = 'openai-gpt'

    vocab_size: int = 40478
    afn: str = 'gelu'

    @property
    def activation(self):
        return _ACTIVATIONS.get(self.afn, self.afn)

    mc_pdrop = property(attrgetter('resid_pdrop'))
