"""Files of embeddings, written while these are computed.

``.npz`` is read with ``numpy.load(path)``. Its arrays are, for words

- ``vectors``: float32, (words, units), of all sentences one after the other
- ``tokens``: str, (words,)
- ``offsets``: int64, (sentences + 1,); sentence i is ``[offsets[i]:offsets[i + 1]]`` of both

and for sentence vectors ``vectors`` alone, float32, (sentences, units).

``.jsonl`` has one JSON object per sentence: ``{"tokens": [...], "vectors": [[...], ...]}``, or
``{"vector": [...]}`` for sentence vectors.
"""

import contextlib
import json
import os
import tempfile
import zipfile

import numpy as np

from model_zoo.errors import InputError
from model_zoo.util.files import atomic_write

__all__ = ['open_writer']


class JsonLines:
    """One object per line."""

    mode = 'w'

    def __init__(self, file):
        self._file = file

    def words(self, tokens, vectors):
        self._line({'tokens': tokens, 'vectors': [vector.tolist() for vector in vectors]})

    def sentence(self, vector):
        self._line({'vector': vector.tolist()})

    def _line(self, value):
        self._file.write(json.dumps(value, ensure_ascii=False) + '\n')

    def finish(self):
        pass


class Npz:
    """Vectors wait in a temporary file: an array's header has its shape, which is known last."""

    mode = 'wb'

    def __init__(self, file):
        self._file, self._vectors = file, tempfile.TemporaryFile()  # noqa: SIM115
        self._tokens, self._offsets, self._count, self._units = [], [0], 0, 0

    def words(self, tokens, vectors):
        self._tokens += tokens
        for vector in vectors:
            self.sentence(vector)
        self._offsets.append(self._count)

    def sentence(self, vector):
        self._vectors.write(np.ascontiguousarray(vector, dtype='<f4').data)
        self._count, self._units = self._count + 1, len(vector)

    def finish(self):
        shape, arrays = (self._count, self._units), {}
        arrays['vectors'] = np.zeros(shape, '<f4')
        if self._count:
            self._vectors.flush()
            arrays['vectors'] = np.memmap(self._vectors, '<f4', 'r', shape=shape)
        if self._offsets[1:]:
            arrays['offsets'] = np.array(self._offsets, '<i8')
            arrays['tokens'] = np.array(self._tokens, str)
        with zipfile.ZipFile(self._file, 'w') as archive:
            for name, values in arrays.items():
                info = zipfile.ZipInfo(f'{name}.npy')  # whose date is always 1980-01-01
                if name == 'tokens':  # mostly zeros
                    info.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(info, 'w', force_zip64=True) as entry:
                    np.lib.format.write_array(entry, values)
        self._vectors.close()


_WRITERS = {'.npz': Npz, '.jsonl': JsonLines}


@contextlib.contextmanager
def open_writer(path):
    """Open a file of embeddings, which appears once the block has ended well.

    After an error or Ctrl-C no new file is left, and an existing file at `path` stays as it was. A
    file has either words or sentence vectors.

    Parameters
    ----------
    path : str or os.PathLike
        Its extension chooses the format: ``.npz`` or ``.jsonl``.

    Yields
    ------
    writer
        With the methods ``words(tokens, vectors)`` and ``sentence(vector)``.
    """
    writer_class = _WRITERS.get(os.path.splitext(path)[1].lower())
    if writer_class is None:
        raise InputError(f'{os.fspath(path)!r} must end in {" or ".join(_WRITERS)}', field='output')
    with atomic_write(path, writer_class.mode) as file:
        writer = writer_class(file)
        yield writer
        writer.finish()
