"""Transformer-XL's tokenizer and corpus, by the names of ``tokenization_transfo_xl.py``."""

import transfo_xl
from transfo_xl import (
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
    TransfoXLCorpus,
    get_lm_corpus,
)

from .file_utils import CachedTokenizer, archive_map

__all__ = [
    'PRETRAINED_VOCAB_ARCHIVE_MAP',
    'LMMultiFileIterator',
    'LMOrderedIterator',
    'LMShuffledIterator',
    'TransfoXLCorpus',
    'TransfoXLTokenizer',
    'get_lm_corpus',
]

#: names that `TransfoXLTokenizer.from_pretrained` takes -> what they are called here
PRETRAINED_VOCAB_ARCHIVE_MAP = archive_map('transfo_xl')


class TransfoXLTokenizer(CachedTokenizer, transfo_xl.TransfoXLTokenizer):
    """See `transfo_xl.TransfoXLTokenizer`."""
