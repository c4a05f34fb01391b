"""Tokenizers that cut a text into independent chunks, and cache each chunk's pieces.

Most of a text's chunks occur again and again.
"""

import abc
from typing import NamedTuple, Optional, Tuple

from .encoding import Pieces
from .text import CHUNK, checked
from .tokenizer import Tokenizer

__all__ = ['Chunk', 'ChunkTokenizer']

_BATCH = 1024  # texts whose new chunks are looked up together
_CACHED_CHARS = 2**20  # of chunks whose pieces are kept; some 100 MB


class Chunk(NamedTuple):
    """A chunk of text as pieces.

    Parameters
    ----------
    ids : tuple of int
    tokens : tuple of str
    spans : tuple of (int, int), optional
        The pieces' places in the chunk.
    numbers : tuple of int, optional
        Of the pieces' words in the chunk.
    words : tuple of str, optional
    """

    ids: tuple
    tokens: tuple
    spans: Optional[Tuple[Tuple[int, int], ...]] = None
    numbers: Optional[tuple] = None
    words: Optional[tuple] = None


class _ChunkedPieces(Pieces):
    __slots__ = ('_chunks', '_owner', '_text')

    def __init__(self, owner, text, chunks):
        self._owner, self._text, self._chunks = owner, text, chunks

    def ids(self):
        return [i for chunk in self._chunks for i in chunk.ids]

    def tokens(self):
        return [token for chunk in self._chunks for token in chunk.tokens]

    def offsets(self):
        offsets = []
        for shift, chunk in zip(self._owner._places(self._text), self._aligned()):
            offsets += [(start + shift, end + shift) for start, end in chunk.spans]
        return offsets

    def words(self):
        return [word for chunk in self._aligned() for word in chunk.words]

    def numbers(self):
        numbers, shift = [], 0
        for chunk in self._aligned():
            numbers += [number + shift for number in chunk.numbers]
            shift += len(chunk.words)
        return numbers

    def _aligned(self):
        """The chunks with all fields."""
        if any(chunk.words is None for chunk in self._chunks):
            texts = self._owner._split(self._text)
            self._chunks = list(map(self._owner._align_chunk, texts, self._chunks))
        return self._chunks


class ChunkTokenizer(Tokenizer):
    """A tokenizer of chunks.

    A subclass gives `_learn`, and `_align_chunk` if that leaves the last three fields out. Several
    threads may share one.
    """

    #: finds the chunks of a text
    _pattern = CHUNK

    def __init__(self, max_len=None):
        super().__init__(max_len)
        self._forget()

    def _forget(self):
        self._cache, self._cached_chars = {}, 0  # another thread may still read the old one

    def __getstate__(self):
        return {**self.__dict__, '_cache': {}, '_cached_chars': 0}

    @abc.abstractmethod
    def _learn(self, chunks):
        """A `Chunk` for each chunk of a list."""

    def _align_chunk(self, text, chunk):
        """`chunk`, which was made of `text`, with all fields."""
        return chunk

    def _split(self, text):
        return self._pattern.findall(text)

    def _places(self, text):
        """Where the chunks of `text` begin."""
        return [match.start() for match in self._pattern.finditer(text)]

    def _look_up(self, found):
        """The `Chunk` of each chunk in lists of chunks."""
        if self._cached_chars > _CACHED_CHARS:
            self._forget()
        cache = self._cache
        new = list(set().union(*found).difference(cache))
        if new:
            cache.update(zip(new, self._learn(new)))
            self._cached_chars += sum(map(len, new))
        return [[cache[chunk] for chunk in chunks] for chunks in found]

    def _pieces(self, texts):
        pieces = []
        for start in range(0, len(texts), _BATCH):
            batch = [checked(text) for text in texts[start : start + _BATCH]]
            chunks = self._look_up([self._split(text) for text in batch])
            pieces += [_ChunkedPieces(self, *each) for each in zip(batch, chunks)]
        return pieces
