"""Transformer-XL: configuration, model, language model, tokenizer and corpus."""

from .config import TransfoXLConfig
from .corpus import TransfoXLCorpus
from .heads import TransfoXLLMHeadModel
from .memory import CarriedMemory, SegmentReader
from .model import TransfoXLModel
from .streams import StreamLoader
from .tokenizer import TransfoXLTokenizer

__all__ = [
    'CarriedMemory',
    'SegmentReader',
    'StreamLoader',
    'TransfoXLConfig',
    'TransfoXLCorpus',
    'TransfoXLLMHeadModel',
    'TransfoXLModel',
    'TransfoXLTokenizer',
]
