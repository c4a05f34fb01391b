"""Byte pair encoding: the base of its tokenizers.

Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), as
OpenAI's releases of GPT and GPT-2 and pytorch-pretrained-bert 0.6.2 do it.

The words are found in Python, as in the originals, and merged by the library `tokenizers`. That
merges place by place, the originals pair by pair; the result is the same if each pair follows all
pairs that make its two symbols, as in the released files.
"""

import functools
import json
import os

import regex
from tokenizers import Tokenizer as Library
from tokenizers import decoders, pre_tokenizers

from ..errors import InputError
from ..pretrained.files import BPE_NAMES
from ..util.files import atomic_write, make_writable_dir, write_json
from ..util.reading import read_lines
from .bpe_files import has_word_ends, read_pairs
from .encoding import Pieces, call_rust, checked, cover, encode_rust, list_of_texts
from .settings import ADDED_NAME, OWN_ADDED_NAME
from .tokenizer import Tokenizer
from .vocab import make_vocab

__all__ = ['BPETokenizer', 'ByteLevelTokenizer', 'byte_level', 'bytes_to_unicode']


class _Pairs(Pieces):
    """The pieces of words, each of which is in the `table` with its ids, tokens and offsets."""

    __slots__ = ('_owner', '_table', '_text', '_words')

    def __init__(self, owner, table, text, words):
        self._owner, self._table, self._text, self._words = owner, table, text, words

    def ids(self):
        return [i for word in self._words for i in self._table[word][0]]

    def tokens(self):
        return [token for word in self._words for token in self._table[word][1]]

    def offsets(self):
        aligned = zip(self._words, self._owner._align(self._text))
        return [cover(chars, *span) for word, chars in aligned for span in self._table[word][2]]

    def words(self):
        return list(self._words)

    def numbers(self):
        return [n for n, word in enumerate(self._words) for _ in self._table[word][0]]


class BPETokenizer(Tokenizer):
    """Base of tokenizers over byte pairs: files, merging, special tokens.

    A subclass has ``_words_of(text)``, ``_align(text)``, the spans of the words' characters,
    ``_to_library``, and `decode`.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        JSON object of tokens and ids.
    merges_file : str or os.PathLike
        One pair of symbols per line.
    special_tokens : list of str, optional
        See :meth:`set_special_tokens`.
    max_len : int, optional
        Longer results log a warning; usually the number of the model's positions.

    Attributes
    ----------
    encoder, decoder : dict
        Tokens to ids, and ids to tokens; without the special tokens.
    special_tokens, special_tokens_decoder : dict
        Special tokens to ids, and ids to special tokens.
    bpe_ranks : dict of (str, str) to int
    """

    kinds = ('bpe',)
    suffix = ''  # that the last symbol of each word has
    _default_pad_id = 0

    def __init__(self, vocab_file, merges_file, special_tokens=None, max_len=None):
        super().__init__(max_len)
        if has_word_ends(merges_file) != bool(self.suffix):
            raise InputError(
                f'the merges {os.fspath(merges_file)!r} are not for {type(self).__name__} but for '
                'a tokenizer of another family: take the files of one release'
            )
        suffix = {'end_of_word_suffix': self.suffix} if self.suffix else {}
        self.encoder, self.bpe_ranks, model = read_pairs(vocab_file, merges_file, **suffix)
        self.decoder = {token_id: token for token, token_id in self.encoder.items()}
        self._rust = Library(model)
        self.set_special_tokens(special_tokens)

    def _library_tokens(self):
        return list(self.special_tokens)

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        kwargs = {'max_len': file.settings.max_len(), **kwargs}
        special = os.path.join(os.path.dirname(file.path), OWN_ADDED_NAME)
        if 'special_tokens' not in kwargs and os.path.isfile(special):
            lines = (line.rstrip('\r\n') for _, line in read_lines(special))
            kwargs['special_tokens'] = [line for line in lines if line]
        return cls(file.path, file.merges_path, **kwargs)

    @functools.cached_property
    def vocab(self):
        """All tokens, including special ones, with this tokenizer's ids."""
        return make_vocab({**self.encoder, **self.special_tokens})

    def set_special_tokens(self, special_tokens):
        """Replace the tokens that come after the vocabulary.

        As in the original, texts don't produce their ids, except where a symbol that the vocabulary
        lacks is such a token. Use :meth:`convert_tokens_to_ids`.

        They are in the order of their ids, from the vocabulary's length on.
        """
        tokens = list_of_texts(special_tokens or [], 'special_tokens')
        for index, token in enumerate(tokens):
            if not isinstance(token, str) or not token or '\n' in token or '\r' in token:
                raise InputError(f'special token {token!r} must be a str without line breaks')
            if token in self.encoder or token in tokens[:index]:
                raise InputError(f'special token {token!r} is there already; give each one once')
        start = max(self.decoder) + 1
        self.special_tokens = {token: start + index for index, token in enumerate(tokens)}
        self.special_tokens_decoder = {index: token for token, index in self.special_tokens.items()}
        self._vocab_changed()

    def bpe(self, token):
        """The pieces of a word, separated by spaces, as in the original."""
        return ' '.join(piece.value for piece in call_rust(self._rust.model.tokenize, token))

    def save_vocabulary(self, vocab_path):
        """Write ``vocab.json``, ``merges.txt`` and ``special_tokens.txt``; returns the paths."""
        vocab_path = make_writable_dir(vocab_path)
        vocab_name, merges_name = next(iter(BPE_NAMES.items()))
        names = vocab_name, merges_name, OWN_ADDED_NAME
        paths = tuple(os.path.join(vocab_path, name) for name in names)
        with atomic_write(paths[0]) as file:
            json.dump(self.encoder, file, ensure_ascii=False)
        with atomic_write(paths[1]) as file:
            file.write('#version: 0.2\n')
            file.writelines(f'{first} {second}\n' for first, second in self.bpe_ranks)
        with atomic_write(paths[2]) as file:
            file.writelines(f'{token}\n' for token in self.special_tokens)
        return paths

    def _save_files(self, directory):
        paths = self.save_vocabulary(directory)
        if not self.special_tokens:
            return paths
        added_path = os.path.join(directory, ADDED_NAME)  # where transformers looks for them
        write_json(added_path, self.special_tokens)
        return (*paths, added_path)

    def _special_ids(self):
        return self.special_tokens_decoder

    def _pieces(self, texts):
        texts = [checked(text) for text in texts]
        words = list(map(self._words_of, texts))
        known = list(set().union(*words))  # most words occur again and again
        encodings = encode_rust(self._rust, known)
        table = {}
        for word, encoding in zip(known, encodings):
            tokens, ids = self._spelled(word, encoding), encoding.ids
            if self.special_tokens:  # as in the original, an unknown symbol may be such a token
                ids = [self.special_tokens.get(token, i) for token, i in zip(tokens, ids)]
            table[word] = ids, tokens, encoding.offsets
        return [_Pairs(self, table, *parts) for parts in zip(texts, words)]

    def _spelled(self, word, encoding):
        """The tokens; as in the originals, a symbol with the unknown token's id stays itself."""
        tokens, unknown = encoding.tokens, self.unk_token
        if unknown not in tokens:
            return tokens
        symbols = (
            word[start:end] + self.suffix * (end == len(word)) for start, end in encoding.offsets
        )
        return [s if token == unknown else token for s, token in zip(symbols, tokens)]


