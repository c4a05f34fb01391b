"""Files by path or URL: ``s3://``, ``gs://``, ``hdfs://`` and what else fsspec knows.

Each function takes the path of a file on this machine, or a URL. What goes wrong with a URL is an
OSError, as with a path; a missing library is a `MissingExtraError`.
"""

import contextlib
import errno
import glob
import io
import os
import posixpath
import re

from ..errors import MissingExtraError, ZooError

_URL = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://')
_BLOCK = 2**22  # bytes of a request


def is_url(path):
    """Return whether a path is a URL of fsspec, such as ``'s3://bucket/name'``."""
    return _URL.match(os.fspath(path)) is not None


def join(folder, *names):
    """Return the path of a file in a folder."""
    return (posixpath if is_url(folder) else os.path).join(folder, *names)


def open_binary(path):
    """Open a file for reading bytes; of a URL, a few MB are in memory at a time."""
    if not _URL.match(os.fspath(path)):
        return open(path, 'rb')
    with _system(path) as (system, inner):
        # buffered, because fsspec's own `readline` reads a block for each line
        return io.BufferedReader(system.open(inner, 'rb', block_size=_BLOCK), _BLOCK)


def file_size(path):
    """Return the size of a file in bytes."""
    if not is_url(path):
        return os.path.getsize(path)
    with _system(path) as (system, inner):
        size = system.size(inner)
    if size is None:
        raise OSError(errno.EINVAL, 'its server does not report its size', path)
    return size


def exists(path):
    """Return whether the file or folder exists."""
    return _type(path) is not None if is_url(path) else os.path.exists(path)


def is_file(path):
    """Return whether this is a file."""
    return _type(path) == 'file' if is_url(path) else os.path.isfile(path)


def is_folder(path):
    """Return whether this is a folder: in an object store, whether names begin with it."""
    return _type(path) == 'directory' if is_url(path) else os.path.isdir(path)


def _type(url):
    with contextlib.suppress(FileNotFoundError), _system(url) as (system, path):
        return system.info(path)['type']


def matching(pattern):
    """Return the paths that a wildcard matches, in any order; ``~`` is the home directory."""
    if not is_url(pattern):
        return glob.glob(os.path.expanduser(pattern))
    if not glob.has_magic(pattern):
        return [pattern] if exists(pattern) else []
    with _system(pattern) as (system, path):
        return [system.unstrip_protocol(name) for name in system.glob(path)]


def names_in(folder):
    """Return the names of the files in a folder; none for a missing folder of an object store."""
    if not is_url(folder):
        return os.listdir(folder)
    return [name for name in sizes_in(folder) if '/' not in name]


def sizes_in(url):
    """Return the files below the folder of a URL: name -> size, and what shows a change."""
    try:
        with _system(url) as (system, path):
            listed = system.find(path, detail=True)
    except FileNotFoundError:
        return {}
    base = path.rstrip('/') + '/'
    files = sorted(n for n, info in listed.items() if info['type'] == 'file' and n.startswith(base))
    files = {name[len(base) :]: listed[name] for name in files}
    return {n: (info['size'], _version(info)) for n, info in files.items() if _is_plain(n)}


def _is_plain(name):
    """Return whether an object store's key, which may be any text, is a file below a folder."""
    has_others = '\0' in name or ('\\' in name and os.sep == '\\')
    return not has_others and not {'', '.', '..'}.intersection(name.split('/'))


def _version(info):
    known = (info.get(name) for name in ('ETag', 'etag', 'mtime', 'LastModified', 'created'))
    return str(next(filter(None, known), ''))


def remove_file(path):
    """Remove a file."""
    if not is_url(path):
        os.remove(path)
        return
    with _system(path) as (system, inner):
        system.rm_file(inner)


def upload(source, url):
    """Send a file of this machine; an object store shows it when it is whole."""
    with _system(url) as (system, path):
        if 'file' in system.protocol:
            system.makedirs(posixpath.dirname(path), exist_ok=True)
        system.put_file(source, path)


def download(url, target):
    """Write the file of a URL to a file of this machine."""
    with _system(url) as (system, path):
        system.get_file(path, target)


@contextlib.contextmanager
def _system(url):
    """Give the file system of a URL and the path in it; its errors become OSErrors."""
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(os.fspath(url))
        system.invalidate_cache()  # others may have written
        yield system, path
    except ZooError:
        raise
    except ImportError as error:
        extra = "pip install 'gluon-transformer-zoo[remote]' installs s3fs, for s3://"
        raise MissingExtraError(f'{url!r} needs a library: {error}; {extra}') from error
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, 'there is no such file or folder', url) from error
    except OSError:
        raise
    except Exception as error:  # of the library behind the file system
        raise OSError(errno.EIO, str(error) or type(error).__name__, url) from error
