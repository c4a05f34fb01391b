"""Task heads on top of GPT-2."""

from model_zoo.blocks.decoder_heads import DecoderDoubleHeads, DecoderLM
from model_zoo.generation import GenerationMixin

from .model import GPT2Block, GPT2Model


class GPT2LMHeadModel(GPT2Block, DecoderLM, GenerationMixin):
    """GPT-2 with a language model head: the product with the word embedding.

    See `DecoderLM` for parameters, inputs and outputs.

    Source: ``GPT2LMHeadModel`` of pytorch-pretrained-bert's modeling_gpt2.py.
    """

    model_class = GPT2Model


class GPT2DoubleHeadsModel(GPT2Block, DecoderDoubleHeads):
    """GPT-2 with a language model head and a multiple choice head.

    See `DecoderDoubleHeads` for parameters, inputs and outputs. The language model loss shifts the
    tokens' axis; the original shifts the choices' axis by mistake.

    Source: ``GPT2DoubleHeadsModel`` of pytorch-pretrained-bert's modeling_gpt2.py.
    """

    model_class = GPT2Model
