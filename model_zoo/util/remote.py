"""Files by path or URL: ``s3://``, ``gs://``, ``hdfs://`` and what else fsspec knows.

Each function takes the path of a file on this machine, or a URL. What goes wrong with a URL is an
OSError, as with a path, whose ``strerror`` is one line; a missing library is a `MissingExtraError`.
A request that fails for want of a connection is repeated. A server that sends without an end, more
than it was asked for, or another version of a file than before is refused.
"""

import contextlib
import errno
import glob
import io
import logging
import os
import posixpath
import re
import secrets
import shutil
import tempfile
import time

from ..errors import MissingExtraError, ZooError

__all__ = [
    'download',
    'exists',
    'file_size',
    'is_file',
    'is_folder',
    'is_url',
    'join',
    'matching',
    'names_in',
    'open_binary',
    'remove_file',
    'sizes_in',
    'upload',
]

logger = logging.getLogger(__name__)

_URL = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://')
_CHUNK = 2**22  # bytes of a request
_DELAYS = 0.5, 1, 2, 4  # seconds before a request is repeated
_PIECES = 5  # in which broken connections may send what a request asks for
_PATIENCE = 600  # seconds of a request, but that of an upload
_MOST_LISTED = 100_000  # files of a folder
_REPLACED = 'it was replaced while it was read; try again'
# Here a file appears when all of it has been sent; elsewhere it is sent to another name.
_OBJECT_STORES = {'s3', 's3a', 'gs', 'gcs', 'abfs', 'abfss', 'az', 'adl', 'oss', 'oci', 'memory'}
# What another attempt wouldn't change.
_FINAL = (
    FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError,
    ImportError, ValueError, TypeError, NotImplementedError,
)  # fmt: skip


def is_url(path):
    """Whether a path is a URL of fsspec, such as ``'s3://bucket/name'``."""
    return _URL.match(os.fspath(path)) is not None


def join(folder, *names):
    """The path of something in a folder."""
    return (posixpath if is_url(folder) else os.path).join(folder, *names)


def open_binary(path):
    """Open a file for reading bytes; of a URL, a few MB are in memory at a time."""
    if not is_url(path):
        return open(path, 'rb')
    return io.BufferedReader(_Ranges(os.fspath(path)), _CHUNK)


def file_size(path):
    """Size of a file in bytes."""
    if not is_url(path):
        return os.path.getsize(path)
    return _facts(path)[0]


def _facts(url):
    """Size and version of a file, as `sizes_in` tells them."""
    info = _info(url)
    if info['type'] == 'directory':
        raise IsADirectoryError(errno.EISDIR, 'it is a folder', url)
    if info.get('size') is None:
        raise OSError(errno.EINVAL, 'its server does not tell its size', url)
    return info['size'], _version(info)


def exists(path):
    """Whether there is such a file or folder."""
    return _type(path) is not None if is_url(path) else os.path.exists(path)


def is_file(path):
    """Whether this is a file."""
    return _type(path) == 'file' if is_url(path) else os.path.isfile(path)


def is_folder(path):
    """Whether this is a folder: of an object store, whether names begin with it."""
    return _type(path) == 'directory' if is_url(path) else os.path.isdir(path)


def matching(pattern):
    """The paths that a wildcard matches, in any order; ``~`` is the home directory."""
    if not is_url(pattern):
        return glob.glob(os.path.expanduser(pattern))
    system, path = _system(pattern)
    if not glob.has_magic(path):
        return [pattern] if exists(pattern) else []
    system.invalidate_cache()  # others may have written
    paths = _ask(pattern, lambda: system.glob(path, **_limits(system)))
    return [system.unstrip_protocol(path) for path in paths]


def names_in(folder):
    """Names of the files in a folder; none if there is no such folder of an object store."""
    if not is_url(folder):
        return os.listdir(folder)
    return [name for name in sizes_in(folder) if '/' not in name]


