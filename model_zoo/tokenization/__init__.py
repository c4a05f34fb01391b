"""Text to ids and back: one interface, and the parts of the families' tokenizers."""

from . import encoding
from .basic import BasicTokenizer, WordpieceTokenizer
from .encoding import *
from .tokenizer import FileTokenizer, Tokenizer

__all__ = ['BasicTokenizer', 'FileTokenizer', 'Tokenizer', 'WordpieceTokenizer', *encoding.__all__]
