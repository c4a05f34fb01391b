"""Files of embeddings, written while these are computed.

``.npz`` is read with ``numpy.load(path)``. Its arrays are, for words

- ``vectors``: float32, (words, units), of all sentences one after the other
- ``tokens``: str, (words,)
- ``offsets``: int64, (sentences + 1,); sentence i is ``[offsets[i]:offsets[i + 1]]`` of both

and for sentence vectors ``vectors`` alone, float32, (sentences, units).

``.jsonl`` has one JSON object per sentence: ``{"tokens": [...], "vectors": [[...], ...]}``, or
``{"vector": [...]}`` for sentence vectors.
"""

import array
import contextlib
import json
import os
import shutil
import tempfile
import zipfile

import numpy as np

from model_zoo.errors import InputError
from model_zoo.util.files import atomic_write
from model_zoo.util.remote import is_url

__all__ = ['JsonLines', 'Npz', 'open_writer']

_ROWS = 8192  # tokens that are turned into an array together


class JsonLines:
    """One object per line."""

    mode = 'w'

    def __init__(self, file, folder, stack):
        self._file = file

    def words(self, tokens, vectors):
        vectors = [vector.tolist() for vector in vectors]
        self._line({'tokens': tokens, 'vectors': vectors})

    def sentence(self, vector):
        self._line({'vector': vector.tolist()})

    def _line(self, value):
        self._file.write(json.dumps(value, ensure_ascii=False) + '\n')

    def finish(self):
        pass


class Npz:
    """Data are kept in temporary files: an array's header has its shape, which is known last."""

    mode = 'wb'

    def __init__(self, file, folder, stack):
        self._file = file
        vectors = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  the stack closes it
        self._vectors = stack.enter_context(vectors)
        tokens = tempfile.TemporaryFile('w+', dir=folder, encoding='utf-8', newline='\n')  # noqa: SIM115
        self._tokens = stack.enter_context(tokens)
        self._offsets = array.array('q', [0])
        self._width = 1
        self._rows = self._units = 0
        self._has_words = False

    def words(self, tokens, vectors):
        self._has_words = True
        for token, vector in zip(tokens, vectors):
            self._tokens.write(token + '\n')  # a token has no white space
            self._width = max(self._width, len(token))
            self.sentence(vector)
        self._offsets.append(self._rows)

    def sentence(self, vector):
        self._vectors.write(np.ascontiguousarray(vector, dtype='<f4').data)
        self._rows += 1
        self._units = len(vector)

    def finish(self):
        with zipfile.ZipFile(self._file, 'w') as archive:
            with array_entry(archive, 'vectors', '<f4', (self._rows, self._units)) as entry:
                self._vectors.seek(0)
                shutil.copyfileobj(self._vectors, entry, 1 << 20)
            if self._has_words:
                offsets = np.array(self._offsets, dtype='<i8')
                with array_entry(archive, 'offsets', '<i8', offsets.shape) as entry:
                    entry.write(offsets.tobytes())
                dtype = f'<U{self._width}'  # mostly zeros, hence compressed
                packed = zipfile.ZIP_DEFLATED
                with array_entry(archive, 'tokens', dtype, (self._rows,), packed) as entry:
                    self._tokens.seek(0)
                    self._copy_tokens(entry, dtype)

    def _copy_tokens(self, entry, dtype):
        tokens = []
        for line in self._tokens:
            tokens.append(line[:-1])
            if len(tokens) == _ROWS:
                entry.write(np.array(tokens, dtype=dtype).tobytes())
                tokens = []
        entry.write(np.array(tokens, dtype=dtype).tobytes())


def array_entry(archive, name, dtype, shape, compression=zipfile.ZIP_STORED):
    """Open an array of an .npz for writing, and write its header; its date is always 1980-01-01."""
    info = zipfile.ZipInfo(f'{name}.npy')
    info.compress_type = compression
    entry = archive.open(info, 'w', force_zip64=True)
    header = {'descr': dtype, 'fortran_order': False, 'shape': shape}
    np.lib.format.write_array_header_1_0(entry, header)
    return entry


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
    path = os.fspath(path)
    writer_class = _WRITERS.get(os.path.splitext(path)[1].lower())
    if writer_class is None:
        raise InputError(
            f'the format of {path!r} is not known: let its name end in {" or ".join(_WRITERS)}'
        )
    if os.path.isdir(path):
        raise InputError(f'cannot write {path!r}: it is a directory')
    with atomic_write(path, writer_class.mode) as file, contextlib.ExitStack() as stack:
        writer = writer_class(file, None if is_url(path) else os.path.dirname(path) or '.', stack)
        yield writer
        writer.finish()
