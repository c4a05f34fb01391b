"""OpenAI GPT: configuration, model, task heads and tokenizer."""

from .config import OpenAIGPTConfig
from .heads import OpenAIGPTDoubleHeadsModel, OpenAIGPTLMHeadModel
from .model import OpenAIGPTModel
from .tokenizer import OpenAIGPTTokenizer

__all__ = [
    'OpenAIGPTConfig',
    'OpenAIGPTDoubleHeadsModel',
    'OpenAIGPTLMHeadModel',
    'OpenAIGPTModel',
    'OpenAIGPTTokenizer',
]
