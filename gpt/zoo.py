"""The family OpenAI GPT, and the model that it adds to the zoo, of Radford et al. 2018."""

from model_zoo.registry import Family, register_family
from model_zoo.zoo import add_models

from .heads import OpenAIGPTDoubleHeadsModel, OpenAIGPTLMHeadModel
from .model import OpenAIGPTModel
from .tokenizer import OpenAIGPTTokenizer

_TASKS = {'language_model': OpenAIGPTLMHeadModel, 'multiple_choice': OpenAIGPTDoubleHeadsModel}
_OPTIONS = {'zoo_task': 'language_model', 'release_names': ('params_shapes.json',)}
#: what ``open_model`` knows of OpenAI GPT
GPT = register_family(Family('gpt', OpenAIGPTModel, _TASKS, (OpenAIGPTTokenizer,), **_OPTIONS))
__all__ = ['GPT', *add_models(GPT, __name__)]
