"""Texts and their ids."""

import itertools

import numpy as np

from ..opening import open_tokenizer
from ..util.files import atomic_write
from .job import describe_vocab
from .records import write_records

__all__ = ['FileEncoder']

_tokenizer = None  # of this process: (options, tokenizer)
_MANY = 1000  # texts at a time


class FileEncoder:
    """Turns texts, or a file of them, into ids; for a worker.

    Parameters
    ----------
    options : dict
        Of `open_tokenizer`.
    encoding : dict
        Of the tokenizer's ``encode_batch``.
    """

    def __init__(self, options, encoding):
        self._options, self._encoding = options, encoding

    @property
    def _tokenizer(self):
        global _tokenizer
        if _tokenizer is None or _tokenizer[0] != self._options:
            _tokenizer = self._options, open_tokenizer(**self._options)
        return _tokenizer[1]

    @property
    def settings(self):
        """What the ids depend on, plain JSON."""
        tokenizer = self._tokenizer
        kind = type(tokenizer).__name__, tokenizer._settings()  # such as do_lower_case of a folder
        return [self._options, *kind, describe_vocab(tokenizer.vocab), self._encoding]

    def _rows(self, texts):
        """(text, ids) of each."""
        texts = iter(texts)
        while True:
            some = list(itertools.islice(texts, _MANY))
            if not some:
                return
            encoded = self._tokenizer.encode_batch(some, pad=False, **self._encoding)
            yield from zip(some, encoded.input_ids)

    def records(self, texts):
        """A dict for each text."""
        for text, ids in self._rows(texts):
            tokens = self._tokenizer.convert_ids_to_tokens(ids)
            yield {'ids': ids.tolist(), 'tokens': tokens, 'text': text}

    def __call__(self, task):
        """Write the ids of a `FileTask`; returns the number of its texts."""
        texts = (line for line in task.lines() if line.strip())
        if task.output.endswith('.jsonl'):
            return write_records(self.records(texts), 'jsonl', task.output)
        rows = [ids for _, ids in self._rows(texts)]
        offsets = np.cumsum([0, *map(len, rows)])
        with atomic_write(task.output, 'wb') as file:
            np.savez(file, ids=np.concatenate([np.zeros(0, np.int32), *rows]).astype(np.int32),
                     offsets=offsets)  # fmt: skip
        return len(rows)
