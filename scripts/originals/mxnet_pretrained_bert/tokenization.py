"""BERT's tokenizers, by the names of ``tokenization.py``."""

import copy
from collections.abc import ItemsView, KeysView, ValuesView

from gluonnlp.vocab import BERTVocab

import bert
from bert.tokenization import (  # noqa: F401  names of the original
    _is_control,
    _is_punctuation,
    _is_whitespace,
    load_vocab,
    whitespace_tokenize,
)
from model_zoo.tokenization import BasicTokenizer, WordpieceTokenizer  # noqa: F401

from .file_utils import CachedTokenizer, archive_map

#: name of a vocabulary's file
VOCAB_NAME = 'vocab.txt'
#: names that `BertTokenizer.from_pretrained` takes -> what they are called here
PRETRAINED_VOCAB_ARCHIVE_MAP = archive_map('bert')


class TokenIds(BERTVocab):
    """A vocabulary that is also the original's dict of tokens and ids, in the ids' order."""

    def __iter__(self):
        return iter(self.idx_to_token)

    def keys(self):
        return KeysView(self)

    def values(self):
        return ValuesView(self)

    def items(self):
        return ItemsView(self)

    def get(self, token, default=None):
        return self.token_to_idx.get(token, default)


class BertTokenizer(CachedTokenizer, bert.BertTokenizer):
    """See `bert.BertTokenizer`; `vocab` is also a dict of tokens and ids."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.vocab = copy.copy(self.vocab)
        self.vocab.__class__ = TokenIds
