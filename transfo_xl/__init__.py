"""Transformer-XL: configuration, model, language model, tokenizer and corpus."""

from .config import TransfoXLConfig
from .corpus import TransfoXLCorpus, get_lm_corpus
from .heads import TransfoXLLMHeadModel
from .memory import CarriedMemory, SegmentReader
from .model import TransfoXLModel
from .streams import LMMultiFileIterator, LMOrderedIterator, LMShuffledIterator, StreamLoader
from .tokenizer import TransfoXLTokenizer

__all__ = [
    'CarriedMemory',
    'LMMultiFileIterator',
    'LMOrderedIterator',
    'LMShuffledIterator',
    'SegmentReader',
    'StreamLoader',
    'TransfoXLConfig',
    'TransfoXLCorpus',
    'TransfoXLLMHeadModel',
    'TransfoXLModel',
    'TransfoXLTokenizer',
    'get_lm_corpus',
]
