"""Files that are written whole or not at all."""

import contextlib
import json
import os
import tempfile

from .errors import InputError

__all__ = ['atomic_write', 'make_writable_dir', 'write_json']


def make_writable_dir(path):
    """Create directory `path` where it is missing, and check that files can be written to it.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    str
        The path.

    Raises
    ------
    InputError
        If the directory can't be made or written to.
    """
    path = os.fspath(path)
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(
            f'cannot write to directory {path!r}: {error.strerror}; choose another one'
        ) from error
    return path


@contextlib.contextmanager
def atomic_write(path, mode='w', encoding='utf-8'):
    """Open a temporary file beside `path`, and rename it to `path` once the block has ended well.

    On any error, Ctrl-C and a full disk included, the temporary file is removed and what stood at
    `path` before is left as it was.

    Parameters
    ----------
    path : str or os.PathLike
    mode : {'w', 'wb', None}
        None hands out the temporary file's *name*, for writers that open files by themselves.
    encoding : str
        Of text files.

    Yields
    ------
    file object or str
    """
    path = os.fspath(path)
    folder = os.path.dirname(path) or '.'
    try:
        handle, temporary = tempfile.mkstemp(
            dir=folder, prefix='.' + os.path.basename(path), suffix='.part'
        )
    except OSError as error:
        raise InputError(f'cannot write {path!r}: {error.strerror}') from error
    try:
        if mode is None:
            os.close(handle)
            yield temporary
        else:
            text = None if 'b' in mode else encoding
            with os.fdopen(handle, mode, encoding=text) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes files that others can't read
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        if isinstance(error, OSError):
            raise InputError(f'cannot write {path!r}: {error.strerror or error}') from error
        raise


def write_json(path, value):
    """Write `value` to `path` as indented JSON, whole or not at all."""
    with atomic_write(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write('\n')
