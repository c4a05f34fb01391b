"""Vectors of the tokens of texts: a line of the input -> a batch -> a record of a file."""

import array
import itertools
import json
import zipfile

import mxnet as mx
import numpy as np

from ..batches import make_batch
from ..batches.sampling import longest_first
from ..errors import InputError
from ..util.files import atomic_write

__all__ = [
    'Arrays',
    'FeatureExtractor',
    'JsonLines',
    'SEPARATOR',
]

#: between the texts of a pair
SEPARATOR = ' ||| '
POOL = 4  # batches whose lines are sorted by length together: their vectors are in memory at once


def _split(line):
    """The two texts of a line; the second one may be empty."""
    text, separator, pair = line.strip().rpartition(SEPARATOR)
    return (text, pair) if separator else (pair, '')


class FeatureExtractor:
    """Vectors of the tokens of texts, batch by batch."""

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


CHUNK = 65536  # tokens written at once


class JsonLines:
    """Google's form: the records are lines of JSON, and the output is the records."""

    def __init__(self, layers, units, vocab):
        self._layers = layers

    def record(self, number, encoding, vectors):
        values = np.round(vectors.astype(np.float64), 6).tolist()
        features = [
            {
                'token': token,
                'layers': [
                    {'index': index, 'values': each} for index, each in zip(self._layers, row)
                ],
            }
            for token, row in zip(encoding.tokens, values)
        ]
        return (json.dumps({'linex_index': number, 'features': features}) + '\n').encode()

    def finish(self, partial):
        partial.publish()


class Arrays:
    """An .npz. A record has the tokens' numbers, int32, and their vectors, float32."""

    def __init__(self, layers, units, vocab):
        self._layers, self._tokens = layers, vocab.idx_to_token
        self._shape = len(layers), units

    def record(self, number, encoding, vectors):
        return encoding.input_ids.astype('<i4').tobytes() + vectors.astype('<f4').tobytes()

    def finish(self, partial):
        # an array in a file begins with its size
        counts = partial.sizes // (4 + 4 * int(np.prod(self._shape)))
        bounds = np.array([0, *np.cumsum(counts)], '<i8')
        ids = array.array('i')
        for count, record in zip(counts, partial):
            ids.extend(np.frombuffer(record, '<i4', count).tolist())
        width = max(len(self._tokens[number]) for number in set(ids))
        names = (
            np.array([self._tokens[number] for number in ids[start : start + CHUNK]], f'<U{width}')
            for start in range(0, len(ids), CHUNK)
        )
        values = (record[4 * count :] for count, record in zip(counts, partial))
        layers = np.array(self._layers, '<i4')
        with atomic_write(partial.path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
            _write_array(archive, 'layers', '<i4', layers.shape, [layers])
            _write_array(archive, 'bounds', '<i8', bounds.shape, [bounds])
            _write_array(archive, 'tokens', f'<U{width}', (len(ids),), names)
            _write_array(archive, 'values', '<f4', (len(ids), *self._shape), values)


def _write_array(archive, name, dtype, shape, parts):
    """Add an array to an .npz from the bytes of its parts."""
    header = {'descr': dtype, 'fortran_order': False, 'shape': shape}
    entry = zipfile.ZipInfo(f'{name}.npy')  # with a date of its own: the same at any time
    with archive.open(entry, 'w', force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(bytes(part))
