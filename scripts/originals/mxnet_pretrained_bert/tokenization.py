"""BERT's tokenizers, by the names of ``tokenization.py``."""

import bert
from bert.tokenization import (
    _is_control,
    _is_punctuation,
    _is_whitespace,
    load_vocab,
    whitespace_tokenize,
)
from model_zoo.tokenization import BasicTokenizer, WordpieceTokenizer

from .file_utils import CachedTokenizer, archive_map

__all__ = [
    'PRETRAINED_VOCAB_ARCHIVE_MAP',
    'VOCAB_NAME',
    'BasicTokenizer',
    'BertTokenizer',
    'WordpieceTokenizer',
    '_is_control',
    '_is_punctuation',
    '_is_whitespace',
    'load_vocab',
    'whitespace_tokenize',
]

#: name of a vocabulary's file
VOCAB_NAME = 'vocab.txt'
#: names that `BertTokenizer.from_pretrained` takes -> what they are called here
PRETRAINED_VOCAB_ARCHIVE_MAP = archive_map('bert')


class BertTokenizer(CachedTokenizer, bert.BertTokenizer):
    """See `bert.BertTokenizer`."""
