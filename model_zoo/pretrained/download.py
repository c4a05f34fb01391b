"""Downloads that are locked, resumed, verified, and written whole or not at all.

No library does this: pooch 1.9 neither resumes nor locks; huggingface_hub resumes without
``If-Range``, so that two versions of a file can end up in one.
"""

import contextlib
import errno
import json
import logging
import os
import re
import shutil
import sys
import time
import zipfile
import zlib
from typing import NamedTuple

import filelock
import gluonnlp
import requests
import tqdm
import urllib3

from ..errors import InputError, ZooError, reporting
from ..util.files import make_writable_dir
from ..util.reading import raised, read_json, sha256_of

__all__ = ['check_space', 'download', 'is_final', 'locked', 'reason_of']

logger = logging.getLogger(__name__)

TIMEOUT = (10, 60)  # seconds to connect, and to wait for the next bytes
ATTEMPTS = 5  # requests for one file, each going on where the last broke off
BACKOFF = 1.0  # seconds before the second attempt; doubled before each further one
BLOCK = 1 << 20  # bytes read from disk at once
CHUNK = 1 << 16  # bytes read from the network at once, and lost when the connection breaks
MOST_BYTES = 1 << 36  # of one file, and
MOST_SECONDS = 24 * 3600  # for it; `raised` raises both
RETRIED_STATUS = frozenset([408, 425, 429, 500, 502, 503, 504])

_NUMBER = re.compile('[0-9]{1,18}')
_RANGE = re.compile(r'bytes (?P<start>[0-9]{1,18})-[0-9]{1,18}/(?P<total>[0-9]{1,18}|\*)')


class DownloadError(ZooError):
    """A file that can't be downloaded; the message says why."""


def default_root():
    """The folder of the cache: ``$MXNET_HOME/models``, MXNET_HOME being ~/.mxnet by default."""
    return os.path.join(gluonnlp.base.get_home_dir(), 'models')


class _BrokenOff(Exception):
    """An attempt that failed, although another one may succeed."""


class _Damaged(Exception):
    """A complete download with the wrong content."""


class Checksum(NamedTuple):
    """Name of an algorithm of hashlib and the hexadecimal digest that it should give."""

    algorithm: str
    digest: str

    def mismatch(self, path):
        """What is wrong with the content of file `path`, or None."""
        digest = sha256_of(path, self.algorithm)
        if digest == self.digest:
            return None
        return f'its {self.algorithm} is {digest}, not {self.digest}'


def download(url, path, checksum=None, member=None, headers=None):
    """Download `url` to file `path`, unless a file with the right checksum is there already.

    If several processes ask for the same file, one downloads it and the others wait. An
    interrupted download (``*.part`` beside `path`) is completed. A damaged file is deleted and
    downloaded once more.
    """
    path = os.path.abspath(os.path.expanduser(os.fspath(path)))
    folder, name = os.path.split(path)
    make_writable_dir(folder)
    part = os.path.join(folder, (name if member is None else name + '.zip') + '.part')
    cure = '; free some space there or choose another folder'
    lock = os.path.join(folder, f'.{name}.lock')
    with reporting(f'cannot write {path!r}', cure, DownloadError), locked(lock, name):
        if os.path.exists(path) and (checksum is None or not checksum.mismatch(path)):
            return path
        for is_last in (False, True):
            try:
                _bring(url, part, member, path, checksum, headers)
                break
            except _Damaged as error:
                if is_last:
                    raise DownloadError(f'{url} is damaged, twice: {error}') from error
                logger.warning('%s arrived damaged (%s); downloading it again', url, error)
        return path


