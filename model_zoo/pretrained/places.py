"""Models that are named by where they are: on the hub, at an address or URL, in an archive.

Archives (``.tar.gz``, ``.zip`` and the like) are unpacked without trusting them. Of URLs there are
copies, for as long as these don't change.
"""

import contextlib
import errno
import gzip
import hashlib
import logging
import lzma
import os
import posixpath
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from typing import Dict, Tuple
from urllib.parse import urlsplit

from ..errors import InputError, PretrainedNotFoundError, ZooError
from ..util import remote
from ..util.files import LIMITS, make_writable_dir, raised, read_json, sha256_of, write_json
from ..util.remote import is_file, is_url, join, sizes_in
from .catalogue import is_alias
from .download import check_space, default_root, download, locked

__all__ = ['copy_of', 'is_archive', 'is_place', 'local_path', 'unpacked']

logger = logging.getLogger(__name__)

_MOST_COPIED = 10_000
_SMALL = 2**25  # bytes; beside a file of weights, such ones may be its configuration or vocabulary
_NOTE = 'copied.json'


def copy_of(url, folder):
    """The path of a copy that has the files of a URL; what has changed is fetched again.

    Parameters
    ----------
    url : str
        Of a folder; or of a file, or the beginning of a TensorFlow checkpoint's names: then what
        lies beside it comes, too, unless it is large.
    folder : str
        Of this copy alone.

    Returns
    -------
    str

    Raises
    ------
    OSError
        If it can't be read, or is neither.
    """
    url = url.rstrip('/')
    parent, _, name = url.rpartition('/')
    if is_file(url) or is_file(f'{url}.index'):
        found = {
            each: facts
            for each, facts in sizes_in(parent).items()
            if '/' not in each and (each.startswith(name) or facts[0] <= _SMALL)
        }
        base, name, path = parent, posixpath.basename(parent), name
    else:
        found, base, path = sizes_in(url), url, ''
    if not found:
        raise FileNotFoundError(2, 'there is no such file or folder', url)
    if len(found) > _MOST_COPIED:
        problem = f'{len(found)} files are too many for a model, {_MOST_COPIED} at most'
        raise OSError(errno.EFBIG, problem, url)
    os.makedirs(folder, exist_ok=True)
    target, note = os.path.join(folder, name), os.path.join(folder, _NOTE)
    with locked(os.path.join(folder, '.lock'), url):
        have = {}
        if os.path.exists(note):
            try:
                have = read_json(note, shape=Dict[str, Tuple[object, object]])
            except InputError as error:
                logger.warning('%s; all of %s is fetched again', error, url)
        for each, facts in found.items():
            copy = os.path.join(target, *each.split('/'))
            if have.get(each) != list(facts) or not os.path.exists(copy):
                remote.download(join(base, each), copy)
        for each in set(have).difference(found):
            copy = os.path.join(target, *each.split('/'))
            if _is_within(each) and os.path.isfile(copy):
                os.remove(copy)
        write_json(note, found)
    return os.path.join(target, path) if path else target


def _is_within(name):
    """Whether a name of a note leads to something in the copy's folder."""
    return not os.path.isabs(name) and '..' not in name.split('/')


_ENDINGS = ('.tar.gz', '.tgz', '.tar', '.tar.bz2', '.tar.xz', '.zip')
# `raised` raises these
_MOST_FILES = 10000  # folders are counted, too
_LEAST_LIMIT = 1 << 26  # bytes that any archive may hold
_MOST_RATIO = 20  # of a larger one's content to its size: weights hardly get smaller
_MOST_AT_ONCE = 1 << 24  # bytes of a file's header, which are read in one piece
_BLOCK = 1 << 20


def is_archive(name):
    """Whether a file's name, or an address, names an archive that `unpacked` takes."""
    return os.fspath(name).lower().endswith(_ENDINGS)


