"""Transformer-XL: configuration, model, language model, tokenizer and corpus."""

from .config import TransfoXLConfig
from .heads import TransfoXLLMHeadModel
from .model import TransfoXLModel
from .tokenizer import TransfoXLCorpus, TransfoXLTokenizer, get_lm_corpus

__all__ = [
    'TransfoXLConfig',
    'TransfoXLCorpus',
    'TransfoXLLMHeadModel',
    'TransfoXLModel',
    'TransfoXLTokenizer',
    'get_lm_corpus',
]
