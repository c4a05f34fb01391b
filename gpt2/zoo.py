"""The family GPT-2, and the models that it adds to the zoo."""

from model_zoo.registry import Family, register_family
from model_zoo.zoo import add_models

from .heads import GPT2DoubleHeadsModel, GPT2LMHeadModel
from .model import GPT2Model
from .tokenizer import GPT2Tokenizer

_TASKS = {'language_model': GPT2LMHeadModel, 'multiple_choice': GPT2DoubleHeadsModel}
_OPTIONS = {'zoo_task': 'language_model', 'release_names': ('hparams.json',)}
#: what ``open_model`` knows of GPT-2
GPT2 = register_family(Family('gpt2', GPT2Model, _TASKS, (GPT2Tokenizer,), **_OPTIONS))
# GluonNLP's names, too, and names like them for the sizes that it doesn't have
__all__ = ['GPT2', *add_models(GPT2, __name__)]
