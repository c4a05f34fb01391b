"""Files that are written completely or not at all."""

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import stat
import tempfile

import filelock

from ..errors import InputError, ZooError, reporting
from . import remote

__all__ = [
    'atomic_write',
    'file_in',
    'keep_permissions',
    'lock_file',
    'make_output_dir',
    'make_writable_dir',
    'output_folder',
    'put_in_place',
    'remove_leftovers',
    'writable_target',
    'write_json',
    'written_together',
]

_TEMPORARY = re.compile(r'\.(.+)[0-9a-f]{8}\.part', re.DOTALL)  # as atomic_write names them
_DESCRIPTOR = re.compile(r'/dev/(stdout|stderr|fd/\d+)|/proc/(self|\d+)/fd/\d+')


def make_writable_dir(path):
    """Create directory `path` where it is missing, and check that files can be written to it."""
    path = os.fspath(path)
    if remote.is_url(path):  # it would become a folder called gs: or the like
        raise InputError(f'cannot write to {path!r}: name a folder of this machine')
    with reporting(f'cannot write to directory {path!r}', '; choose another one'):
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    return path


def make_output_dir(path):
    """Like `make_writable_dir`, also for a URL: a small file is written there and removed."""
    path = os.path.expanduser(os.fspath(path))
    if not remote.is_url(path):
        return make_writable_dir(path)
    probe = remote.join(path, f'.writable-{secrets.token_hex(4)}')
    with atomic_write(probe) as file:
        file.write('?')
    with contextlib.suppress(OSError):  # writing may be allowed, and removing not
        remote.remove_file(probe)
    return path.rstrip('/')


@contextlib.contextmanager
def output_folder(path):
    """A folder to write to: `path`, or for a URL one of this machine that is uploaded at the end.

    Nothing is uploaded after an error.
    """
    path = make_output_dir(path)
    if not remote.is_url(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix='zoo-') as folder:
        yield folder
        for where, _, names in os.walk(folder):
            for name in sorted(names):
                source = os.path.join(where, name)
                upload(source, remote.join(path, *os.path.relpath(source, folder).split(os.sep)))


def upload(source, url):
    """Write a file of this machine to a URL."""
    with reporting(f'cannot write {url!r}'):
        remote.upload(source, url)


def file_in(path, name):
    """`path` as a str, or the path of the file `name` in it if it is a directory."""
    path = os.fspath(path)
    return os.path.join(path, name) if os.path.isdir(path) else path


@contextlib.contextmanager
def atomic_write(path, mode='w', encoding='utf-8'):
    """Open a temporary file beside `path`, and rename it to `path` once the block has ended well.

    On any error, including Ctrl-C and a full disk, the temporary file is removed and an existing
    file at `path` stays as it was. A file that is replaced keeps its permissions and owner (one of
    another user, or a container's single file, is written over once there is room for all of it);
    one that nobody may write is refused. A symbolic link stays, and its target is written. A
    device, a pipe or what another program has opened (``/dev/stdout``) is never replaced: text is
    written to it as it comes, other content when it is whole.
    """
    path = os.fspath(path)
    with reporting(f'cannot write {path!r}'), _opened(path, mode, encoding) as file:
        yield file


def _opened(path, mode, encoding):
    if remote.is_url(path):
        return _sent(path, mode, encoding, lambda local: upload(local, path))
    target, status = writable_target(path)
    if status is None or target is not None:
        return _replacing(target, status, mode, encoding)
    if mode == 'w':
        return open(_append(path), mode, encoding=encoding)
    return _sent(path, mode, encoding, lambda local: _append_file(local, path))


def _append(path):
    return os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, 'O_BINARY', 0))


def _append_file(source, path):
    with open(source, 'rb') as content, open(_append(path), 'wb') as sink:
        shutil.copyfileobj(content, sink)


@contextlib.contextmanager
def _sent(path, mode, encoding, send):
    """A file of another folder; ``send(path)`` takes it once it is whole."""
    with tempfile.TemporaryDirectory(prefix='zoo-') as folder:
        local = os.path.join(folder, os.path.basename(path))
        with atomic_write(local, mode, encoding) as file:
            yield file
        send(local)


@contextlib.contextmanager
def _replacing(target, status, mode, encoding):
    """A temporary file beside `target`, which it replaces at the end."""
    temporary = _temporary_for(target)
    # not tempfile.mkstemp, whose files others can't read: here the system applies the umask
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, 'O_BINARY', 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        if mode is None:
            os.close(handle)
            yield temporary
            with open(temporary, 'rb+') as file:
                os.fsync(file.fileno())
        else:
            text = None if 'b' in mode else encoding
            with os.fdopen(handle, mode, encoding=text) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        _put(temporary, target, status)
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


def _temporary_for(target):
    folder, name = os.path.split(target)
    return os.path.join(folder, f'.{name}{secrets.token_hex(4)}.part')


