"""Byte pair encoding: merging, and the base of its tokenizers.

Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), as
OpenAI's releases of GPT and GPT-2 and pytorch-pretrained-bert 0.6.2 do it.

A word's symbols are merged pair by pair: always the pair that comes first in the merges file, at
all its places in the word at once. The Rust library `tokenizers` merges place by place. The result
is the same if each pair follows all pairs that make its two symbols, as in the released files. For
other files, and for words with symbols outside the vocabulary, :func:`merge_symbols` is used.

Of a text's UTF-8 bytes, as GPT-2 and RoBERTa have it: ``encoder.py`` of openai/gpt-2, whose ids
this gives. (pytorch-pretrained-bert 0.6.2 takes a text's characters for its bytes, so that it
agrees on ASCII only.) The module `regex` finds the words, as in the original: the Rust library's
``ByteLevel`` would cut differently beside 17 thousand characters that its Unicode tables lack.
"""

import collections
import heapq
import json
import logging
import os

import regex
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ..errors import InputError
from ..pretrained.files import BPE_NAMES
from ..util.files import atomic_write, make_writable_dir, write_json
from ..util.reading import read_lines
from .bpe_files import read_bpe_vocab, read_merges
from .chunks import Chunk, ChunkTokenizer
from .encoding import UNLIMITED, list_of_texts
from .settings import ADDED_NAME, OWN_ADDED_NAME
from .vocab import find_roles, make_vocab

__all__ = ['BPETokenizer', 'ByteLevelTokenizer', 'byte_level', 'bytes_to_unicode', 'merge_symbols']

_log = logging.getLogger(__name__)


def merge_symbols(symbols, ranks):
    """Merge neighbours, in the order of `ranks`, until no pair of `ranks` is left.

    Takes O(n log n) time for n symbols.
    """
    symbols, count = list(symbols), len(symbols)
    following, previous = list(range(1, count + 1)), list(range(-1, count - 1))
    positions = collections.defaultdict(list)  # pair -> where it may stand
    queue = []

    def note(first, second):
        pair = symbols[first], symbols[second]
        if pair in ranks:
            if pair not in positions:
                heapq.heappush(queue, (ranks[pair], pair))
            positions[pair].append(first)

    for first in range(count - 1):
        note(first, first + 1)
    while queue:
        _, pair = heapq.heappop(queue)
        for first in sorted(positions.pop(pair)):
            second = following[first]
            if second == count or (symbols[first], symbols[second]) != pair:
                continue  # one of the two was merged with its other neighbour
            symbols[first], symbols[second] = ''.join(pair), None
            after = following[first] = following[second]
            if after < count:
                previous[after] = first
                note(first, after)
            if previous[first] >= 0:
                note(previous[first], first)
    return [symbol for symbol in symbols if symbol is not None]


