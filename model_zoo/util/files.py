"""Files that are written completely or not at all."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile

from ..errors import InputError, ZooError
from . import remote

__all__ = [
    'atomic_write',
    'file_in',
    'make_output_dir',
    'make_writable_dir',
    'output_folder',
    'parse_json',
    'put_in_place',
    'read_json',
    'remove_leftovers',
    'sha256_of',
    'state_of',
    'write_json',
    'written_together',
]

_TEMPORARY = re.compile(r'\.(.+)[0-9a-f]{8}\.part', re.DOTALL)  # as atomic_write names them


def make_writable_dir(path):
    """Create directory `path` where it is missing, and check that files can be written to it.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    str
        The path.
    """
    path = os.fspath(path)
    if remote.is_url(path):  # it would become a folder called gs: or the like
        raise InputError(f'cannot write to {path!r}: name a folder of this machine')
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(
            f'cannot write to directory {path!r}: {error.strerror}; choose another one'
        ) from error
    return path


def make_output_dir(path):
    """As `make_writable_dir`, also for a URL, to which a small file is written and removed."""
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

    Yields
    ------
    str
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
    try:
        remote.upload(source, url)
    except OSError as error:
        raise InputError(f'cannot write {url!r}: {error.strerror or error}') from error


def file_in(path, name):
    """`path` as a str, or the path of the file `name` in it if it is a directory."""
    path = os.fspath(path)
    return os.path.join(path, name) if os.path.isdir(path) else path


@contextlib.contextmanager
def atomic_write(path, mode='w', encoding='utf-8'):
    """Open a temporary file beside `path`, and rename it to `path` once the block has ended well.

    On any error, including Ctrl-C and a full disk, the temporary file is removed and an existing
    file at `path` stays as it was.

    Parameters
    ----------
    path : str or os.PathLike
        Or a URL: the file is then written here, and uploaded once it is whole.
    mode : {'w', 'wb', None}
        None yields the temporary file's *name*, for writers that open files themselves.
    encoding : str
        Encoding of text files.

    Yields
    ------
    file object or str
    """
    path = os.fspath(path)
    folder, name = os.path.split(path)
    if remote.is_url(path):
        with tempfile.TemporaryDirectory(prefix='zoo-') as here:
            local = os.path.join(here, name)
            with atomic_write(local, mode, encoding) as file:
                yield file
            upload(local, path)
        return
    temporary = os.path.join(folder, f'.{name}{secrets.token_hex(4)}.part')
    # not tempfile.mkstemp, whose files others can't read: here the system applies the umask
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, 'O_BINARY', 0)
    try:
        handle = os.open(temporary, flags, 0o666)
    except OSError as error:
        raise InputError(f'cannot write {path!r}: {error.strerror}') from error
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
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        if isinstance(error, OSError) and not isinstance(error, ZooError):
            raise InputError(f'cannot write {path!r}: {error.strerror or error}') from error
        raise


def sha256_of(path):
    """The hexadecimal sha256 of a file."""
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        for piece in iter(lambda: file.read(2**20), b''):
            digest.update(piece)
    return digest.hexdigest()


def parse_json(text):
    """What a JSON text holds.

    Parameters
    ----------
    text : str or bytes
        Bytes are UTF-8.

    Raises
    ------
    ValueError
        If it isn't JSON, or is nested more deeply than Python can read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError('its lists or objects are nested too deeply') from None


def remove_leftovers(folder, of=None):
    """Remove the temporary files of `atomic_write` that killed processes have left in a folder.

    Parameters
    ----------
    folder : str
    of : collection of str, optional
        Names of the files that they were writing; by default all.
    """
    for name in os.listdir(folder):
        found = _TEMPORARY.fullmatch(name)
        if found and (of is None or found.group(1) in of):
            with contextlib.suppress(OSError):
                os.remove(os.path.join(folder, name))


def state_of(path):
    """What tells that a folder or file of this machine has changed: its files' sizes and times.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    frozenset
        Empty if nothing is there.
    """
    path, found = os.path.expanduser(os.fspath(path)), set()
    folder, name = os.path.split(path)
    for where, _, names in [(folder, (), [name])] if os.path.isfile(path) else os.walk(path):
        for name in names:
            try:
                status = os.stat(os.path.join(where, name))
            except OSError:  # it has gone meanwhile
                continue
            found.add((where, name, status.st_ino, status.st_size, status.st_mtime_ns))
    return frozenset(found)


def read_json(path, what=''):
    """What a JSON file holds.

    Parameters
    ----------
    path : str or os.PathLike
    what : str
        What the file is, for messages.

    Raises
    ------
    InputError
        If it can't be read; the message names the file.
    """
    try:
        with remote.open_binary(path) as file:
            return parse_json(file.read().decode('utf-8'))
    except (OSError, ValueError) as error:
        name = f'{what} {os.fspath(path)!r}'.lstrip()
        if isinstance(error, OSError):
            raise InputError(f'cannot read {name}: {error.strerror or error}') from error
        raise InputError(f'cannot read {name}: it is not JSON: {error}') from error


def write_json(path, value):
    """Write `value` to `path` as indented JSON, whole or not at all."""
    with atomic_write(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write('\n')


@contextlib.contextmanager
def written_together(directory, prefix=''):
    """A folder for files that are put into `directory` at the end of the block, all or none.

    Parameters
    ----------
    directory : str
        Exists. After an error the files in it are what they were.
    prefix : str
        Of the folder's name.

    Yields
    ------
    str
        The folder, in `directory`. Whatever files it holds at the end are those that are put.

    Raises
    ------
    InputError
        If the system can't write them.
    """
    folder = None
    try:
        folder = tempfile.mkdtemp(dir=directory, prefix=f'.{prefix}')
        yield folder
        names = sorted(os.listdir(folder))
        new, final = ([os.path.join(each, name) for name in names] for each in (folder, directory))
        put_in_place(new, final, folder)
    except OSError as error:
        if isinstance(error, ZooError):
            raise
        raise InputError(f'cannot write to {directory!r}: {error.strerror or error}') from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def put_in_place(new, final, temporary):
    """Rename files, all or none.

    Parameters
    ----------
    new, final : list of str
        Their paths now, and those that they get.
    temporary : str
        A directory on the same disk, where the files at `final` are kept meanwhile.

    Raises
    ------
    InputError
        If one can't be renamed; the files at `final` are then what they were.
    """
    renames = []
    try:
        for i, (source, target) in enumerate(zip(new, final)):
            pairs = [(source, target)]
            if os.path.exists(target):
                pairs.insert(0, (target, os.path.join(temporary, f'old{i}')))
            for pair in pairs:
                renames.append(pair)  # before it is done: an interrupt may come in between
                os.replace(*pair)
    except BaseException as error:
        for source, target in reversed(renames):
            with contextlib.suppress(OSError):  # the last one may not have happened
                os.replace(target, source)
        if isinstance(error, OSError):
            raise InputError(f'cannot write {target!r}: {error.strerror}') from error
        raise
