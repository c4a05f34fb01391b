"""Downloads: one for several processes, verified, and under their name only when complete."""

import logging
import os
import sys
import tempfile
import zipfile
import zlib

import filelock
import gluonnlp
import requests

from ..errors import ZooError, reporting
from ..util.files import make_writable_dir
from ..util.reading import sha256_of

__all__ = ['download', 'mismatch']

logger = logging.getLogger(__name__)


class DownloadError(ZooError):
    """A file that can't be downloaded; the message says why."""


def default_root():
    """Return the folder of the cache: ``$MXNET_HOME/models``; MXNET_HOME is ~/.mxnet by default."""
    return os.path.join(gluonnlp.base.get_home_dir(), 'models')


def mismatch(path, known_hash):
    """Return what is wrong with the content of a file, or None.

    `known_hash` is an algorithm of hashlib and the expected digest, such as ``'sha1:...'``.
    """
    algorithm, _, digest = known_hash.partition(':')
    found = sha256_of(path, algorithm)
    return None if found == digest else f'its {algorithm} is {found}, not {digest}'


def download(url, path, known_hash=None, member=None):
    """Download `url`, or a member of the zip archive there, to the file `path`.

    A file that exists with the right checksum is kept. Several processes that ask for the same file
    wait for one that downloads it. Returns the absolute path.
    """
    path = os.path.abspath(os.path.expanduser(path))
    folder, name = os.path.split(path)
    make_writable_dir(folder)
    cure = '; free some space there or choose another folder'
    lock = filelock.FileLock(os.path.join(folder, f'.{name}.lock'))
    with reporting(f'cannot write {path!r}', cure, DownloadError), lock:
        if os.path.exists(path) and not (known_hash and mismatch(path, known_hash)):
            return path
        logger.info('downloading %s', url)
        with tempfile.TemporaryDirectory(prefix='.download-', dir=folder) as temporary:
            part = _retrieve(url, temporary, member)
            problem = known_hash and mismatch(part, known_hash)
            if problem:
                raise DownloadError(f'{url} is damaged: {problem}; try again')
            os.replace(part, path)
        return path


def _retrieve(url, folder, member):
    """Download to a folder, and return the path of the file, or of the member of the archive."""
    import pooch  # whose progress bars warn in a notebook without widgets

    path = os.path.join(folder, 'download')
    get = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=2**16)
    try:
        get(url, path, None)
        if member is None:
            return path
        with zipfile.ZipFile(path) as archive:
            return archive.extract(member, folder)
    except (requests.RequestException, ValueError) as error:
        raise DownloadError(f'{url}: {_reason(error)}') from error
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise DownloadError(f'{url} is not a sound zip archive with {member}: {error}') from error


def _reason(error):
    """Return why a request failed, without what its library quotes."""
    if isinstance(error, requests.Timeout):
        return 'the server does not answer in time'
    if isinstance(error, requests.ConnectionError):
        return 'the server cannot be reached (no network?)'
    return str(error)