class BPETokenizer(ChunkTokenizer):
    """Base of tokenizers over byte pairs: files, merging, special tokens.

    A subclass has ``_words(chunk)``, the words of a chunk, each a str of symbols to merge,
    ``_align_chunk`` and `decode`.

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
    pretrained_max_len = None  # positions of the released models
    _default_pad_id = 0

    def __init__(self, vocab_file, merges_file, special_tokens=None, max_len=None):
        super().__init__(max_len)
        self.encoder = read_bpe_vocab(vocab_file)
        self.decoder = {token_id: token for token, token_id in self.encoder.items()}
        self.bpe_ranks = read_merges(merges_file)
        self._check_fit(os.fspath(vocab_file), os.fspath(merges_file))
        self._symbols = frozenset(token for token in self.encoder if self._is_plain(token))
        self._id_of_unknown = self.encoder.get('<unk>')
        self._rust = self._make_rust()
        self.set_special_tokens(special_tokens)

    def _check_fit(self, vocab_path, merges_path):
        hint = f'; merges {merges_path!r} and vocabulary {vocab_path!r} must be of one release'
        suffixed = any(token.endswith('</w>') and token != '</w>' for token in self.encoder)
        if suffixed != bool(self.suffix):
            what = 'has' if suffixed else 'lacks'
            raise InputError(
                f'vocabulary {vocab_path!r} {what} tokens that end in </w>, so it is not for '
                f'{type(self).__name__} but for a tokenizer of another family'
            )
        useless = [
            (rank, pair, token)
            for rank, pair in enumerate(self.bpe_ranks)
            for token in (*pair, ''.join(pair))
            if token not in self.encoder
        ]
        if useless:
            rank, pair, token = useless[0]
            _log.warning(
                'the vocabulary has no %r, which pair %d of the merges, %r, needs%s%s',
                token, rank + 1, ' '.join(pair),
                f' ({len(useless)} such tokens)' if len(useless) > 1 else '', hint,
            )  # fmt: skip
        merged = {''.join(pair) for pair in self.bpe_ranks}
        merged.update(token for token in self.encoder if self._is_plain(token))
        lost = [token for token in self.encoder if token not in merged]
        # a few tokens of a user's own do no harm, but the end of the merges must not be missing
        if len(lost) > 0.01 * len(self.encoder) + 1:
            _log.warning(
                'no merges lead to %d tokens of the vocabulary, such as %r; is the file whole?%s',
                len(lost), lost[0], hint,
            )  # fmt: skip

    def _is_plain(self, token):
        """Whether `token` is a single symbol, or looks like a special token."""
        if self.suffix and token.endswith(self.suffix):
            token = token[: -len(self.suffix)]
        return len(token) < 2 or (token[0] + token[-1]) in ('<>', '[]', '__')

    def _make_rust(self):
        """The Rust library's tokenizer for words, or None if it would merge otherwise."""
        last = {}
        for pair, rank in self.bpe_ranks.items():
            last[''.join(pair)] = rank
        if any(last.get(part, -1) > rank for pair, rank in self.bpe_ranks.items() for part in pair):
            return None
        if not all({*pair, ''.join(pair)} <= self.encoder.keys() for pair in self.bpe_ranks):
            return None
        suffix = {'end_of_word_suffix': self.suffix} if self.suffix else {}
        # no cache in there: there is one here already
        return Tokenizer(models.BPE(self.encoder, list(self.bpe_ranks), cache_capacity=0, **suffix))

    def _library_tokens(self):
        return list(self.special_tokens)

    def _to_library(self):
        if self._rust is None:
            raise InputError('the library merges these byte pairs in another order')
        suffix = {'end_of_word_suffix': self.suffix} if self.suffix else {}
        unknown = {} if self._id_of_unknown is None else {'unk_token': '<unk>'}
        return Tokenizer(models.BPE(self.encoder, list(self.bpe_ranks), **suffix, **unknown))

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        kwargs = {'max_len': file.settings.max_len(), **kwargs}
        special = os.path.join(os.path.dirname(file.path), OWN_ADDED_NAME)
        if 'special_tokens' not in kwargs and os.path.isfile(special):
            lines = (line.rstrip('\r\n') for _, line in read_lines(special))
            kwargs['special_tokens'] = [line for line in lines if line]
        return cls(file.path, file.merges_path, **kwargs)

    @classmethod
    def _released(cls, name, file, kwargs):
        max_len = kwargs.get('max_len') or UNLIMITED
        return {**kwargs, 'max_len': min(max_len, cls.pretrained_max_len)}

    def __len__(self):
        return self._first_special() + len(self.special_tokens)

    @property
    def vocab(self):
        """All tokens, including special ones, with this tokenizer's ids."""
        if self._vocab is None:
            self._vocab = make_vocab({**self.encoder, **self.special_tokens})
        return self._vocab

    def _first_special(self):
        """The first id after the vocabulary's."""
        return max(self.decoder) + 1

    def _find_roles(self):
        return find_roles({**self.encoder, **self.special_tokens})

    def set_special_tokens(self, special_tokens):
        """Replace the tokens that come after the vocabulary.

        As in the original, texts never produce their ids. Use :meth:`convert_tokens_to_ids`.

        They are in the order of their ids, from the vocabulary's length on.
        """
        tokens = list_of_texts(special_tokens or [], 'special_tokens')
        for index, token in enumerate(tokens):
            if not isinstance(token, str) or not token or '\n' in token or '\r' in token:
                raise InputError(f'special token {token!r} must be a str without line breaks')
            if token in self.encoder or token in tokens[:index]:
                raise InputError(f'special token {token!r} is there already; give each one once')
        start = self._first_special()
        self.special_tokens = {token: start + index for index, token in enumerate(tokens)}
        self.special_tokens_decoder = {index: token for token, index in self.special_tokens.items()}
        self._vocab = None
        self._vocab_changed()
        self._forget()

    def bpe(self, token):
        """The pieces of a word, separated by spaces, as in the original."""
        return ' '.join(self._merge([token])[0])

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
        # where transformers looks for the special tokens
        added_path = os.path.join(directory, ADDED_NAME)
        if not self.special_tokens:
            return paths
        write_json(added_path, self.special_tokens)
        return (*paths, added_path)

    def _special_ids(self):
        return self.special_tokens_decoder

    def _id_of(self, token):
        token_id = self.special_tokens.get(token)
        if token_id is None:
            token_id = self.encoder.get(token, self._id_of_unknown)
        if token_id is None:
            raise InputError(
                f'token {token!r} is not in the vocabulary, which has no <unk> either; '
                'tokenize the text first'
            )
        return token_id

    def _token_of(self, token_id):
        token = self.decoder.get(token_id, self.special_tokens_decoder.get(token_id))
        if token is None:
            raise self._unknown_id(token_id)
        return token

    def _learn(self, chunks):
        words = [self._words(chunk) for chunk in chunks]
        pieces = iter(self._merge([word for of_chunk in words for word in of_chunk]))
        learned = []
        for of_chunk in words:
            tokens = tuple(token for _ in of_chunk for token in next(pieces))
            learned.append(Chunk(tuple(map(self._id_of, tokens)), tokens))
        return learned

    def _merge(self, words):
        """The pieces of each word."""
        merged = [None] * len(words)
        if self._rust is not None:
            known, suffix = self._symbols, self.suffix
            quick = [
                n
                for n, word in enumerate(words)
                if word[-1] + suffix in known and known.issuperset(word[:-1])
            ]
            encoding = self._rust.encode(
                [words[n] for n in quick], is_pretokenized=True, add_special_tokens=False
            )
            for n in quick:
                merged[n] = []
            for number, token in zip(encoding.word_ids, encoding.tokens):
                merged[quick[number]].append(token)
        for n, word in enumerate(words):
            if merged[n] is None:
                symbols = [*word[:-1], word[-1] + self.suffix]
                merged[n] = self._finish(merge_symbols(symbols, self.bpe_ranks))
        return merged

    def _finish(self, pieces):
        """The original's form of the pieces of a word."""
        return pieces


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
    rust = Tokenizer(model)
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    return rust


