"""Tags of words: CoNLL files, samples, scores of entities, evaluation."""

from .conll import Sentence, read_conll, write_conll
from .evaluate import TaggingSettings, TaggingTask, predict_words
from .features import TaggingFeatures
from .metrics import entity_scorer, has_entities, labels_of_sentences, score_tags

__all__ = [
    'Sentence',
    'TaggingFeatures',
    'TaggingSettings',
    'TaggingTask',
    'entity_scorer',
    'has_entities',
    'labels_of_sentences',
    'predict_words',
    'read_conll',
    'score_tags',
    'write_conll',
]
