"""Downloads: one for several processes, verified, and under their name only when complete."""

import contextlib
import logging
import os
import sys
import zipfile

import filelock
import gluonnlp
import requests

from ..errors import PretrainedNotFoundError, reporting
from ..util.files import make_writable_dir, temporary_folder
from ..util.reading import sha256_of

__all__ = ['check_hash', 'download']

logger = logging.getLogger(__name__)


class SourceError(PretrainedNotFoundError):
    """A place doesn't have the files, or can't give them; the message says why."""


def default_root():
    """Return the folder of the cache: ``$MXNET_HOME/models``; MXNET_HOME is ~/.mxnet by default."""
    return os.path.join(gluonnlp.base.get_home_dir(), 'models')


def check_hash(path, known_hash, cure):
    """Raise SourceError if a file's content isn't what it should be.

    `known_hash` is an algorithm of hashlib and the expected digest, such as ``'sha1:...'``.
    """
    algorithm, _, digest = known_hash.partition(':')
    with reporting(repr(path), error_class=SourceError):
        found = sha256_of(path, algorithm)
    if found != digest:
        problem = f'{path} is damaged: its {algorithm} is {found}, not {digest}; {cure}'
        logger.warning('%s', problem)
        raise SourceError(problem)


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
    with reporting(f'cannot write {path!r}', cure, SourceError), lock:
        if os.path.exists(path):
            with contextlib.suppress(SourceError):
                if known_hash:
                    check_hash(path, known_hash, 'it is downloaded again')
                return path
        logger.info('downloading %s', url)
        with temporary_folder(folder, name) as temporary:
            part = _retrieve(url, temporary, member)
            if known_hash:
                check_hash(part, known_hash, f'download {url} again')
            os.replace(part, path)
        return path


def _retrieve(url, folder, member):
    """Download to a folder, and return the path of the file, or of the member of the archive."""
    import pooch  # whose progress bars warn in a notebook without widgets

    path = os.path.join(folder, 'download')
    try:
        pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=2**16)(url, path, None)
        if member is None:
            return path
        with zipfile.ZipFile(path) as archive:
            return archive.extract(member, folder)
    except requests.ConnectionError as error:
        raise SourceError(f'{url}: the server cannot be reached (no network?)') from error
    except Exception as error:  # of requests, pooch, zipfile or zlib
        raise SourceError(f'{url}: {error}') from error
