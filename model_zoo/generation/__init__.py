"""Text generation by language models of any family: greedy, sampled, or by beam search."""

from .generate import (
    TEXT_ENDS,
    Continuation,
    GenerationMixin,
    NewToken,
    StreamedText,
    generate,
    stream,
    text_ends,
    text_of,
)

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
