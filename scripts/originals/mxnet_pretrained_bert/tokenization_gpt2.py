"""GPT-2's tokenizer, by the names of ``tokenization_gpt2.py``."""

from gpt2 import GPT2Tokenizer
from gpt2.tokenizer import bytes_to_unicode

__all__ = ['GPT2Tokenizer', 'bytes_to_unicode']
