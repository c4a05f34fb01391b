"""GPT-2: configuration, model, task heads and tokenizer."""

from .config import GPT2Config
from .heads import GPT2DoubleHeadsModel, GPT2LMHeadModel
from .model import GPT2Model
from .tokenizer import GPT2Tokenizer

__all__ = ['GPT2Config', 'GPT2DoubleHeadsModel', 'GPT2LMHeadModel', 'GPT2Model', 'GPT2Tokenizer']
