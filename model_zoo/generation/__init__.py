"""Text that language models of any family write: greedy, sampled, or found by beam search."""

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
