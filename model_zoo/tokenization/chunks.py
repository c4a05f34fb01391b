"""Ids of many sentences, whose chunks are tokenized once, as most are frequent."""

import array
import re

import numpy as np

__all__ = ['SentenceEncoder']

# Chunks of which none influences another's words. The ideographs are those that all versions of
# Unicode have: unassigned ones are dropped, and join what stands beside them. So do the controls,
# which would be white space for `re` and `str.split` had the original not dropped them before.
_CHUNK = re.compile(
    '[\u3400-\u4db5\u4e00-\u9fa5]'
    r'|(?:[^\s\u3400-\u4db5\u4e00-\u9fa5]+|[\x0b\x0c\x1c-\x1f\x85]+)+'
)
_SENTENCES = 1024  # are read before their new chunks are tokenized together
_SENTENCE_CHARS = 2**21  # of chunks whose ids are kept; some 60 MB


class SentenceEncoder:
    """The ids of sentences, without special tokens.

    Of a tokenizer that `splits_at_spaces`, such as BERT's, the ids of each chunk between white
    space are kept, as bytes, which are quick to join.
    """

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._forget()

    def _forget(self):
        self._ids, self._chars = {}, 0

    def encode(self, sentences):
        """Return the ids of sentences."""
        parts = []
        for start in range(0, len(sentences), _SENTENCES):
            texts = sentences[start : start + _SENTENCES]
            if self._tokenizer.splits_at_spaces:
                parts += self._encode_known(texts)
            else:
                parts += map(_as_bytes, self._tokenizer.ids_of(texts))
        ids = np.frombuffer(b''.join(parts), np.intc)
        return ids, [len(part) // ids.itemsize for part in parts]

    def _encode_known(self, sentences):
        # the two agree on what is printable, and one is quicker
        chunks = [
            text.split() if text.isascii() and text.isprintable() else _CHUNK.findall(text)
            for text in sentences
        ]
        if self._chars > _SENTENCE_CHARS:
            self._forget()
        new = list(set().union(*chunks).difference(self._ids))
        if new:
            self._ids.update(zip(new, map(_as_bytes, self._tokenizer.ids_of(new))))
            self._chars += sum(map(len, new))
        known = self._ids.__getitem__
        return [b''.join(map(known, row)) for row in chunks]

    def __getstate__(self):
        return {**self.__dict__, '_ids': {}, '_chars': 0}


def _as_bytes(ids):
    return array.array('i', ids).tobytes()
