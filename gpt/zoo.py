"""The family OpenAI GPT, and the model that it adds to the zoo."""

from model_zoo.blocks.decoder_config import HPARAMS, OPTIONS
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import Family, register_family
from model_zoo.zoo import model_function

from .catalogue import PRETRAINED
from .heads import OpenAIGPTDoubleHeadsModel, OpenAIGPTLMHeadModel
from .model import OpenAIGPTModel
from .tokenizer import OpenAIGPTTokenizer

__all__ = ['GPT', 'gpt_12_768_12']

register_pretrained(*PRETRAINED)

#: what ``open_model`` knows of OpenAI GPT
GPT = register_family(
    Family(
        'gpt',
        OpenAIGPTModel,
        {'language_model': OpenAIGPTLMHeadModel, 'multiple_choice': OpenAIGPTDoubleHeadsModel},
        (OpenAIGPTTokenizer,),
        hparams={**HPARAMS, 'activation': ('afn',)},
        zoo_task='language_model',
        release_names=('params_shapes.json',),
    )
)


gpt_12_768_12 = model_function(
    GPT,
    'gpt_12_768_12',
    'OpenAI GPT: 12 layers, 768 units, 12 heads (Radford et al. 2018, section 4.1).',
    __name__,
    OPTIONS,
)
