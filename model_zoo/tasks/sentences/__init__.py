"""Vectors of sentences: texts that belong together, or pairs with a score."""

from .evaluate import RECALLS, SentenceEvaluator
from .features import SentenceFeatures
from .objective import LOSSES, make_loss
from .reader import SentenceExample, SentenceSet, read_sentences

__all__ = [
    'LOSSES',
    'RECALLS',
    'SentenceEvaluator',
    'SentenceExample',
    'SentenceFeatures',
    'SentenceSet',
    'make_loss',
    'read_sentences',
]
