"""From sentences to the vectors of their pieces: tokenizing, windows, batches, the forward pass."""

import itertools
import logging
from typing import NamedTuple

import numpy as np

from model_zoo.batches.sampling import longest_first
from model_zoo.batches.windows import Window, even_windows
from model_zoo.util.arrays import pad_rows

__all__ = ['PieceVectors']

logger = logging.getLogger(__name__)

# Most pieces of a batch, padding included. Measured on a CPU with 6 layers of 384 units: 1024 to
# 2048 were the fastest, 16384 a quarter slower; padding to multiples of 4 or 8 lost 5 to 15 %, and
# static_alloc, which plans the memory again for every new shape, gained nothing. Where it saves
# padding, batches are smaller.
BATCH_PIECES = 2048
# Sentences are sorted by length in pools of about this many pieces, with all vectors in memory.
POOL_PIECES = 32768
_ENCODED_TOGETHER = 256  # sentences that are tokenized in one call


class _Job(NamedTuple):
    """A window of the sentence `number` of a pool; `ids` with [CLS] and [SEP].

    The window counts pieces without [CLS].
    """

    number: int
    window: Window
    ids: np.ndarray


class PieceVectors:
    """The part of `BertEmbedding` that runs the model, which is in its attributes."""

    def _results(self, sentences, finish, max_length, on_batch=None):
        """Yield ``finish(encoding, vectors of the pieces)`` of each sentence, in order."""
        read = cut = lost = empty = 0
        try:
            for encodings in self._pools(sentences, max_length):
                read += len(encodings)
                cut += sum(encoding.truncated > 0 for encoding in encodings)
                lost += sum(encoding.truncated for encoding in encodings)
                empty += sum(len(encoding.input_ids) == 2 for encoding in encodings)
                results = [None] * len(encodings)
                for number, states in self._states(encodings):
                    results[number] = finish(encodings[number], states)
                    if on_batch is not None:
                        on_batch(1)
                yield from results
        finally:
            if empty:
                logger.warning(
                    '%d of %d sentences have no words; their results are empty, or made of [CLS] '
                    'and [SEP] alone',
                    empty,
                    read,
                )
            if cut:
                logger.warning(
                    '%d of %d sentences were cut to max_seq_length %d and lost %d pieces; without '
                    'max_seq_length nothing is cut',
                    cut,
                    read,
                    max_length,
                    lost,
                )

    def _pools(self, sentences, max_length):
        """Yield lists of encodings, among which batches are formed."""
        pool, pieces = [], 0
        together = min(_ENCODED_TOGETHER, 16 * self.batch_size)
        for group in iter(lambda: list(itertools.islice(sentences, together)), []):
            rows = self.tokenizer.encode_batch(group, max_length=max_length, pad=False).rows
            pool += rows
            pieces += sum(row.valid_length for row in rows)
            if pieces >= POOL_PIECES or len(pool) + together > 16 * self.batch_size:
                yield pool
                pool, pieces = [], 0
        if pool:
            yield pool

    def _states(self, encodings):
        """Yield (number, vectors) of the encodings, in any order; the vectors are (length, units).

        All ids have vectors, [CLS] and [SEP] included.
        """
        room = self.bert.context_length - 2
        jobs, parts = [], {}
        for number, encoding in enumerate(encodings):
            ids = encoding.input_ids
            windows = even_windows(len(ids) - 2, room)
            if len(windows) > 1:
                empty = np.zeros((len(ids), self.units), dtype=np.float32)
                parts[number] = [len(windows), len(windows), empty]
            for window in windows:
                seen = ids[window.start : window.stop + 2].copy()
                seen[0], seen[-1] = ids[0], ids[-1]
                jobs.append(_Job(number, window, seen))
        lengths = [len(job.ids) for job in jobs]
        for places in longest_first(lengths, self.batch_size, BATCH_PIECES):
            batch = [jobs[place] for place in places]
            for job, states in zip(batch, self._forward([job.ids for job in batch])):
                if job.number not in parts:
                    yield job.number, states
                    continue
                count, missing, whole = parts[job.number]
                _put(whole, job.window, states, count)
                parts[job.number][1] -= 1
                if missing == 1:
                    yield job.number, whole
                    del parts[job.number]

    def _forward(self, rows):
        """Vectors of lists of ids, each (length, units)."""
        # the padding is masked: where a vocabulary has no token for it any id will do
        words = pad_rows(rows, self.tokenizer.pad_token_id or 0)
        sizes = np.array([len(row) for row in rows], np.int32)
        states, *_ = self.engine.run(words, np.zeros_like(words), sizes)  # (B, L, C)
        return [states[place, : len(row)] for place, row in enumerate(rows)]


def _put(whole, window, states, count):
    """Put the vectors of one of `count` windows into the whole sentence's."""
    whole[0] += states[0] / count
    whole[-1] += states[-1] / count
    shift = window.start
    whole[window.first + 1 : window.last + 1] = states[
        window.first + 1 - shift : window.last + 1 - shift
    ]
