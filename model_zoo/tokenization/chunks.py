"""Tokenizers that cut a text into independent chunks, and cache each chunk's pieces.

Most chunks of a text occur again and again. Sentences are encoded with their own cache.
"""

import abc
import array
from typing import NamedTuple, Optional, Tuple

import numpy as np

from .encoding import CHUNK, Pieces, checked
from .tokenizer import Tokenizer

__all__ = ['Chunk', 'ChunkTokenizer', 'SentenceEncoder']

_BATCH = 1024  # texts whose new chunks are looked up together
_CACHED_CHARS = 2**20  # of chunks whose pieces are kept; some 100 MB


class Chunk(NamedTuple):
    """A chunk of text as pieces; `spans` and `numbers` are their places and words in the chunk."""

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
        for shift, chunk in zip(self._owner._starts(self._text), self._aligned()):
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

    def _starts(self, text):
        """Where the chunks of `text` begin."""
        return [match.start() for match in self._pattern.finditer(text)]

    def _look_up(self, lists):
        """The `Chunk` of each chunk in lists of chunks."""
        if self._cached_chars > _CACHED_CHARS:
            self._forget()
        cache = self._cache
        new = list(set().union(*lists).difference(cache))
        if new:
            cache.update(zip(new, self._learn(new)))
            self._cached_chars += sum(map(len, new))
        return [[cache[chunk] for chunk in chunks] for chunks in lists]

    def _pieces(self, texts):
        pieces = []
        for start in range(0, len(texts), _BATCH):
            batch = [checked(text) for text in texts[start : start + _BATCH]]
            chunks = self._look_up([self._split(text) for text in batch])
            pieces += [_ChunkedPieces(self, *parts) for parts in zip(batch, chunks)]
        return pieces


_SENTENCES = 1024  # are read before their new chunks are tokenized together
_SENTENCE_CHARS = 2**21  # of chunks whose ids are kept; some 60 MB


class SentenceEncoder:
    """The ids of sentences, without special tokens.

    The ids of each chunk between white space are kept, as bytes, which are quick to join, if the
    tokenizer has ``ids_of_chunks``: its pieces don't depend on text beyond white space, as BERT's
    don't.
    """

    def __init__(self, tokenizer, is_random=False):
        self._tokenizer = tokenizer
        self._keeps = not is_random and hasattr(tokenizer, 'ids_of_chunks')
        self._forget()

    def _forget(self):
        self._ids, self._chars = {}, 0

    def encode(self, sentences):
        """Ids of sentences."""
        encode = self._encode_known if self._keeps else self._encode_anew
        parts = []
        for start in range(0, len(sentences), _SENTENCES):
            parts += encode(sentences[start : start + _SENTENCES])
        ids = np.frombuffer(b''.join(parts), np.intc)
        return ids, [len(part) // ids.itemsize for part in parts]

    def _encode_known(self, sentences):
        # the two agree on what is printable, and one is quicker
        chunks = [
            text.split() if text.isascii() and text.isprintable() else CHUNK.findall(text)
            for text in sentences
        ]
        if self._chars > _SENTENCE_CHARS:
            self._forget()
        new = list(set().union(*chunks).difference(self._ids))
        if new:
            ids = self._tokenizer.ids_of_chunks(new)
            self._ids.update(zip(new, (array.array('i', row).tobytes() for row in ids)))
            self._chars += sum(map(len, new))
        known = self._ids.__getitem__
        return [b''.join(map(known, row)) for row in chunks]

    def _encode_anew(self, sentences):
        batch = self._tokenizer.encode_batch(sentences, pad=False, add_special_tokens=False)
        return [ids.tobytes() for ids in batch.input_ids]

    def __getstate__(self):
        return {**self.__dict__, '_ids': {}, '_chars': 0}
