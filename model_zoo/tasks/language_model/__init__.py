"""Language models: blocks and streams of a text, perplexity."""

from .batches import BlockBatch, BlockLoader, StreamBatch, StreamLoader
from .memory import CarriedMemory
from .perplexity import evaluate_perplexity, measure_perplexity

__all__ = [
    'BlockBatch',
    'BlockLoader',
    'CarriedMemory',
    'StreamBatch',
    'StreamLoader',
    'evaluate_perplexity',
    'measure_perplexity',
]
