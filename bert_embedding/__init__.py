"""Vectors of words and of sentences: API (`BertEmbedding`) and command line (`cli`)."""

import model_zoo  # noqa: F401  sets MXNet's threads before it loads

from .embedding import BertEmbedding

__all__ = ['BertEmbedding']
