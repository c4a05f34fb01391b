"""Transformer-XL: configuration, model, language model, tokenizer and corpus."""

from .config import TransfoXLConfig
from .corpus import TransfoXLCorpus, get_lm_corpus
from .heads import TransfoXLLMHeadModel
from .model import TransfoXLModel
from .tokenizer import TransfoXLTokenizer

__all__ = [
    'TransfoXLConfig',
    'TransfoXLCorpus',
    'TransfoXLLMHeadModel',
    'TransfoXLModel',
    'TransfoXLTokenizer',
    'get_lm_corpus',
]
