"""Archives of models (``.tar.gz``, ``.zip`` and the like), unpacked without trusting them."""

import contextlib
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib

from ..errors import InputError
from ..util.files import make_writable_dir, sha256_of
from .download import check_space, locked

__all__ = ['is_archive', 'unpacked']

_ENDINGS = ('.tar.gz', '.tgz', '.tar', '.tar.bz2', '.tar.xz', '.zip')
_MOST_FILES = 10000
_LEAST_LIMIT = 1 << 30  # bytes that any archive may hold
_MOST_RATIO = 20  # of a larger one's content to its size: weights hardly get smaller
_MOST_AT_ONCE = 1 << 24  # bytes of a file's header, which are read in one piece
_BLOCK = 1 << 20


def is_archive(name):
    """Whether a file's name, or an address, names an archive that `unpacked` takes."""
    return os.fspath(name).lower().endswith(_ENDINGS)


def unpacked(path, root):
    """The folder with the files of an archive; it is unpacked once.

    Only files are unpacked, and only into that folder. An archive is refused if it has links,
    absolute paths or paths with ``..``, or if it holds much more than an archive of models can.

    Parameters
    ----------
    path : str
    root : str
        Folder of the cache.

    Returns
    -------
    str
        If the archive has a single folder, that one.
    """
    try:
        name = os.path.basename(path).split('.')[0]
        target = os.path.join(root, 'unpacked', f'{name}-{sha256_of(path)[:16]}')
        if not os.path.isdir(target):
            make_writable_dir(os.path.dirname(target))
            with locked(target + '.lock', path):
                if not os.path.isdir(target):
                    _unpack(path, target)
    except OSError as error:
        raise InputError(f'cannot unpack {path!r}: {error.strerror or error}') from error
    entries = os.listdir(target)
    inner = os.path.join(target, entries[0]) if len(entries) == 1 else target
    return inner if os.path.isdir(inner) else target


def _unpack(path, target):
    """Unpack to a folder beside `target` and rename it."""
    limit = max(_LEAST_LIMIT, _MOST_RATIO * os.path.getsize(path))
    temporary = tempfile.mkdtemp(prefix='.unpacking-', dir=os.path.dirname(target))
    try:
        reader = _zip_files if path.lower().endswith('.zip') else _tar_files
        for number, (name, size, file) in enumerate(reader(path, limit)):
            limit -= size
            if limit < 0 or number >= _MOST_FILES:
                raise InputError(
                    f'{path!r} is refused: it holds more than an archive of a model can; unpack '
                    'it yourself if you trust it'
                )
            place = os.path.join(temporary, *_safe_parts(path, name))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            check_space(place, size)
            with file, open(place, 'xb') as written:
                shutil.copyfileobj(file, written, _BLOCK)
            if os.path.getsize(place) != size:
                raise EOFError(f'{name} is cut off')
        os.replace(temporary, target)
    except (
        tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError,
        NotImplementedError, gzip.BadGzipFile, ValueError, FileExistsError, UnicodeError,
    ) as error:  # fmt: skip
        if isinstance(error, InputError):
            raise
        raise InputError(f'{path!r} is damaged ({error}); copy or download it again') from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _safe_parts(path, name):
    """The parts of a file's path in an archive."""
    parts = [part for part in name.split('/') if part not in ('', '.')]
    unsafe = {'..'}.intersection(parts) or name.startswith('/') or not parts
    if unsafe or '\\' in name or ':' in name or '\0' in name:
        raise _refused(path, name, 'would lie outside of its folder')
    return parts


def _refused(path, name, what):
    return InputError(f'{path!r} is refused: its file {name!r:.80} {what}')


def _zip_files(path, limit):
    """Yield name, size and open file of the files in a zip archive."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(path, info.filename, 'is a link or a device')
            if not info.filename.endswith('/'):  # is_dir fails for a file without a name
                yield info.filename, info.file_size, archive.open(info)


def _tar_files(path, limit):
    """Yield name, size and open file of the files in a tar archive."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_decompressed(path))
        archive = stack.enter_context(tarfile.open(fileobj=_Limited(file, 2 * limit), mode='r:'))
        for info in archive:
            if not (info.isreg() or info.isdir()) or info.issparse():
                raise _refused(path, info.name, 'is a link or a device')
            if info.isreg():
                yield info.name, info.size, archive.extractfile(info)


def _decompressed(path):
    with open(path, 'rb') as file:
        head = file.read(6)
    import bz2

    for magic, module in ((b'\x1f\x8b', gzip), (b'BZh', bz2), (b'\xfd7zXZ\0', lzma)):
        if head.startswith(magic):
            return module.open(path)
    return open(path, 'rb')


class _Limited:
    """A file with a limit on what may be read from it, in small parts."""

    def __init__(self, file, limit):
        self._file, self._limit = file, limit
        self.seek, self.tell = self._checked(file.seek), file.tell

    def _checked(self, seek):
        def checked(place, *rest):
            if place > self._limit:
                raise tarfile.ReadError('it holds too much')
            return seek(place, *rest)

        return checked

    def read(self, count=-1):
        if not 0 <= count <= _MOST_AT_ONCE or self.tell() > self._limit:
            raise tarfile.ReadError('it holds too much')
        return self._file.read(count)
