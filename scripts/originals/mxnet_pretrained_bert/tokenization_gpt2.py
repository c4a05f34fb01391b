"""GPT-2's tokenizer, by the names of ``tokenization_gpt2.py``."""

import gpt2
from gpt2.tokenizer import bytes_to_unicode

from .file_utils import CachedTokenizer, archive_map

__all__ = ['PRETRAINED_VOCAB_ARCHIVE_MAP', 'GPT2Tokenizer', 'bytes_to_unicode']

#: names that `GPT2Tokenizer.from_pretrained` takes -> what they are called here
PRETRAINED_VOCAB_ARCHIVE_MAP = archive_map('gpt2')


class GPT2Tokenizer(CachedTokenizer, gpt2.GPT2Tokenizer):
    """See `gpt2.GPT2Tokenizer`."""
