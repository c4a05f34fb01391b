"""Language models: blocks of a text, perplexity."""

from .loaders import BlockLoader
from .perplexity import evaluate_perplexity, measure_perplexity

__all__ = ['BlockLoader', 'evaluate_perplexity', 'measure_perplexity']
