"""Files that are written completely or not at all."""

import contextlib
import errno
import fcntl
import json
import os
import pathlib
import re
import secrets
import shutil
import stat
import tempfile
import time

import filelock

from ..errors import InputError, reporting
from . import remote

_TEMPORARY = re.compile(r'\.(.+)[0-9a-f]{8}\.part', re.DOTALL)  # as `_temporary_in` names them
_LOCK = '.lock'  # in a temporary folder
_DESCRIPTOR = re.compile(r'/dev/(stdout|stderr|fd/\d+)')


def make_writable_dir(path):
    """Create a directory where it is missing, and check that files can be written to it."""
    path = os.fspath(path)
    if remote.is_url(path):  # it would become a folder called gs: or the like
        raise InputError(f'cannot write to {path!r}: name a folder of this machine')
    with reporting(f'cannot write to directory {path!r}', '; choose another one'):
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    return path


def make_output_dir(path):
    """Do what `make_writable_dir` does, also for a URL: a small file is written and removed."""
    path = os.path.expanduser(os.fspath(path))
    if not remote.is_url(path):
        return make_writable_dir(path)
    probe = remote.join(path, f'.writable-{secrets.token_hex(4)}')
    with atomic_write(probe) as file:
        file.write('?')
    with contextlib.suppress(OSError):  # writing may be allowed, and removing not
        remote.remove_file(probe)
    return path.rstrip('/')


def upload(source, url):
    """Write a file of this machine to a URL."""
    with reporting(f'cannot write {url!r}'):
        remote.upload(source, url)


def fetch(url, target):
    """Write the file of a URL to `target`, which doesn't exist before it is whole."""
    folder, name = os.path.split(target)
    os.makedirs(folder or '.', exist_ok=True)
    with temporary_folder(folder, name) as temporary:
        part = os.path.join(temporary, 'part')
        remote.download(url, part)
        os.replace(part, target)


def file_in(path, name):
    """Return `path` as a str, or the path of the file `name` in it if it is a directory."""
    path = os.fspath(path)
    return os.path.join(path, name) if os.path.isdir(path) else path


@contextlib.contextmanager
def atomic_write(path, mode='w'):
    """Open a temporary file beside `path`, and rename it to `path` once the block has ended well.

    On any error, including Ctrl-C and a full disk, the temporary file is removed and an existing
    file at `path` stays as it was. A replaced file keeps its permissions, and a symbolic link is
    followed. A device, a pipe and ``/dev/stdout`` are written to directly, and a file for a URL is
    uploaded at the end. With mode None the value is the path of the temporary file, for libraries
    that write files themselves.
    """
    path = os.fspath(path)
    with reporting(f'cannot write {path!r}'):
        if remote.is_url(path):
            with tempfile.TemporaryDirectory(prefix='zoo-') as folder:
                local = os.path.join(folder, os.path.basename(path))
                with _temporary(local, mode) as file:
                    yield file
                upload(local, path)
        elif (target := _writable_target(path)) is not None:
            with _temporary(target, mode) as file:
                yield file
        elif mode is None:
            yield path
        else:
            encoding = None if 'b' in mode else 'utf-8'
            with open(path, mode.replace('w', 'a'), encoding=encoding) as file:
                yield file


def _temporary_in(folder, name):
    """Return a temporary path for `name`, and remove what killed writers left."""
    remove_leftovers(folder, {name})
    return os.path.join(folder, f'.{name}{secrets.token_hex(4)}.part')


def _hold(file):
    """Lock an open file while its process lives; False if another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)  # no locks there
    return True


@contextlib.contextmanager
def _temporary(target, mode):
    temporary = _temporary_in(*os.path.split(target))
    opened = 'xb' if mode is None else mode.replace('w', 'x')
    try:
        with open(temporary, opened, encoding=None if 'b' in opened else 'utf-8') as file:
            _hold(file)
            yield temporary if mode is None else file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


def _writable_target(path):
    """Return the file that is written for a path: for a symbolic link, its target.

    None for what is written to as it is: a device, a pipe, or ``/dev/stdout``. InputError for a
    folder, or a file that nobody may write.
    """
    problem = None
    if os.path.isdir(path) or not os.path.basename(path):
        problem = 'it is a folder'
    elif os.path.exists(path):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) or _DESCRIPTOR.fullmatch(path):
            return None
        if not mode & 0o222:
            problem = 'it may not be written to'
    if problem is not None:
        raise InputError(f'cannot write {path!r}: {problem}; name a file')
    return os.path.realpath(path)


def remove_leftovers(folder, of=None, is_ours=False):
    """Remove the temporary files and folders that killed processes have left in a folder.

    Those whose process still lives, which holds a lock, stay. `of` has names of what was written;
    by default all go. `is_ours`: no other process writes to the folder.
    """
    for name in os.listdir(folder or '.'):
        leftover = _TEMPORARY.fullmatch(name)
        if leftover and (of is None or leftover.group(1) in of):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                is_folder = os.path.isdir(path)
                is_begun = os.listdir(path) if is_folder else os.path.getsize(path)
                if not (is_begun or is_ours) and os.path.getmtime(path) > time.time() - 10:
                    continue  # its writer may be about to lock it
                with open(os.path.join(path, _LOCK) if is_folder else path, 'ab') as file:
                    if _hold(file):
                        (shutil.rmtree if is_folder else os.remove)(path)


def write_json(path, value):
    """Write `value` to `path` as indented JSON, whole or not at all."""
    with atomic_write(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write('\n')


@contextlib.contextmanager
def temporary_folder(directory, name):
    """Give a folder in `directory`, which is removed at the end.

    What killed processes have left of folders of this name goes, too.
    """
    with contextlib.ExitStack() as ending:
        folder = _temporary_in(directory, name)
        os.mkdir(folder)
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
        _hold(ending.enter_context(open(os.path.join(folder, _LOCK), 'ab')))
        yield folder


@contextlib.contextmanager
def written_together(directory, prefix='', keys=()):
    """Give a folder in `directory`, whose files are put into `directory` at the end of the block.

    After an error in the block, none are. Files with the names `keys` go from `directory` before
    the others are replaced, and come last, the first of them at the very end: where it is, the
    others belong to it, even if a process was killed.
    """
    with (
        reporting(f'cannot write to {directory!r}'),
        temporary_folder(directory, prefix or 'folder') as folder,
    ):
        yield folder
        files = (path for path in pathlib.Path(folder).rglob('*') if path.is_file())
        names = {str(path.relative_to(folder)) for path in files} - {_LOCK}
        order = [*sorted(names.difference(keys)), *filter(names.__contains__, reversed(keys))]
        moves = {os.path.join(folder, name): os.path.join(directory, name) for name in order}
        replace_files(moves, [os.path.join(directory, key) for key in keys])


def replace_files(moves, gone=()):
    """Move files, source -> path, as `atomic_write` does; all paths are checked first.

    Before the first is moved, those at the paths `gone` are removed.
    """
    targets = {source: _writable_target(path) for source, path in moves.items()}
    for source, target in targets.items():
        with open(source, 'rb') as file:
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, source)
    for path in gone:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.realpath(path))
    for source, target in targets.items():
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.move(source, target)


def lock_file(path, message):
    """Lock a file until the lock is released, or the process ends."""
    lock = filelock.FileLock(path)
    with reporting(f'cannot lock {path!r}', '; remove it'):
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise InputError(message) from None
    return lock
