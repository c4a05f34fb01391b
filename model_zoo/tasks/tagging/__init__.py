"""Tags of words: CoNLL files, features, batches, scores of entities."""

from .conll import Sentence, read_conll, write_conll
from .tagging import (
    TaggingBatch,
    TaggingFeature,
    TaggingFeatures,
    TaggingLoader,
    entity_scorer,
    has_entities,
    labels_of_sentences,
    score_tags,
)

__all__ = [
    'Sentence',
    'TaggingBatch',
    'TaggingFeature',
    'TaggingFeatures',
    'TaggingLoader',
    'entity_scorer',
    'has_entities',
    'labels_of_sentences',
    'read_conll',
    'score_tags',
    'write_conll',
]
