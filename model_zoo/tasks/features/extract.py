"""Vectors of tokens, from a model's layers."""

import itertools

import mxnet as mx
import numpy as np

from ...batches import make_batch
from ...batches.sampling import longest_first
from ...errors import InputError

__all__ = ['SEPARATOR', 'FeatureExtractor']

#: between the texts of a pair
SEPARATOR = ' ||| '
POOL = 4  # batches whose lines are sorted by length together: their vectors are in memory at once


def _split(line):
    """The two texts of a line; the second one may be empty."""
    text, separator, pair = line.strip().rpartition(SEPARATOR)
    return (text, pair) if separator else (pair, '')


class FeatureExtractor:
    """Vectors of the tokens of texts, batch by batch.

    Parameters
    ----------
    model : bert.BertModel or a variant of it
        Returns the outputs of all layers.
    tokenizer : model_zoo.tokenization.base.Tokenizer
    layers : list of int
        0 is the first one; negative numbers count from the last one.
    max_length : int
        In tokens, special ones included; longer texts are cut.
    batch_size : int
    ctx : mx.Context
    """

    def __init__(self, model, tokenizer, layers, max_length, batch_size, ctx):
        self._model, self._tokenizer, self._layers = model, tokenizer, layers
        self._max_length, self._batch_size, self._ctx = max_length, batch_size, ctx

    def extract(self, lines, done=0, guard=None):
        """Yield, for each line, its encoding and its vectors, (tokens, layers, units) float32.

        The first `done` lines have None instead of vectors. Batches are the same as without `done`,
        since the rounding of the vectors depends on the batch.
        """
        lines, first = iter(lines), 0
        for pool in iter(lambda: list(itertools.islice(lines, POOL * self._batch_size)), []):
            texts, pairs = zip(*map(_split, pool))
            encoded = self._tokenizer.encode_batch(
                list(texts), list(pairs), max_length=self._max_length, pad=False
            )
            vectors = [None] * len(pool)
            if done < first + len(pool):
                self._fill(pool, encoded, vectors, guard)
            for place in range(min(done - first, len(pool))):
                vectors[place] = None
            yield from zip(encoded.rows, vectors)
            first += len(pool)

    def _fill(self, pool, encoded, vectors, guard):
        """Set the vectors of a pool of lines."""
        for rows in longest_first(encoded.valid_length, self._batch_size):
            if guard is not None:
                guard.check()
            encodings = [encoded.rows[row] for row in rows]
            batch = make_batch(encodings, self._tokenizer.pad_token_id, ctx=self._ctx)
            states = self._model(
                batch.words, token_types=batch.token_types, valid_length=batch.valid_length
            )
            chosen = mx.nd.stack(*(states[layer] for layer in self._layers), axis=2)
            for row, vector in zip(rows, chosen.astype('float32').asnumpy()):
                vectors[row] = vector[: encoded.valid_length[row]]
                if not np.isfinite(vectors[row]).all():
                    raise InputError(f"the model's outputs are not finite for {pool[row]!r:.80}")
