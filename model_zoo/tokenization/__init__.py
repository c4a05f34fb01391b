"""Text to ids and back: one interface, and the parts of the families' tokenizers."""

from .basic import BasicTokenizer, WordpieceTokenizer
from .encoding import BatchEncoding, Encoding, Frame, LibraryPieces, ListedPieces
from .tokenizer import FileTokenizer, Tokenizer

__all__ = [
    'BasicTokenizer',
    'BatchEncoding',
    'Encoding',
    'FileTokenizer',
    'Frame',
    'LibraryPieces',
    'ListedPieces',
    'Tokenizer',
    'WordpieceTokenizer',
]
