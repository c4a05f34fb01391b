"""Transformer-XL's tokenizer and corpus, by the names of ``tokenization_transfo_xl.py``."""

from transfo_xl import (
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
    TransfoXLCorpus,
    TransfoXLTokenizer,
    get_lm_corpus,
)

__all__ = [
    'LMMultiFileIterator',
    'LMOrderedIterator',
    'LMShuffledIterator',
    'TransfoXLCorpus',
    'TransfoXLTokenizer',
    'get_lm_corpus',
]