def unpacked(path, root):
    """The folder with the files of an archive; it is unpacked once.

    Only files are unpacked, and only into that folder. An archive is refused if it has links,
    absolute paths or paths with ``..``, or if it holds much more than an archive of models can:
    64 MB and 20 times its size, or 10,000 files and folders. The environment variable
    ``MODEL_ZOO_LIMITS`` multiplies these.

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
    limit = raised(max(_LEAST_LIMIT, _MOST_RATIO * os.path.getsize(path)))
    temporary = tempfile.mkdtemp(prefix='.unpacking-', dir=os.path.dirname(target))
    try:
        reader = _zip_files if path.lower().endswith('.zip') else _tar_files
        for number, (name, size, file) in enumerate(reader(path, limit)):
            limit -= size
            if limit < 0 or number >= raised(_MOST_FILES):
                raise InputError(
                    f'{path!r} is refused: it holds more than an archive of a model can; if you '
                    f'trust it, unpack it yourself, or set {LIMITS}=10'
                )
            if file is None:
                continue
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
    """Yield name, size and open file, or None for a folder, of what is in a zip archive."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(path, info.filename, 'is a link or a device')
            is_folder = info.filename.endswith('/')  # is_dir fails for a file without a name
            file = None if is_folder else archive.open(info)
            yield info.filename, info.file_size, file


def _tar_files(path, limit):
    """Yield name, size and open file, or None for a folder, of what is in a tar archive."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_decompressed(path))
        archive = stack.enter_context(tarfile.open(fileobj=_Limited(file, 2 * limit), mode='r:'))
        for info in archive:
            if not (info.isreg() or info.isdir()) or info.issparse():
                raise _refused(path, info.name, 'is a link or a device')
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


_REPOSITORY = re.compile(r'(?P<name>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>\w[\w./-]*))?', re.ASCII)


def is_place(name):
    """Whether a model's name says where else than in a folder or file here the model is.

    Parameters
    ----------
    name : str or os.PathLike
        ``'owner/name'`` or ``'owner/name@revision'`` of the Hugging Face hub, unless the catalogue
        has it; an address that begins with ``https://`` or ``http://``; a URL of a folder or
        file that fsspec reads, such as ``s3://bucket/model``; or a file such as ``model.tar.gz``.
    """
    name = os.path.expanduser(os.fspath(name))
    if os.path.exists(name):
        return os.path.isfile(name) and is_archive(name)
    return is_url(name) or bool(_REPOSITORY.fullmatch(name)) and not is_alias(name)


def local_path(name, weights=True, vocab=True, root=None):
    """The folder or file on this machine that a name means.

    What is elsewhere is downloaded once, and archives are unpacked.

    Parameters
    ----------
    name : str or os.PathLike
    weights, vocab : bool
        Whether they are needed, of a repository of the hub.
    root : str, optional
        The cache of addresses and archives, ``$MXNET_HOME/models`` by default; the hub has its
        own.

    Returns
    -------
    (str, str)
        The path, and where it comes from as `Files.source` says it. A name of a folder or file
        here, or of nothing, is returned as it is.
    """
    path, source = os.path.expanduser(os.fspath(name)), 'path'
    if not is_place(path):
        return path, source
    root = os.path.abspath(os.path.expanduser(root or default_root()))
    if _is_address(path):
        path, source = _downloaded(path, root), 'address'
    elif is_url(path):
        path, source = _copied(path, root), 'address'
    elif not os.path.exists(path):
        return _from_hub(path, weights, vocab), 'Hugging Face hub'
    return (unpacked(path, root) if is_archive(path) else path), source


def _is_address(name):
    return name.startswith(('https://', 'http://'))


def _downloaded(address, root):
    name = os.path.basename(urlsplit(address).path)
    if not name or name.startswith('.'):
        raise InputError(f'{address!r} is the address of no file')
    digest = hashlib.sha256(address.encode()).hexdigest()[:16]
    try:
        return download(address, os.path.join(root, 'downloads', digest, name))
    except InputError:
        raise
    except ZooError as error:
        raise PretrainedNotFoundError(str(error)) from error


def _copied(url, root):
    """A copy of a folder or file, renewed where that has changed."""
    digest = hashlib.sha256(url.encode()).hexdigest()[:16]
    try:
        return copy_of(url, os.path.join(root, 'remote', digest))
    except OSError as error:
        raise PretrainedNotFoundError(f'cannot read {url!r}: {error.strerror}') from error


def _from_hub(name, weights, vocab):
    from .hub import Repository  # huggingface_hub takes a while to import

    match = _REPOSITORY.fullmatch(name)
    try:
        return Repository(match['name'], match['revision']).fetch(weights, vocab)
    except ZooError as error:
        raise PretrainedNotFoundError(
            f'{name!r}: no such folder, no name of pretrained weights, and on the hub: {error}'
        ) from error
