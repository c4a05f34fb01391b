"""Byte pair encoding: its two files, and the base of OpenAI's tokenizers.

Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), as
OpenAI's releases of GPT and GPT-2 and pytorch-pretrained-bert 0.6.2 do it.

The library `tokenizers` merges place by place, the originals pair by pair; the result is the same
if each pair follows all pairs that make its two symbols, as in the released files.
"""

import functools
import json
import logging
import os

from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers

from ..errors import InputError, Where, reporting
from ..pretrained.files import BPE_NAMES
from ..util.files import atomic_write, make_writable_dir, write_json
from ..util.reading import read_json, read_lines
from .encoding import NO_FRAMES, UNLIMITED, call_rust, list_of_texts
from .settings import ADDED_NAME, OWN_ADDED_NAME
from .tokenizer import Tokenizer
from .vocab import check_tokens, make_vocab
from .vocab_file import has_word_ends

__all__ = ['BPETokenizer']


_log = logging.getLogger(__name__)


def read_bpe_vocab(path):
    """Read a JSON object of tokens and their ids, from 0 on; a gap is logged as a warning."""
    path = os.fspath(path)
    ids = read_json(path, 'vocabulary', dict[str, int])
    check_tokens(ids, f'vocabulary {path!r}')
    ids = dict(sorted(ids.items(), key=lambda item: item[1]))
    numbers = {*ids.values()}
    if len(numbers) < len(ids) or min(numbers, default=-1) < 0:
        raise InputError(f'vocabulary {path!r}: its ids must differ and be at least 0')
    gaps = max(numbers) + 1 - len(ids)
    if gaps:
        _log.warning('vocabulary %r: %d ids have no token; is it whole?', path, gaps)
    return ids


def read_merges(path):
    """Read pairs of symbols, one per line, in order; a first line ``#version`` is skipped."""
    path, ranks = os.fspath(path), {}
    for number, line in read_lines(path):
        pair = tuple(line.split())
        if (number == 1 and line.startswith('#version')) or not pair:
            continue
        if len(pair) != 2:
            raise InputError(f'{line.strip()!r:.80} must be two symbols', where=Where(path, number))
        ranks[pair] = number
    if not ranks:
        raise InputError(f'merges {path!r} holds no pairs of symbols')
    return {pair: rank for rank, pair in enumerate(sorted(ranks, key=ranks.get))}


def read_pairs(vocab_file, merges_file, **options):
    """Read the ids and ranks of two files, and make the library's model of them."""
    ids, ranks = read_bpe_vocab(vocab_file), read_merges(merges_file)
    with reporting(f'{merges_file!r} does not fit {vocab_file!r}', errors=Exception):
        # a symbol that the vocabulary lacks is an error where that lacks <unk>, too
        return ids, ranks, models.BPE(ids, list(ranks), unk_token='<unk>', **options)


def bytes_to_unicode():
    """Return a printable character for each byte, as in the vocabulary's tokens."""
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    others = iter(sorted(char for char in alphabet if ord(char) > 255))
    return {byte: chr(byte) if chr(byte) in alphabet else next(others) for byte in range(256)}


def byte_level(model):
    """Return a tokenizer of the library for byte pairs of UTF-8."""
    rust = Library(model)
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    return rust


class BPETokenizer(Tokenizer):
    """Base of tokenizers over byte pairs: files, merging, special tokens.

    A subclass has a `splitter`, ``_make_library(model)``, and `decode`.

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
    _default_pad_id = 0
    _frames = NO_FRAMES

    def __init__(self, vocab_file, merges_file, special_tokens=None, max_len=None):
        if has_word_ends(merges_file) != bool(self.suffix):
            raise InputError(f'{str(merges_file)!r} are not the merges of a {type(self).__name__}')
        suffix = {'end_of_word_suffix': self.suffix} if self.suffix else {}
        self.encoder, self.bpe_ranks, model = read_pairs(vocab_file, merges_file, **suffix)
        self.decoder = {token_id: token for token, token_id in self.encoder.items()}
        self._rust, self.max_len = self._make_library(model), max_len or UNLIMITED
        self.set_special_tokens(special_tokens)

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        kwargs = {'max_len': file.settings.max_len, **kwargs}
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

        As in the original, texts don't produce their ids, except for a symbol that the vocabulary
        lacks and that is a special token. Use :meth:`convert_tokens_to_ids`. The ids follow the
        vocabulary's.
        """
        tokens = list_of_texts(special_tokens or [], 'special_tokens')
        for index, token in enumerate(tokens):
            if not isinstance(token, str) or not token or '\n' in token or '\r' in token:
                raise InputError(f'special token {token!r} must be a str without line breaks')
            if token in self.encoder or token in tokens[:index]:
                raise InputError(f'special token {token!r} is there twice')
        start = max(self.decoder) + 1
        self.special_tokens = {token: start + index for index, token in enumerate(tokens)}
        self.special_tokens_decoder = {index: token for token, index in self.special_tokens.items()}
        for name in ('vocab', '_roles'):
            self.__dict__.pop(name, None)

    def bpe(self, token):
        """Return the pieces of a word, separated by spaces, as in the original."""
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

    def _kept_whole(self):
        return list(self.special_tokens)

    _settings = Tokenizer._kept_fields
