"""What the families' tokenizers share: words, byte pairs, chunks, batches."""

from .basic import BasicTokenizer

__all__ = ['BasicTokenizer']
