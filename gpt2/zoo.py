"""The family GPT-2, and the models that it adds to the zoo."""

import functools

from model_zoo.blocks.decoder_config import HPARAMS, OPTIONS
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import Family, register_family
from model_zoo.zoo import model_function, register_model

from .catalogue import PRETRAINED
from .heads import GPT2DoubleHeadsModel, GPT2LMHeadModel
from .model import GPT2Model
from .tokenizer import GPT2Tokenizer

__all__ = [
    'GPT2',
    'gpt2_12_768_12',
    'gpt2_24_1024_16',
    'gpt2_36_1280_20',
    'gpt2_48_1600_25',
    'gpt2_117m',
    'gpt2_345m',
    'gpt2_774m',
    'gpt2_1558m',
]

register_pretrained(*PRETRAINED)

#: what ``open_model`` knows of GPT-2
GPT2 = register_family(
    Family(
        'gpt2',
        GPT2Model,
        {'language_model': GPT2LMHeadModel, 'multiple_choice': GPT2DoubleHeadsModel},
        (GPT2Tokenizer,),
        hparams={**HPARAMS, 'hidden_size': ('n_inner',), 'activation': ('activation_function',)},
        zoo_task='language_model',
        release_names=('hparams.json',),
    )
)


_SOURCE = ' (Radford et al. 2019, table 2).'
_add = functools.partial(model_function, GPT2, module=__name__, options=OPTIONS)

gpt2_12_768_12 = _add('gpt2_12_768_12', f'GPT-2 small: 12 layers, 768 units, 12 heads{_SOURCE}')
gpt2_24_1024_16 = _add('gpt2_24_1024_16', f'GPT-2 medium: 24 layers, 1024 units, 16 heads{_SOURCE}')
gpt2_36_1280_20 = _add('gpt2_36_1280_20', f'GPT-2 large: 36 layers, 1280 units, 20 heads{_SOURCE}')
gpt2_48_1600_25 = _add('gpt2_48_1600_25', f'GPT-2 XL: 48 layers, 1600 units, 25 heads{_SOURCE}')

# GluonNLP's names, and names like them for the sizes that it doesn't have
gpt2_117m = register_model(gpt2_12_768_12, 'gpt2_117m')
gpt2_345m = register_model(gpt2_24_1024_16, 'gpt2_345m')
gpt2_774m = register_model(gpt2_36_1280_20, 'gpt2_774m')
gpt2_1558m = register_model(gpt2_48_1600_25, 'gpt2_1558m')
