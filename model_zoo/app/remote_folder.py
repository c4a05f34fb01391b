"""An output folder at a URL, and the folder of this machine in which a run works for it."""

import contextlib
import hashlib
import logging
import os
import shutil
import stat
import tempfile

from ..errors import InputError
from ..util.files import make_output_dir, make_writable_dir, upload
from ..util.remote import download, join, remove_file, sizes_in

__all__ = ['RemoteFolder', 'upload_files', 'working_file']

logger = logging.getLogger(__name__)

_MARK = '.of-gluon-transformer-zoo'
_NOT_SENT = '.', 'mapped_'  # locks and what is being written; what `MappedShards` unpacks


class RemoteFolder:
    """A folder of this machine that is copied to a URL: after each checkpoint, and at the end.

    It is below a folder of the user's own in the system's folder for temporary files (``$TMPDIR``),
    which others can't enter, and is removed at the end, when all is uploaded. Nothing is removed
    that another program has put there. Names that begin with a dot stay here.

    Parameters
    ----------
    url : str

    Attributes
    ----------
    url : str
    path : str
        The folder of this machine, the same for all processes of a user.

    Raises
    ------
    InputError
        If nothing can be written to the URL, or others can write to the folder of this machine.
    """

    def __init__(self, url):
        self.url = make_output_dir(url)
        self._parent, _, name = self.url.rpartition('/')
        # what is written beside the folder, as the results of a second dev set, is uploaded, too
        self._root = _working_folder(self.url)
        self.path = make_writable_dir(os.path.join(self._root, name))
        self._sent, self._is_closed = {}, False

    def pull(self):
        """Make the folder of this machine what the URL has."""
        for where, folders, names in os.walk(self._root):
            for name in folders[:]:
                path = os.path.join(where, name)
                if path != self.path:
                    os.remove(path) if os.path.islink(path) else shutil.rmtree(path)
                    folders.remove(name)
            for name in names:
                if not name.startswith('.'):
                    os.remove(os.path.join(where, name))
        try:
            found = sizes_in(self.url)
            if found:
                logger.info('fetching %d files from %s', len(found), self.url)
            for name in found:
                if any(part.startswith('.') for part in name.split('/')):
                    continue
                target = os.path.join(self.path, *name.split('/'))
                download(join(self.url, name), target)
                self._sent[self._name(target)] = _facts(target)
        except OSError as error:
            raise InputError(f'cannot read {self.url!r}: {error.strerror or error}') from error

    def push(self):
        """Make the URL have what the folder of this machine has; checksums are sent last."""
        here = {}
        for where, folders, names in os.walk(self._root):
            folders[:] = [name for name in folders if not name.startswith(_NOT_SENT)]
            for name in names:
                if not name.startswith('.'):
                    path = os.path.join(where, name)
                    here[self._name(path)] = path
        for name in sorted(here, key=lambda name: (name.endswith('SHA256SUMS'), name)):
            facts = _facts(here[name])
            if self._sent.get(name) != facts:
                upload(here[name], join(self._parent, name))
                self._sent[name] = facts
        for name in sorted(set(self._sent).difference(here)):
            try:
                remove_file(join(self._parent, name))
            except FileNotFoundError:
                pass
            except OSError as error:
                raise InputError(f'cannot remove {error.filename}: {error.strerror}') from error
            del self._sent[name]

    def close(self):
        """Upload what is left, and remove the folder of this machine."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.push()
        except InputError as error:
            raise InputError(f'{error}; the results stay in {self.path!r}') from error
        shutil.rmtree(self._root, ignore_errors=True)

    def discard(self):
        """Remove the folder of this machine."""
        self._is_closed = True
        shutil.rmtree(self._root, ignore_errors=True)

    def _name(self, path):
        return os.path.relpath(path, self._root).replace(os.sep, '/')


def working_file(url):
    """The path of this machine at which the file of a URL is written, for `upload_files`.

    Raises
    ------
    InputError
        If nothing can be written to the URL.
    """
    parent, _, name = url.rpartition('/')
    make_output_dir(parent)
    return os.path.join(_working_folder(url), name)


def upload_files(paths, url):
    """Upload files beside the URL of `working_file`, and remove them here; the last one last."""
    for path in paths:
        upload(path, join(url.rpartition('/')[0], os.path.basename(path)))
    shutil.rmtree(os.path.dirname(paths[0]), ignore_errors=True)


def _working_folder(url):
    """A folder for temporary files, of one URL and user; marked as ours."""
    user = f'zoo-{os.getuid()}' if hasattr(os, 'getuid') else 'zoo'
    parent = os.path.join(tempfile.gettempdir(), user)
    path = os.path.join(parent, hashlib.sha256(url.encode()).hexdigest()[:16])
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(parent, 0o700)
        _check_own(parent)
        os.chmod(parent, 0o700)
        if not os.path.lexists(path):  # it is marked before it has its name
            new = tempfile.mkdtemp(dir=parent)
            with open(os.path.join(new, _MARK), 'w', encoding='utf-8') as file:
                file.write(f'{url}\n')
            try:
                os.rename(new, path)
            except OSError:  # another process has just made it
                shutil.rmtree(new)
        _check_own(path)
    except OSError as error:
        raise InputError(
            f'cannot write to {parent!r}: {error.strerror}; remove it, or set TMPDIR'
        ) from error
    if not os.path.isfile(os.path.join(path, _MARK)):
        raise InputError(f'{path!r} is not a folder that this program has made: remove it')
    return path


def _check_own(path):
    """Raise InputError unless this is a folder, no link, which only this user can write to."""
    status = os.lstat(path)
    is_own = stat.S_ISDIR(status.st_mode)
    if hasattr(os, 'getuid'):
        is_own = is_own and status.st_uid == os.getuid() and not status.st_mode & 0o022
    if not is_own:
        raise InputError(
            f'{path!r} is not a folder that only you can write to: remove it, or set TMPDIR to a '
            'folder of your own'
        )


def _facts(path):
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
