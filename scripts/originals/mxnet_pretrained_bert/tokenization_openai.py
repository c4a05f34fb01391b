"""GPT's tokenizer, by the names of ``tokenization_openai.py``."""

from gpt import OpenAIGPTTokenizer
from gpt.tokenizer import text_standardize

__all__ = ['OpenAIGPTTokenizer', 'text_standardize']
