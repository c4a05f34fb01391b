"""GPT-2's decoder."""

from model_zoo.blocks.decoder import DecoderModel

from .config import GPT2Config
from .mapping import MAPPINGS


class GPT2Block:
    """The configuration and names of `GPT2Model` and the task blocks."""

    config_class = GPT2Config

    @classmethod
    def name_maps(cls, config):
        return MAPPINGS


class GPT2Model(GPT2Block, DecoderModel):
    """GPT-2: a decoder that normalizes each layer's input.

    See `DecoderModel` for parameters, inputs and outputs; the outputs are the hidden states
    and the `presents`, which are the `past` of a later call.

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners", section 2.3;
    ``GPT2Model`` of pytorch-pretrained-bert's modeling_gpt2.py.

    Examples
    --------
    >>> model = GPT2Model(GPT2Config(n_layer=2, n_head=2, n_embd=8))
    >>> model.initialize()
    >>> words = mx.nd.array([[31, 51, 99], [15, 5, 0]], dtype='int32')
    >>> hidden, presents = model(words)
    >>> more, presents = model(words, past=presents)
    """

    pre_norm = True
    has_past = True