def sizes_in(url):
    """The files in the folder of a URL and in its subfolders."""
    system, path = _system(url)
    try:
        system.invalidate_cache()  # others may have written
        limits = _limits(system, max_items=_MOST_LISTED + 1)
        listed = _ask(url, lambda: system.find(path, detail=True, **limits))
    except FileNotFoundError:
        return {}
    if len(listed) > _MOST_LISTED:
        raise OSError(errno.EFBIG, f'it has more than {_MOST_LISTED} files', url)
    base = path.rstrip('/') + '/'
    return {
        name[len(base) :]: (info['size'], _version(info))
        for name, info in sorted(listed.items())
        if name.startswith(base) and info['type'] == 'file' and _is_plain(name[len(base) :])
    }


def _is_plain(name):
    """Whether a key of an object store, where all are allowed, names one file below a folder."""
    has_others = '\0' in name or '\\' in name and os.sep == '\\'
    return not has_others and not {'', '.', '..'}.intersection(name.split('/'))


def remove_file(path):
    """Remove a file."""
    if not is_url(path):
        os.remove(path)
        return
    system, inner = _system(path)
    _ask(path, lambda: system.rm_file(inner))


def upload(source, url):
    """Send a file of this machine; it appears under the name of `url` when it is whole."""
    system, path = _system(url)
    protocols = system.protocol if isinstance(system.protocol, tuple) else (system.protocol,)
    if not _OBJECT_STORES.isdisjoint(protocols):
        _ask(url, lambda: system.put_file(source, path))
        return
    folder, name = posixpath.split(path)
    temporary = posixpath.join(folder, f'.{name}{secrets.token_hex(4)}.part')
    _ask(url, lambda: system.makedirs(folder, exist_ok=True))
    try:
        _ask(url, lambda: system.put_file(source, temporary))
        if 'hdfs' in protocols and system.exists(path):  # it doesn't rename onto a file
            _ask(url, lambda: system.rm_file(path))
        _ask(url, lambda: system.mv(temporary, path))
    except BaseException:
        with contextlib.suppress(Exception):
            system.rm_file(temporary)
        raise


def download(url, target, facts=None):
    """Write the file of a URL to `target`, which is not there before all of it is.

    With `facts`, a value of `sizes_in`, a file that has been replaced since is refused.
    """
    folder = os.path.dirname(target) or '.'
    os.makedirs(folder, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=folder, suffix='.part')
    try:
        with os.fdopen(handle, 'wb') as file, open_binary(url) as source:
            if facts is not None and _differ(facts, source.raw.facts):
                raise OSError(errno.ESTALE, _REPLACED, url)
            shutil.copyfileobj(source, file, _CHUNK)
        os.replace(part, target)
    except BaseException:
        os.remove(part)
        raise


class _Ranges(io.RawIOBase):
    """A file that is read range by range, so that a broken connection costs one range."""

    def __init__(self, url):
        self._url, self._position = url, 0
        self.facts = self._size, self._version = _facts(url)

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._position

    def seek(self, offset, whence=os.SEEK_SET):
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, 'a place before the file', self._url)
        self._position = start + offset
        return self._position

    def readinto(self, buffer):
        start, stop = self._position, min(self._position + len(buffer), self._size)
        if start >= stop:
            return 0
        system, path = _system(self._url)

        def fetch():
            content = b''
            for _ in range(_PIECES):
                begin = start + len(content)
                if begin < stop:
                    content += _span(system, path, begin, stop, self._version)
            if len(content) != stop - start:
                raise OSError(errno.EIO, f'{len(content)} bytes came instead of {stop - start}')
            return content

        buffer[: stop - start] = _ask(self._url, fetch)
        self._position = stop
        return stop - start


def _differ(facts, other_facts):
    """Whether two files' facts tell that they are not the same; many systems tell sizes only."""
    sizes, versions = zip(facts, other_facts)
    are_tags = all(version.startswith('"') for version in versions)
    return sizes[0] != sizes[1] or are_tags and versions[0] != versions[1]


