"""Vectors of words and of sentences: API (`BertEmbedding`) and command line (`cli`)."""

from typing import TYPE_CHECKING

import model_zoo  # noqa: F401  sets MXNet's threads before it loads

if TYPE_CHECKING:
    from .embedding import BertEmbedding

__all__ = ['BertEmbedding']


def __getattr__(name):
    if name != 'BertEmbedding':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from .embedding import BertEmbedding

    return BertEmbedding
