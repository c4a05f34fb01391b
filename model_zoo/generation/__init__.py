"""Text that language models of any family write: greedy, sampled, or found by beam search."""

from .decoding import TEXT_ENDS, StreamedText, text_ends, text_of
from .generate import Continuation, GenerationMixin, NewToken, generate, stream

__all__ = [
    'TEXT_ENDS',
    'Continuation',
    'GenerationMixin',
    'NewToken',
    'StreamedText',
    'generate',
    'stream',
    'text_ends',
    'text_of',
]