def _span(system, path, start, stop, version):
    """Bytes of a file; S3 is asked for the version, and may send fewer, not more."""
    if not hasattr(system, 'call_s3'):
        return system.cat_file(path, start=start, end=stop)
    from fsspec.asyn import sync

    bucket, key, _ = system.split_path(path)
    wanted = {'IfMatch': version} if version.startswith('"') else {}
    limits = _limits(system)
    answer = system.call_s3(
        'get_object', Bucket=bucket, Key=key, Range=f'bytes={start}-{stop - 1}', **wanted,
        **system.req_kw, **limits
    )  # fmt: skip
    if wanted and answer.get('ETag') != version:
        raise ValueError(_REPLACED)

    async def read():
        content = bytearray()
        try:
            while len(content) < stop - start:
                piece = await answer['Body'].read(stop - start - len(content))
                if not piece:
                    break
                content += piece
        except Exception:
            if not content:
                raise
        finally:
            answer['Body'].close()
        return content

    return sync(system.loop, read, **limits)


def _limits(system, **of_s3):
    """What bounds a request to a file system, as keywords of its methods."""
    limits = {'timeout': _PATIENCE} if system.async_impl else {}
    return {**limits, **of_s3} if hasattr(system, 'call_s3') else limits


def _system(url):
    """The file system of a URL, and the path in it."""
    try:
        import fsspec

        return fsspec.core.url_to_fs(os.fspath(url))
    except ImportError as error:
        protocol = _URL.match(url).group()
        library = error.name or next(iter(re.findall(r'[a-z0-9]+fs', str(error))), 'fsspec')
        if library in ('fsspec', 's3fs'):
            raise MissingExtraError.of(f'{library}, for {protocol},', 'remote') from error
        raise MissingExtraError(f'{protocol} needs a library of its own: {_line(error)}') from error
    except ValueError as error:
        raise OSError(errno.EINVAL, _line(error), url) from error
    except Exception as error:
        raise _as_os_error(error, url) from error


def _info(url):
    system, path = _system(url)
    system.invalidate_cache()  # others may have written
    return _ask(url, lambda: system.info(path))


def _type(url):
    try:
        return _info(url)['type']
    except FileNotFoundError:
        return None


def _version(info):
    known = (info.get(name) for name in ('ETag', 'etag', 'mtime', 'LastModified', 'created'))
    return str(next(filter(None, known), ''))


def _ask(url, request):
    """What a request returns, repeated while the connection fails."""
    delays, end = list(_DELAYS), time.monotonic() + _PATIENCE
    while True:
        try:
            return request()
        except ZooError:
            raise
        except Exception as error:
            is_final = isinstance(error, _FINAL) or _is_refused(error)
            if is_final or not delays or time.monotonic() > end:
                raise _as_os_error(error, url) from error
            logger.warning('%s: %s; trying again', url, _line(error))
        time.sleep(delays.pop(0))


def _is_refused(error):
    """Whether another attempt is in vain, or the library has tried long enough."""
    return _is_replaced(error) or type(error).__name__ in (
        'NoCredentialsError', 'PartialCredentialsError', 'EndpointConnectionError',
        'ProfileNotFound', 'ParamValidationError', 'DefaultCredentialsError', 'FSTimeoutError',
    )  # fmt: skip


def _is_replaced(error):
    """Whether S3 has another version than was asked for."""
    return 'PreconditionFailed' in str(error.__cause__)


def _as_os_error(error, url):
    """An OSError whose ``strerror`` is one line."""
    text = _line(error)
    if isinstance(error, FileNotFoundError):
        bucket = 'bucket' in text.lower() and 'not exist' in text
        text = 'there is no such bucket' if bucket else 'there is no such file or folder'
        return FileNotFoundError(errno.ENOENT, text, url)
    if isinstance(error, PermissionError):
        return PermissionError(errno.EACCES, f'permission denied ({text})', url)
    if 'Credentials' in type(error).__name__:
        return PermissionError(errno.EACCES, f'{text}; log in, or set the variables', url)
    return OSError(getattr(error, 'errno', None) or errno.EIO, text, url)


def _line(error):
    """An error's message in one line."""
    if _is_replaced(error):
        return _REPLACED
    if type(error).__name__ == 'FSTimeoutError':
        return f'its server took more than {_PATIENCE} seconds'
    text = getattr(error, 'strerror', None) or str(error) or type(error).__name__
    return ' '.join(text.split())[:300]
