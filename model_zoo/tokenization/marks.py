"""Special tokens that are recognized in texts, as in transformers' tokenizers."""

import regex
from tokenizers import AddedToken

from .chunks import Chunk, ChunkTokenizer

__all__ = ['MarkTokenizer']


class MarkTokenizer(ChunkTokenizer):
    """A tokenizer that finds its special tokens in texts.

    The text between them is cut into chunks by itself. The mask token takes the white space before
    it. A subclass calls `_set_marks` when it has its vocabulary.
    """

    finds_marks = True

    def _set_marks(self):
        roles = self._roles()
        self._marks = frozenset(token for token in roles.values() if token)
        mask = roles.get('mask')
        # no match begins within white space: the time would grow with the square of its length
        spaces = {mask: r'(?:(?<!\s)\s+)?'}
        ways = [spaces.get(token, '') + regex.escape(token) for token in self._marks]
        self._mark_pattern = regex.compile('|'.join(ways) or r'(?!)')

    def _library_tokens(self):
        return self._marks

    def _library_token(self, token):
        return AddedToken(token, lstrip=token == self.mask_token, normalized=False, special=True)

    def _found(self, text):
        """Yield the place of each chunk and the chunk."""
        start = 0
        for mark in self._mark_pattern.finditer(text):
            yield from self._between(text, start, mark.start())
            yield mark.start(), mark.group()
            start = mark.end()
        yield from self._between(text, start, len(text))

    def _between(self, text, start, stop):
        for match in self._pattern.finditer(text, start, stop):
            yield match.start(), match.group()

    def _split(self, text):
        return [chunk for _, chunk in self._found(text)]

    def _places(self, text):
        return [place for place, _ in self._found(text)]

    def _learn(self, chunks):
        marks = [chunk.strip() in self._marks for chunk in chunks]
        others = iter(super()._learn([c for c, is_mark in zip(chunks, marks) if not is_mark]))
        return [
            self._mark(chunk) if is_mark else next(others) for chunk, is_mark in zip(chunks, marks)
        ]

    def _mark(self, chunk):
        token = chunk.strip()
        span = len(chunk) - len(token), len(chunk)
        return Chunk((self._id_of(token),), (token,), (span,), (0,), (token,))

    def _align_chunk(self, text, chunk):
        return chunk if chunk.words is not None else super()._align_chunk(text, chunk)
