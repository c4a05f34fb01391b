"""Text to the ids of Transformer-XL and back: a vocabulary of whole words, counted in a corpus.

Source: ``vocabulary.py`` of kimiyoung/transformer-xl (Dai et al., "Transformer-XL: Attentive
Language Models Beyond a Fixed-Length Context", 2019), in the form of pytorch-pretrained-bert 0.6.2,
which gives the same ids.

A lone surrogate, which no encoding can carry, is replaced by U+FFFD.
"""

import collections
import functools
import io
import itertools
import logging
import os
import re

import numpy as np
import tokenizers
from tqdm import tqdm

from model_zoo.errors import InputError
from model_zoo.tokenization import Frame, ListedPieces, Tokenizer
from model_zoo.tokenization.encoding import NO_FRAMES, UNLIMITED, checked, list_of_texts
from model_zoo.tokenization.library_files import split_at_spaces
from model_zoo.tokenization.vocab import find_roles, make_vocab
from model_zoo.util.files import file_in
from model_zoo.util.reading import read_lines

from .vocabulary import OPTIONS, WORDS_NAME, read_words, write_words

_log = logging.getLogger(__name__)


class TransfoXLTokenizer(Tokenizer):
    """Words between white space, with ids in the order of their frequency in a corpus.

    Made in three steps: count (:meth:`count_file`, `count_sents`), `build_vocab`,
    encode. Or read from files by :meth:`from_pretrained`. `encode` and `encode_batch` also take
    `add_eos` and `add_double_eos`, see :meth:`tokenize`.

    Parameters
    ----------
    special : list of str
        Words that come first, counted or not, such as ``['<eos>']``.
    min_freq : int
        Minimum count of the words in the vocabulary.
    max_size : int, optional
        Maximum number of words, without the special ones.
    lower_case : bool
    delimiter : str, optional
        Between words; white space by default. With '' each character is a word.
    vocab_file : str, optional
        A text file with a word at the start of each line, for `build_vocab`.
    never_split : sequence of str
        Kept with the vocabulary. As in the original, it has no effect: no word is ever split.
    max_len : int, optional
        Longer results log a warning.

    Attributes
    ----------
    counter : collections.Counter
    idx2sym : list of str
        The words, in the order of their ids.
    sym2idx : collections.OrderedDict
    """

    kinds, names = ('words',), frozenset(['TransfoXL'])
    needs_python = True
    word_prefix = ''
    _mark = True, ''
    _default_pad_id = 0
    _frames = NO_FRAMES

    def __init__(
        self,
        special=(),
        min_freq=0,
        max_size=None,
        lower_case=False,
        delimiter=None,
        vocab_file=None,
        never_split=('<unk>', '<eos>', '<formula>'),
        max_len=None,
    ):
        self.max_len = max_len or UNLIMITED
        self.counter = collections.Counter()
        self.special = list_of_texts(special, 'special')
        self.min_freq = min_freq
        self.max_size = max_size
        self.lower_case = bool(lower_case)
        self.delimiter = delimiter
        self.vocab_file = vocab_file
        self.never_split = list_of_texts(never_split, 'never_split')
        self._set_words([])

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        return cls.from_fields(read_words(file.path), kwargs)

    @classmethod
    def from_fields(cls, fields, kwargs):
        """Make the tokenizer of what :func:`transfo_xl.vocabulary.read_words` returns."""
        options = {name: fields[name] for name in OPTIONS if name in fields and name != 'unk_idx'}
        tokenizer = cls(**{**options, **kwargs})
        tokenizer.counter = fields['counter']
        tokenizer._set_words(fields['idx2sym'], fields.get('unk_idx'))
        for word in tokenizer.special:
            if word in tokenizer.sym2idx:
                tokenizer.add_special(word)
        return tokenizer

    @classmethod
    def from_pretrained(cls, name_or_dir, dataset_name=None, root=None, **kwargs):
        """Open the tokenizer of a saved or released model.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
            A directory with ``vocab.json`` (of :meth:`save_vocabulary`) or with the originals'
            ``vocab.bin`` or ``vocab.pkl``; the file itself; a text file with one word per line; or
            a model's name.
        dataset_name, root, **kwargs
            As of other tokenizers.
        """
        name = os.fspath(name_or_dir)
        if name.endswith('.txt'):
            tokenizer = cls(vocab_file=name, **kwargs)
            tokenizer.build_vocab()
            return tokenizer
        return super().from_pretrained(name, dataset_name, root, **kwargs)

    def __len__(self):
        return len(self.idx2sym)

    @property
    def do_lower_case(self):
        """Whether texts are lowered."""
        return self.lower_case

    @functools.cached_property
    def vocab(self):
        """The words, with this tokenizer's ids."""
        roles = find_roles(self.sym2idx)
        if self.unk_idx is not None:
            roles['unk'] = self.idx2sym[self.unk_idx]
        return make_vocab(dict(self.sym2idx), roles)

    def _set_words(self, words, unk_idx=None):
        self.idx2sym, self.sym2idx = [], collections.OrderedDict()
        self.unk_idx = unk_idx
        for word in words:
            self.add_symbol(word)

    def count_sents(self, sents, verbose=False):
        """Count the words of sentences, each a list of words."""
        for symbols in tqdm(sents, 'counting', disable=not verbose):
            self.counter.update(symbols)

    def build_vocab(self):
        """Make the vocabulary: the special words, then those counted, the most frequent first."""
        # Words with equal counts are in the order in which they were seen. With `vocab_file`, its
        # words are taken in their order instead.
        self._set_words([])
        if self.vocab_file:
            for _, line in read_lines(self.vocab_file):
                for word in line.split()[:1]:
                    self.add_symbol(word)
            if {'<unk>', '<UNK>'}.isdisjoint(self.sym2idx):
                raise InputError(f'{self.vocab_file!r} has no <unk> among its words; add it')
            self.unk_idx = self.sym2idx.get('<UNK>', self.sym2idx.get('<unk>'))
            return
        for word in self.special:
            self.add_special(word)
        for word, count in self.counter.most_common(self.max_size):
            if count >= self.min_freq:
                self.add_symbol(word)
        _log.info('a vocabulary of %d of %d words', len(self), len(self.counter))

    def cutoffs(self):
        """Return where to cut the vocabulary for adaptive embeddings and softmax."""
        # the clusters have 90, 7 and 3 % of the text
        counts = np.array([self.counter[word] for word in self.idx2sym], dtype=np.float64)
        if not counts.sum():
            raise InputError('no counts to cut the vocabulary by; count a text first')
        covered = np.cumsum(counts) / counts.sum()
        ends = np.unique(np.searchsorted(covered, (0.9, 0.97)) + 1)
        return [int(end) for end in ends if end < len(self)]

    def add_special(self, sym):
        """Add a special word, if it isn't there yet; its id is the attribute ``<name>_idx``."""
        self.add_symbol(sym)
        setattr(self, f'{sym.strip("<>")}_idx', self.sym2idx[sym])

    def add_symbol(self, sym):
        """Add a word, if it isn't there yet."""
        if sym not in self.sym2idx:
            self.sym2idx[sym] = len(self.idx2sym)
            self.idx2sym.append(sym)
            for name in ('vocab', '_roles'):  # made of the words as they were
                self.__dict__.pop(name, None)

    def get_sym(self, idx):
        """Return the word with id `idx`."""
        return self._token_of(int(idx))

    def get_idx(self, sym):
        """Return the id of `sym`, or of the unknown word."""
        number = self.sym2idx.get(sym, self.unk_idx)
        if number is None:
            number = self.sym2idx.get('<unk>', self.sym2idx.get('<UNK>'))
        if number is None:
            raise InputError(f'word {sym!r} is not in the vocabulary, nor is <unk>: add one')
        return number

    def count_file(self, path, verbose=False, add_eos=False):
        """Count the words of a text file."""
        sents = [self.tokenize(line, add_eos) for line in _lines(path, verbose)]
        self.count_sents(sents)
        return sents

    _id_of = get_idx

    def tokenize(self, line, add_eos=False, add_double_eos=False):
        """Return the list of the words of `line`.

        Parameters
        ----------
        line : str
        add_eos : bool
            Whether to put ``<eos>`` after them.
        add_double_eos : bool
            Whether to put ``<S>`` before and after them, as in the One Billion Word Benchmark;
            overrides `add_eos`.
        """
        line = checked(line).strip()
        if self.lower_case:
            line = line.lower()
        symbols = list(line) if self.delimiter == '' else line.split(self.delimiter)
        if add_double_eos:
            return ['<S>', *symbols, '<S>']
        return [*symbols, '<eos>'] if add_eos else symbols

    def _spans(self, text):
        """Return the spans of the words of `text`."""
        start = len(text) - len(text.lstrip())
        text = text.strip()
        lowered = text.lower() if self.lower_case else text
        if self.delimiter == '':  # lower-casing turns some characters into two
            chars = map(str.lower, text) if self.lower_case else text
            spans = [(n, n + 1) for n, char in enumerate(chars) for _ in char]
        elif self.delimiter is None:
            spans = [match.span() for match in re.finditer(r'\S+', text)]
        else:
            spans, first = [], 0
            for word in (lowered if len(lowered) == len(text) else text).split(self.delimiter):
                spans.append((first, first + len(word)))
                first += len(word) + len(self.delimiter)
        return [(start + first, start + end) for first, end in spans]

    def _pieces(self, texts, fast=False):
        pieces = []
        for text in texts:
            words, spans = self.tokenize(text), self._spans(checked(text))
            ids = list(map(self.get_idx, words))
            pieces.append(ListedPieces(ids, words, spans, list(range(len(words))), words))
        return pieces

    def _frames_with(self, add_eos=False, add_double_eos=False):
        first = ('<S>',) if add_double_eos else ()
        last = first or (('<eos>',) if add_eos else ())
        return tuple(Frame.of((first, *between, last), self._id_of) for between in ((), ((),)))

    def encode_file(self, path, ordered=False, verbose=False, add_eos=True, add_double_eos=False):
        """Return the ids of the lines of a text file.

        Returns
        -------
        np.ndarray, or list of np.ndarray
            int32, shape (tokens,), of all lines if `ordered`, else of each line.
        """
        sents = (self.tokenize(line, add_eos, add_double_eos) for line in _lines(path, verbose))
        return self.encode_sents(sents, ordered)

    def encode_text(self, text):
        """Return the ids of a language model's text; ``<eos>`` stands between its lines."""
        lines = text.split('\n')
        ids = [self.encode(line, add_eos=True) for line in lines[:-1]]
        return [*itertools.chain.from_iterable(ids), *self.encode(lines[-1])]

    def encode_sents(self, sents, ordered=False, verbose=False):
        """Return the ids of sentences, each a list of words, as :meth:`encode_file` does."""
        sents = tqdm(sents, 'encoding', disable=not verbose)
        if ordered:
            ids = map(self.get_idx, itertools.chain.from_iterable(sents))
            return np.fromiter(ids, dtype=np.int32)
        return [np.array(self.convert_tokens_to_ids(symbols), np.int32) for symbols in sents]

    def decode(self, indices, exclude=None, skip_special_tokens=False):
        """Return the words of a sequence of ids, with spaces between.

        Parameters
        ----------
        indices : sequence of int
        exclude : collection of int, optional
            Ids to leave out.
        skip_special_tokens : bool
            Whether to leave out ``<eos>``, ``<unk>`` and the like.
        """
        if hasattr(indices, 'asnumpy'):
            indices = indices.asnumpy()
        if exclude:
            indices = [idx for idx in indices if idx not in exclude]
        return super().decode(indices, skip_special_tokens)

    def save_vocabulary(self, vocab_path):
        """Write the words, their counts and the options.

        Parameters
        ----------
        vocab_path : str or os.PathLike
            A file, or a directory in which ``vocab.json`` is written. A file with the extension
            ``.bin`` is written as pytorch-pretrained-bert's ``vocab.bin``.
        """
        path = file_in(vocab_path, WORDS_NAME)
        fields = {name: getattr(self, name) for name in OPTIONS}
        write_words(path, {**fields, 'idx2sym': self.idx2sym, 'counter': self.counter})
        return path

    def _join(self, tokens, between):
        return between.join(tokens)

    def to_library(self):
        if self.delimiter is not None:
            raise InputError('only words between white space can be written as a tokenizer.json')
        unknown = self.get_sym(self.get_idx(object()))
        rust = tokenizers.Tokenizer(tokenizers.models.WordLevel(dict(self.sym2idx), unknown))
        if self.lower_case:
            rust.normalizer = tokenizers.normalizers.Lowercase()
        rust.pre_tokenizer = split_at_spaces()
        return rust

    def _settings(self):
        return None  # they are in the vocabulary's file


def _lines(path, verbose):
    """Yield the lines of a file as Python reads texts: they also end at a carriage return."""
    for _, line in tqdm(read_lines(path), os.fspath(path), disable=not verbose):
        if '\r' in line:
            yield from io.StringIO(line, newline=None)
        else:
            yield line
