"""Text that language models of any family write: greedy, sampled, or found by beam search."""

from .generate import Continuation, GenerationMixin, NewToken, generate, stream

__all__ = [
    'Continuation',
    'GenerationMixin',
    'NewToken',
    'generate',
    'stream',
]
