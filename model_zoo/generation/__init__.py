"""Text generation by language models of any family: greedy, sampled, or by beam search."""

from .generate import (
    Continuation,
    GenerationMixin,
    NewToken,
    StreamedText,
    generate,
    stream,
    text_of,
)

__all__ = [
    'Continuation',
    'GenerationMixin',
    'NewToken',
    'StreamedText',
    'generate',
    'stream',
    'text_of',
]