# The models' definition: contractions, then letters, digits and symbols, each with a space before
# it where there is one, and spaces, of which the last belongs to what follows.
_PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def bytes_to_unicode():
    """A printable character for each byte, as in the vocabulary's tokens."""
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    others = iter(sorted(char for char in alphabet if ord(char) > 255))
    return {byte: chr(byte) if chr(byte) in alphabet else next(others) for byte in range(256)}


def byte_level(model):
    """A tokenizer of the library for byte pairs of UTF-8."""
    rust = Library(model)
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    return rust


class ByteLevelTokenizer(BPETokenizer):
    """Byte pair encoding of a text's UTF-8 bytes: every text has ids, and can be decoded.

    A lone surrogate, which no encoding can carry, is replaced by U+FFFD. The words are those of
    ``encoder.py`` of openai/gpt-2 (pytorch-pretrained-bert 0.6.2 takes a text's characters for its
    bytes, and agrees on ASCII only), found by the module `regex`, as there: the library's Unicode
    tables lack 17 thousand characters.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        ``vocab.json``, or the release's ``encoder.json``.
    merges_file : str or os.PathLike
        ``merges.txt``, or the release's ``vocab.bpe``.
    errors : str
        How :meth:`decode` handles bytes that aren't UTF-8, as in `bytes.decode`.
    """

    word_prefix = ' '

    def __init__(
        self, vocab_file, merges_file, errors='replace', special_tokens=None, max_len=None
    ):
        self.errors = errors
        self.byte_encoder = bytes_to_unicode()
        self.byte_decoder = {char: byte for byte, char in self.byte_encoder.items()}
        super().__init__(vocab_file, merges_file, special_tokens, max_len)
        self._rust.pre_tokenizer = pre_tokenizers.ByteLevel(False, use_regex=False)

    def decode(self, ids, skip_special_tokens=False):
        """Text of a sequence of ids, which may end inside a character; see `errors`."""
        content = bytearray()
        for token in self.convert_ids_to_tokens(ids, skip_special_tokens):
            chars = [self.byte_decoder.get(char) for char in token]
            # no bytes, but a token that someone added to the vocabulary
            whole = token in self.special_tokens or None in chars
            content += token.encode() if whole else bytes(chars)
        return content.decode('utf-8', errors=self.errors)

    def _to_library(self):
        return byte_level(self._rust.model)

    def _words_of(self, text):
        return _PATTERN.findall(text)

    def _align(self, text):
        spans = (match.span() for match in _PATTERN.finditer(text))
        return [[(n, n + 1) for n in range(*span)] for span in spans]