class ByteLevelTokenizer(BPETokenizer):
    """Byte pair encoding of a text's UTF-8 bytes: every text has ids, and can be decoded.

    A lone surrogate, which no encoding can carry, is replaced by U+FFFD.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        ``vocab.json``, or the release's ``encoder.json``.
    merges_file : str or os.PathLike
        ``merges.txt``, or the release's ``vocab.bpe``.
    errors : str
        How :meth:`decode` handles bytes that aren't UTF-8, as in `bytes.decode`.
    """

    _pattern = _PATTERN
    word_prefix = ' '

    def __init__(
        self, vocab_file, merges_file, errors='replace', special_tokens=None, max_len=None
    ):
        self.errors = errors
        self.byte_encoder = bytes_to_unicode()
        self.byte_decoder = {char: byte for byte, char in self.byte_encoder.items()}
        super().__init__(vocab_file, merges_file, special_tokens, max_len)

    def decode(self, ids, skip_special_tokens=False):
        """Text of a sequence of ids, which may end inside a character; see `errors`."""
        content = bytearray()
        for token in self.convert_ids_to_tokens(ids, skip_special_tokens):
            if token in self.special_tokens:
                content += token.encode()
            else:
                content += self._bytes_of(token)
        return content.decode('utf-8', errors=self.errors)

    def _to_library(self):
        return byte_level(super()._to_library().model)

    def _bytes_of(self, token):
        try:
            return bytes([self.byte_decoder[char] for char in token])
        except KeyError:  # no bytes, but a token that someone added to the vocabulary
            return token.encode()

    def _words(self, chunk):
        # Latin-1 has a character for each byte, which is translated by its number
        return [chunk.encode().decode('latin-1').translate(self.byte_encoder)]

    def _align_chunk(self, text, chunk):
        # the character that each byte belongs to
        chars = [n for n, char in enumerate(text) for _ in range(len(char.encode()))]
        spans, start = [], 0
        for token in chunk.tokens:
            end = start + len(token)
            spans.append((chars[start], chars[end - 1] + 1))
            start = end
        return chunk._replace(spans=tuple(spans), numbers=(0,) * len(spans), words=(text,))
