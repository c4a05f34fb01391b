"""Vectors of words and of sentences: API (`BertEmbedding`) and command line (`cli`)."""

from typing import TYPE_CHECKING

from model_zoo.families import names_later  # model_zoo sets MXNet's threads before it loads

if TYPE_CHECKING:
    from .embedding import BertEmbedding as BertEmbedding

__getattr__, __all__ = names_later(__name__, {'.embedding': 'BertEmbedding'})
