"""A vocabulary of whole words, counted in a corpus."""

import collections
import logging

import numpy as np
from tqdm import tqdm

from model_zoo.errors import InputError
from model_zoo.util.lines import read_lines

__all__ = ['CountedWords']

_log = logging.getLogger(__name__)


class CountedWords:
    """The part of `TransfoXLTokenizer` that counts words, and gives them their ids."""

    def _set_words(self, words, unk_idx=None):
        self.idx2sym, self.sym2idx = [], collections.OrderedDict()
        self.unk_idx = unk_idx
        self._vocab = None
        self._vocab_changed()
        for word in words:
            self.add_symbol(word)

    def count_sents(self, sents, verbose=False):
        """Count the words of sentences, each a list of words."""
        for symbols in tqdm(sents, 'counting', disable=not verbose):
            self.counter.update(symbols)

    def build_vocab(self):
        """Make the vocabulary: the special words, then those counted, the most frequent first.

        Of words that were counted equally often, the one that was seen first comes first. With
        `vocab_file`, its words are taken in their order instead.
        """
        self._set_words([])
        if self.vocab_file:
            self._build_from_file()
            return
        for word in self.special:
            self.add_special(word)
        for word, count in self.counter.most_common(self.max_size):
            if count < self.min_freq:
                break
            self.add_symbol(word)
        _log.info('a vocabulary of %d of %d words', len(self), len(self.counter))

    def _build_from_file(self):
        for number, line in read_lines(self.vocab_file):
            if not line.strip():
                raise InputError(f'{self.vocab_file}, line {number} is blank; it must hold a word')
            self.add_symbol(line.split()[0])
        unknown = next((word for word in ('<UNK>', '<unk>') if word in self.sym2idx), None)
        if unknown is None:
            raise InputError(f'{self.vocab_file!r} has no <unk> among its words; add it')
        self.unk_idx = self.sym2idx[unknown]

    def cutoffs(self, shares=(0.9, 0.97)):
        """Where to cut the vocabulary for adaptive embeddings and softmax.

        Parameters
        ----------
        shares : sequence of float
            Share of the counted text that the words before each cutoff make up, ascending. (The
            model released for WikiText-103 cuts its 267735 words at 20000, 40000 and 200000.)

        Returns
        -------
        list of int
            For the field `cutoffs` of the model's configuration: ascending and less than the number
            of words. A share adds no cutoff if it would be another share's, or the number of words.

        Raises
        ------
        InputError
            If nothing was counted, or the shares aren't ascending between 0 and 1.
        """
        counts = np.array([self.counter[word] for word in self.idx2sym], dtype=np.float64)
        if not counts.sum():
            raise InputError('no counts to cut the vocabulary by; count a text first')
        shares = list(shares)
        if shares != sorted(set(shares)) or not all(0 < share < 1 for share in shares):
            raise InputError(f'shares are {shares}; they must be ascending, between 0 and 1')
        covered = np.cumsum(counts) / counts.sum()
        found = np.unique(np.searchsorted(covered, shares) + 1)
        return [int(place) for place in found if place < len(self)]

    def add_special(self, sym):
        """Add a special word, if it isn't there yet; its id is the attribute ``<name>_idx``."""
        self.add_symbol(sym)
        self._note_special(sym)

    def _note_special(self, sym):
        setattr(self, f'{sym.strip("<>")}_idx', self.sym2idx[sym])

    def add_symbol(self, sym):
        """Add a word, if it isn't there yet."""
        if sym not in self.sym2idx:
            self.sym2idx[sym] = len(self.idx2sym)
            self.idx2sym.append(sym)
            self._vocab = None
            self._vocab_changed()

    def get_sym(self, idx):
        """The word with id `idx`."""
        place = int(idx)
        if not 0 <= place < len(self):
            raise self._unknown_id(place)
        return self.idx2sym[place]

    def get_idx(self, sym):
        """The id of `sym`, or of the unknown word.

        Raises
        ------
        InputError
            If the vocabulary has neither.
        """
        found = self.sym2idx.get(sym, self.unk_idx)
        if found is None:
            found = self.sym2idx.get('<unk>', self.sym2idx.get('<UNK>'))
        if found is None:
            raise InputError(
                f'word {sym!r} is not in the vocabulary ({len(self)} words), which has no <unk> '
                "either; build it from a text that has the word, or with special=['<unk>', ...]"
            )
        return found
