"""Files of embeddings, written while these are computed; see `arrays` and `tables`."""

import contextlib
import os

from model_zoo.errors import InputError
from model_zoo.util.files import atomic_write
from model_zoo.util.remote import is_url

from .arrays import JsonLines, Npz
from .tables import Parquet, Safetensors

__all__ = ['open_writer']

_WRITERS = {
    '.npz': Npz, '.jsonl': JsonLines, '.safetensors': Safetensors, '.parquet': Parquet,
}  # fmt: skip


@contextlib.contextmanager
def open_writer(path):
    """Open a file of embeddings, which appears once the block has ended well.

    After an error or Ctrl-C no new file is left, and an existing file at `path` stays as it was. A
    file has either words or sentence vectors.

    Parameters
    ----------
    path : str or os.PathLike
        Its extension chooses the format: ``.npz``, ``.jsonl``, ``.safetensors`` or ``.parquet``.

    Yields
    ------
    writer
        With the methods ``words(tokens, vectors)`` and ``sentence(vector)``.
    """
    path = os.fspath(path)
    kind = _WRITERS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise InputError(
            f'the format of {path!r} is not known: let its name end in {" or ".join(_WRITERS)}'
        )
    if os.path.isdir(path):
        raise InputError(f'cannot write {path!r}: it is a directory')
    with atomic_write(path, kind.mode) as file, contextlib.ExitStack() as stack:
        writer = kind(file, None if is_url(path) else os.path.dirname(path) or '.', stack)
        yield writer
        writer.finish()
