"""Task heads on top of OpenAI GPT."""

from model_zoo.blocks.decoder_heads import DecoderDoubleHeads, DecoderLM
from model_zoo.generation import GenerationMixin

from .model import OpenAIGPTBlock, OpenAIGPTModel


class OpenAIGPTLMHeadModel(OpenAIGPTBlock, DecoderLM, GenerationMixin):
    """OpenAI GPT with a language model head: the product with the word embedding.

    See `DecoderLM` for parameters, inputs and outputs; there is no past.

    Source: ``OpenAIGPTLMHeadModel`` of pytorch-pretrained-bert's modeling_openai.py.
    """

    model_class = OpenAIGPTModel


class OpenAIGPTDoubleHeadsModel(OpenAIGPTBlock, DecoderDoubleHeads):
    """OpenAI GPT with a language model head and a multiple choice head.

    See `DecoderDoubleHeads` for parameters, inputs and outputs; there is no past.

    Source: Radford et al., section 3.2; ``OpenAIGPTDoubleHeadsModel`` of pytorch-pretrained-bert's
    modeling_openai.py.
    """

    model_class = OpenAIGPTModel
