"""Vectors of the tokens of texts: a line of the input -> a batch -> a record of a file."""

from .extract import SEPARATOR, FeatureExtractor
from .files import Arrays, JsonLines

__all__ = ['SEPARATOR', 'Arrays', 'FeatureExtractor', 'JsonLines']
