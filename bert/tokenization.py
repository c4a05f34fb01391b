"""``from bert import tokenization``: the names of Google's ``tokenization.py``."""

import collections
import os
import unicodedata

from model_zoo.tokenization.basic import _is_punctuation
from model_zoo.util.reading import read_lines

from .tokenizer import BasicTokenizer, BertTokenizer, WordpieceTokenizer

__all__ = [
    'BasicTokenizer',
    'FullTokenizer',
    'WordpieceTokenizer',
    '_is_control',
    '_is_punctuation',
    '_is_whitespace',
    'convert_by_vocab',
    'convert_ids_to_tokens',
    'convert_to_unicode',
    'convert_tokens_to_ids',
    'load_vocab',
    'printable_text',
    'whitespace_tokenize',
]


class FullTokenizer(BertTokenizer):
    """`BertTokenizer` with the arguments of Google's ``tokenization.FullTokenizer``.

    As there, special tokens in a text are split as other words are, and words of more than 200
    letters are unknown.
    """

    def __init__(self, vocab_file, do_lower_case=True, max_len=None):
        super().__init__(
            vocab_file, do_lower_case, max_len, never_split=(), max_input_chars_per_word=200
        )
        self.inv_vocab = self.ids_to_tokens


def convert_to_unicode(text):
    """Return a text as a str: bytes are decoded as UTF-8, and invalid ones are left out."""
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode('utf-8', 'ignore')
    raise ValueError(f'a text is a str or bytes, not {type(text).__name__}')


def printable_text(text):
    """Return a text that can be printed: the same as `convert_to_unicode`."""
    return convert_to_unicode(text)


def load_vocab(vocab_file):
    """Return the tokens of a vocabulary's file, and their ids."""
    lines = enumerate(line for _, line in read_lines(os.fspath(vocab_file)))
    return collections.OrderedDict((line.strip(), number) for number, line in lines)


def convert_by_vocab(vocab, items):
    """Return the values of a dict for several items, a list."""
    return [vocab[item] for item in items]


def convert_tokens_to_ids(vocab, tokens):
    """Return the ids of tokens, by a dict of all tokens."""
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab, ids):
    """Return the tokens of ids, by a dict of all ids."""
    return convert_by_vocab(inv_vocab, ids)


def whitespace_tokenize(text):
    """Return a text's parts between white space."""
    return text.split()


def _is_whitespace(char):
    """Return whether a character separates words."""
    return char in ' \t\n\r' or unicodedata.category(char) == 'Zs'


def _is_control(char):
    """Return whether a character is left out of a text."""
    return char not in '\t\n\r' and unicodedata.category(char)[0] == 'C'