@contextlib.contextmanager
def locked(lock_path, name):
    """Hold the lock file `lock_path`; wait while another living process holds it."""
    lock = filelock.FileLock(lock_path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        logger.info('waiting for another process that is downloading %s', name)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _bring(url, part, member, path, checksum, headers):
    """Download `url`, verify it, and rename it, or the member of the archive, to `path`."""
    _fetch(url, part, headers or {})
    try:
        if member is None:
            _install(part, path, checksum)
        else:
            unpacked = path + '.part'
            try:
                _extract(part, member, unpacked)
                _install(unpacked, path, checksum)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(unpacked)
    except _Damaged:
        _remove(part)
        raise
    _remove(part)


def _fetch(url, part, headers):
    """Complete file `part` with the content of `url`."""
    end = time.monotonic() + raised(MOST_SECONDS)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _fetch_rest(url, part, headers, end)
            return
        except _BrokenOff as error:
            if attempt == ATTEMPTS:
                raise DownloadError(f'{url}: {error} ({ATTEMPTS} attempts)') from error
            pause = BACKOFF * 2 ** (attempt - 1)
            logger.warning('%s: %s; trying again in %g s', url, error, pause)
            time.sleep(pause)
        except requests.RequestException as error:
            raise DownloadError(f'{url}: {reason_of(error)}') from error
        except (ValueError, urllib3.exceptions.HTTPError) as error:
            raise DownloadError(f'{url}: an odd answer of the server: {error!r:.200}') from error


def _fetch_rest(url, part, headers, end):
    """Ask once for the rest of `url` that `part` lacks."""
    done, note = _state(url, part)
    # a range counts the bytes of the file itself
    headers = {**headers, 'Accept-Encoding': 'identity'}
    if done:
        headers.update({'Range': f'bytes={done}-', 'If-Range': note['validator']})
    try:
        with _Session() as session, session.get(
            url, headers=headers, stream=True, timeout=TIMEOUT
        ) as response:
            status = response.status_code
            if status == 416 and response.headers.get('Content-Range') == f'bytes */{done}':
                return  # complete already; only its installation was interrupted
            if status == 416 or status == 206 and not _fits(response, done, note):
                _remove(part)
                raise _BrokenOff('the part downloaded earlier does not fit the file')
            if status in RETRIED_STATUS:
                raise _BrokenOff(f'HTTP {status} {response.reason}')
            if status not in (200, 206):
                raise DownloadError(f'{url}: HTTP {status} {response.reason}')
            if status == 200:  # from the start, whether asked for or not
                done = 0
                _begin(url, part, response)
            _write(response, part, done, end)
    except requests.RequestException as error:
        if is_final(error):
            raise
        raise _BrokenOff(reason_of(error)) from error


def _fits(response, done, note):
    """Whether a partial answer goes on where `part` ends, with the version that `part` is of."""
    span = _RANGE.fullmatch(response.headers.get('Content-Range', ''))
    if not span or int(span['start']) != done:
        return False
    etag = response.headers.get('ETag')
    if etag and note.get('etag') and etag != note['etag']:
        return False
    return not note.get('total') or span['total'] in ('*', str(note['total']))


class _Session(requests.Session):
    """Follows redirections, but not from https to http, where anybody may change the file."""

    def get_redirect_target(self, response):
        target = super().get_redirect_target(response)
        if target is not None:
            there = requests.compat.urljoin(response.url, target)
            if response.url.startswith('https:') and not there.startswith('https:'):
                raise DownloadError(f'{response.url} redirects to {there:.200}, which is not https')
        return target


def _length(response):
    """Bytes of an answer's body, if it tells them."""
    length = response.headers.get('Content-Length')
    if length is not None and not _NUMBER.fullmatch(length):
        raise ValueError(f'Content-Length {length:.80}')
    return None if length is None else int(length)


def _write(response, part, done, end):
    """Append the body of `response` to `part`, which has `done` bytes."""
    length, most = _length(response), raised(MOST_BYTES)
    total = None if length is None else done + length
    if total is not None and total <= most:
        check_space(part, length)
    name, size = os.path.basename(part)[: -len('.part')], done
    with open(part, 'ab', opener=_no_link) as file, _progress(name, total, done) as advance:
        for block in response.iter_content(CHUNK):
            size += len(block)
            if max(size, total or 0) > most:
                raise DownloadError(f'{response.url:.200} has more than {most:.0f} bytes')
            if time.monotonic() > end:
                raise DownloadError(f'{response.url:.200} takes more than {raised(MOST_SECONDS)} s')
            file.write(block)
            advance(len(block))
    size = os.path.getsize(part)
    if total is not None and size != total:
        raise _BrokenOff(f'the connection was closed after {size} of {total} bytes')


def _begin(url, part, response):
    """Make `part` an empty file, and note which version of `url` goes into it."""
    etag = validator = response.headers.get('ETag', '')
    if not validator.startswith('"'):  # none, or a weak one, which can't validate a range
        validator = response.headers.get('Last-Modified')
    note = {'url': url, 'validator': validator, 'etag': etag, 'total': _length(response)}
    _remove(part)  # it may be a link
    with open(part, 'wb', opener=_no_link):
        pass
    with open(_note(part), 'w', encoding='utf-8', opener=_no_link) as file:
        json.dump(note, file)


def _state(url, part):
    """Bytes in `part` that can be kept, and the note on their version; 0 and {} to restart."""
    try:
        note = read_json(_note(part), shape={'url': str, 'validator': str})
        if note['url'] == url and note['validator'].isprintable() and not os.path.islink(part):
            return os.path.getsize(part), note
    except (OSError, InputError):
        pass  # no part, or one of unknown origin
    return 0, {}


def _no_link(path, flags):
    """Open a file of ours: whoever may write to the folder could have put a link there."""
    return os.open(path, flags | getattr(os, 'O_NOFOLLOW', 0), 0o666)


def _note(part):
    return part + '.json'


def _install(part, path, checksum):
    """Rename `part` to `path` once it is verified."""
    mismatch = checksum and checksum.mismatch(part)
    if mismatch:
        raise _Damaged(mismatch)
    os.replace(part, path)


def _extract(part, member, unpacked):
    """Write `member` of the zip archive `part` to `unpacked`; nothing else is extracted."""
    try:
        with zipfile.ZipFile(part) as archive, archive.open(member) as source:
            check_space(unpacked, archive.getinfo(member).file_size)
            with contextlib.suppress(FileNotFoundError):
                os.remove(unpacked)
            with open(unpacked, 'wb', opener=_no_link) as target:
                shutil.copyfileobj(source, target, BLOCK)
    except KeyError:
        raise _Damaged(f'it is a zip archive without {member}') from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _Damaged(f'it is not a sound zip archive: {error}') from error


def check_space(path, size):
    """Fail early if `size` bytes don't fit at `path`."""
    if size > shutil.disk_usage(os.path.dirname(path)).free:
        raise OSError(errno.ENOSPC, f'{size / 1e6:.0f} MB do not fit on the disk')


def _remove(part):
    for path in (part, _note(part)):
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


@contextlib.contextmanager
def _progress(name, total, done):
    """A function to call with new bytes: shows a bar on a terminal, a line every 10 s elsewhere."""
    if sys.stderr.isatty():
        with tqdm.tqdm(total=total, initial=done, unit='B', unit_scale=True, desc=name) as bar:
            yield bar.update
        return

    start = shown = time.monotonic()
    size = '' if total is None else f' of {total / 1e6:.1f}'
    logger.info('downloading %s%s', name, size and f' ({total / 1e6:.1f} MB)')

    def advance(count):
        nonlocal done, shown
        done += count
        if time.monotonic() - shown >= 10:
            shown = time.monotonic()
            logger.info('%s: %.1f%s MB', name, done / 1e6, size)

    yield advance
    logger.info('%s: %.1f MB in %.1f s', name, done / 1e6, time.monotonic() - start)


def is_final(error):
    """Whether another attempt in a few seconds would fail, too."""
    passing = (
        requests.ConnectionError,
        requests.ReadTimeout,
        requests.exceptions.ChunkedEncodingError,
    )
    lasting = (
        requests.ConnectTimeout,
        requests.exceptions.SSLError,
        requests.exceptions.ProxyError,
    )
    if not isinstance(error, passing) or isinstance(error, lasting):
        return True
    cause = getattr(error.args[0] if error.args else None, 'reason', None)
    return isinstance(cause, urllib3.exceptions.NewConnectionError)  # refused, or no such host


def reason_of(error):
    """Why a request failed, without the library's wrappings."""
    text = str(error)
    if isinstance(error, requests.Timeout) or 'timed out' in text:
        return 'the server does not answer (timed out)'
    if 'refused' in text:
        return 'connection refused'
    if any(sign in text for sign in ('NameResolution', 'getaddrinfo', 'Name or service')):
        return 'the host name cannot be resolved (no network?)'
    if isinstance(error, requests.exceptions.ProxyError):
        return 'the proxy cannot be used (check HTTP_PROXY and HTTPS_PROXY)'
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return 'the connection broke off'
    return f'{text:.300}'  # of the server's words
