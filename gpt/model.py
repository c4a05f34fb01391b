"""OpenAI GPT's decoder."""

from model_zoo.blocks.decoder import DecoderModel

from .config import OpenAIGPTConfig
from .mapping import MAPPINGS


class OpenAIGPTBlock:
    """The configuration and names of `OpenAIGPTModel` and the task blocks."""

    config_class = OpenAIGPTConfig

    @classmethod
    def name_maps(cls, config):
        return MAPPINGS


class OpenAIGPTModel(OpenAIGPTBlock, DecoderModel):
    """OpenAI GPT: a decoder that normalizes after each residual.

    See `DecoderModel` for parameters, inputs and outputs; there is no past.

    References
    ----------
    Radford et al., "Improving Language Understanding by Generative Pre-Training", section 3.1;
    ``OpenAIGPTModel`` of pytorch-pretrained-bert's modeling_openai.py.
    """
