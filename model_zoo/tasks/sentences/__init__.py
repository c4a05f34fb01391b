"""Vectors of sentences: texts that belong together, or pairs with a score."""

from .evaluate import RECALLS, SentenceSettings, SentenceTask
from .features import SentenceFeatures
from .objective import LOSSES, make_loss
from .reader import SentenceExample, SentenceSet, read_sentences

__all__ = [
    'LOSSES',
    'RECALLS',
    'SentenceExample',
    'SentenceFeatures',
    'SentenceSet',
    'SentenceSettings',
    'SentenceTask',
    'make_loss',
    'read_sentences',
]
