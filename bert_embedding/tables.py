"""Files of embeddings for other programs: safetensors and Parquet.

Safetensors has the arrays of ``.npz``, but for the tokens, which are bytes: UTF-8, with newlines
between them.

Parquet has a row for each word, with the columns ``sentence`` (its number, from 0), ``token`` and
``vector``; or for each sentence, with ``vector`` alone.
"""

import json
import shutil

import numpy as np

from model_zoo.errors import MissingExtraError

from .arrays import Npz

__all__ = ['Parquet', 'Safetensors']

_ROWS = 8192  # of a row group


class Safetensors(Npz):
    """Data wait in files, as those of ``.npz`` do."""

    def finish(self):
        self._tokens.flush()
        size = self._tokens.buffer.tell()
        pieces = [('vectors', 'F32', (self._rows, self._units), 4 * self._rows * self._units)]
        if self._has_words:
            pieces.append(('offsets', 'I64', (len(self._offsets),), 8 * len(self._offsets)))
            pieces.append(('tokens', 'U8', (size,), size))
        header, place = {}, 0
        for name, dtype, shape, count in pieces:
            header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [place, place + count]}
            place += count
        text = json.dumps(header, separators=(',', ':')).encode()
        text += b' ' * (-len(text) % 8)
        self._file.write(len(text).to_bytes(8, 'little') + text)
        self._vectors.seek(0)
        shutil.copyfileobj(self._vectors, self._file, 1 << 20)
        if self._has_words:
            self._file.write(np.array(self._offsets, dtype='<i8').tobytes())
            self._tokens.buffer.seek(0)
            shutil.copyfileobj(self._tokens.buffer, self._file, 1 << 20)


class Parquet:
    """Row groups are written as they are full."""

    mode = 'wb'

    def __init__(self, file, folder, stack):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtraError.of('pyarrow', 'parquet') from error
        self._arrow, self._file, self._writer = pyarrow, file, None
        self._sentences, self._words, self._vectors = [], [], []
        self._count, self._has_words = 0, False

    def words(self, tokens, vectors):
        self._has_words = True
        for token, vector in zip(tokens, vectors):
            self._sentences.append(self._count)
            self._words.append(token)
            self._row(vector)
        self._count += 1

    def sentence(self, vector):
        self._row(vector)

    def _row(self, vector):
        self._vectors.append(np.asarray(vector, np.float32))
        if len(self._vectors) == _ROWS:
            self._flush()

    def _flush(self):
        arrow = self._arrow
        values = np.concatenate(self._vectors) if self._vectors else np.zeros(0, np.float32)
        units = len(self._vectors[0]) if self._vectors else 0
        columns = {}
        if self._has_words:
            columns['sentence'] = arrow.array(self._sentences, arrow.int64())
            columns['token'] = arrow.array(self._words, arrow.string())
        columns['vector'] = arrow.FixedSizeListArray.from_arrays(
            arrow.array(values, arrow.float32()), max(1, units)
        )
        table = arrow.table(columns)
        if self._writer is None:
            self._writer = arrow.parquet.ParquetWriter(self._file, table.schema)
        if self._vectors:
            self._writer.write_table(table)
        self._sentences, self._words, self._vectors = [], [], []

    def finish(self):
        if self._vectors or self._writer is None:
            self._flush()
        self._writer.close()