def writable_target(path):
    """Where a file is written, and the `os.stat_result` of what is there, or None.

    Of a symbolic link that is what it leads to. None stands for what is written to as it is: a
    device, a pipe, or what a program has opened, such as ``/dev/stdout``. InputError for a folder,
    or a file that nobody may write.
    """
    problem = status = None
    try:
        status = os.stat(path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        problem = getattr(error, 'strerror', None) or error
        if getattr(error, 'errno', None) == errno.ELOOP:  # a link that leads to itself
            problem = 'it is not a regular file'
    if not os.path.basename(path):
        problem = 'that is not the name of a file'
    elif status is not None and stat.S_ISDIR(status.st_mode):
        problem = 'it is a folder'
    elif status is not None and not (status.st_mode & 0o222 and os.access(path, os.W_OK)):
        problem = 'it may not be written to'
    if problem is not None:
        raise InputError(f'cannot write {path!r}: {problem}; give the name of a file')
    if status is None or stat.S_ISREG(status.st_mode) and not _DESCRIPTOR.fullmatch(path):
        return os.path.realpath(path) if os.path.islink(path) else path, status
    return None, status


def _put(source, target, status):
    """Rename a file; of a file at `target`, whose `status` is given, permissions and owner stay."""
    if os.stat(source).st_dev != os.stat(os.path.dirname(target) or '.').st_dev:
        beside = _temporary_for(target)
        try:
            shutil.copyfile(source, beside)
            _put(beside, target, status)
            os.remove(source)
        finally:
            with contextlib.suppress(OSError):
                os.remove(beside)
        return
    if status is None:
        os.replace(source, target)
        return
    try:
        keep_permissions(source, status)
        os.replace(source, target)
    except OSError as error:
        # another's file may not become one's own; a container's single file can't be replaced
        if error.errno not in (errno.EPERM, errno.EBUSY, errno.EACCES):
            raise
        _write_over(source, target)


def _keep(path, status, kept):
    """Give a file another name, too; or copy it, if `_put` may write over it."""
    if not hasattr(os, 'geteuid') or os.geteuid() in (0, status.st_uid):
        with contextlib.suppress(OSError):  # of another disk, or a disk without links
            os.link(path, kept)
            return
    shutil.copy2(path, kept)


def keep_permissions(path, status):
    """Give a file the permissions and the owner that `status`, an `os.stat_result`, tells."""
    if hasattr(os, 'chown') and (status.st_uid, status.st_gid) != _owner(os.stat(path)):
        os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, stat.S_IMODE(status.st_mode))


def _owner(status):
    return status.st_uid, status.st_gid


def _write_over(source, target):
    """Write the content of a file over that of another, once there is room for it."""
    with open(source, 'rb') as new, open(target, 'rb+') as file:
        before, size = (os.fstat(opened.fileno()).st_size for opened in (file, new))
        if hasattr(os, 'posix_fallocate') and size > before:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError:
                file.truncate(before)
                raise
        shutil.copyfileobj(new, file)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def remove_leftovers(folder, of=None):
    """Remove the temporary files of `atomic_write` that killed processes have left in a folder."""
    for name in os.listdir(folder):
        leftover = _TEMPORARY.fullmatch(name)
        if leftover and (of is None or leftover.group(1) in of):
            with contextlib.suppress(OSError):
                os.remove(os.path.join(folder, name))


def write_json(path, value):
    """Write `value` to `path` as indented JSON, whole or not at all."""
    with atomic_write(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write('\n')


@contextlib.contextmanager
def written_together(directory, prefix=''):
    """A folder in `directory`, whose files are put into `directory` at the end of the block.

    All are put, or none: after an error the files in `directory` are what they were.
    """
    with reporting(f'cannot write to {directory!r}'), contextlib.ExitStack() as stack:
        folder = tempfile.mkdtemp(dir=directory, prefix=f'.{prefix}')
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder
        names = sorted(os.listdir(folder))
        put_in_place({os.path.join(folder, name): os.path.join(directory, name) for name in names})


def put_in_place(moves):
    """Give files other names, all or none; see `atomic_write` for what is there already."""
    targets = {source: writable_target(path) for source, path in moves.items()}
    done = []
    folder = os.path.dirname(next(iter(moves), ''))
    with tempfile.TemporaryDirectory(prefix='.', dir=folder or None) as old:
        try:
            for source, (target, status) in targets.items():
                path = moves[source]
                if target is None:
                    _append_file(source, path)
                    continue
                kept = None
                if status is not None:
                    kept = os.path.join(old, str(len(done)))
                    _keep(target, status, kept)
                done.append((target, kept))  # before it is done: an interrupt may come in between
                _put(source, target, status)
        except BaseException as error:
            for target, kept in reversed(done):
                with contextlib.suppress(OSError):  # the last one may not have happened
                    os.remove(target) if kept is None else _put(kept, target, os.stat(kept))
            if isinstance(error, OSError) and not isinstance(error, ZooError):
                raise InputError(f'cannot write {path!r}: {error.strerror}') from error
            raise


def lock_file(path, message):
    """Lock a file until the lock is released, or the process ends."""
    if os.path.islink(path):  # older versions of filelock would empty the file that it leads to
        raise InputError(f'cannot lock {path!r}: it is a link; remove it')
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise InputError(message) from None
    except OSError as error:
        problem = error.strerror or error
        raise InputError(f'cannot lock {path!r}: {problem}; remove it') from error
    return lock
