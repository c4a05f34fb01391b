"""GPT's tokenizer, by the names of ``tokenization_openai.py``."""

import gpt
from gpt.tokenizer import text_standardize

from .file_utils import CachedTokenizer, archive_map

__all__ = ['PRETRAINED_VOCAB_ARCHIVE_MAP', 'OpenAIGPTTokenizer', 'text_standardize']

#: names that `OpenAIGPTTokenizer.from_pretrained` takes -> what they are called here
PRETRAINED_VOCAB_ARCHIVE_MAP = archive_map('gpt')


class OpenAIGPTTokenizer(CachedTokenizer, gpt.OpenAIGPTTokenizer):
    """See `gpt.OpenAIGPTTokenizer`."""
