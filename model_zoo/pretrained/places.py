"""From a name that says where a model is, such as a URL, to a folder or file on this machine."""

import hashlib
import os
import posixpath
import re
import shutil
from urllib.parse import urlsplit

import filelock

from ..errors import InputError, PretrainedNotFoundError, reporting
from ..util import remote
from ..util.files import fetch, make_writable_dir, temporary_folder
from ..util.reading import sha256_of
from .catalogue import is_alias
from .download import SourceError, default_root, download

__all__ = ['copy_of', 'unpacked']

_REPOSITORY = re.compile(r'(?P<name>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>\w[\w./-]*))?', re.ASCII)
_ARCHIVES = ('.tar.gz', '.tgz', '.tar', '.tar.bz2', '.tar.xz', '.zip')
_SMALL = 2**25  # bytes; beside a file of weights, such ones may be its configuration or vocabulary


def is_place(name):
    """Return whether a model's name says where else than in a folder or file here the model is.

    Parameters
    ----------
    name : str or os.PathLike
        ``'owner/name'`` or ``'owner/name@revision'`` of the Hugging Face hub, unless the catalogue
        has it; an address that begins with ``https://`` or ``http://``; a URL of a folder or
        file that fsspec reads, such as ``s3://bucket/model``; or a file such as ``model.tar.gz``.
    """
    name = os.path.expanduser(os.fspath(name))
    if os.path.exists(name):
        return os.path.isfile(name) and _is_archive(name)
    return remote.is_url(name) or (bool(_REPOSITORY.fullmatch(name)) and not is_alias(name))


def local_path(name, weights=True, root=None):
    """Return the folder or file on this machine that a name means.

    What is elsewhere is downloaded once, and archives are unpacked.

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
    digest = hashlib.sha256(path.encode()).hexdigest()[:16]
    if path.startswith(('https://', 'http://')):
        name, source = os.path.basename(urlsplit(path).path), 'address'
        if not name or name.startswith('.'):
            raise InputError(f'{path!r} is the address of no file')
        path = download(path, os.path.join(root, 'downloads', digest, name))
    elif remote.is_url(path):
        with reporting(f'cannot read {path!r}', error_class=PretrainedNotFoundError):
            path, source = copy_of(path, os.path.join(root, 'remote', digest)), 'address'
    elif not os.path.exists(path):
        from .hub import fetch  # huggingface_hub takes a while to import

        match = _REPOSITORY.fullmatch(path)
        problem = f'{path!r}: no such folder, no name of pretrained weights, and on the hub'
        with reporting(problem, error_class=PretrainedNotFoundError, errors=SourceError):
            return fetch(match['name'], match['revision'], weights), 'Hugging Face hub'
    return (unpacked(path, root) if _is_archive(path) else path), source


def _is_archive(name):
    return name.lower().endswith(_ARCHIVES)


def copy_of(url, folder):
    """Return the path of a copy of a URL's files in `folder`.

    If they have changed, all are copied again, and the older copy is removed. If the URL is a file,
    or the beginning of a TensorFlow checkpoint's names, the files beside it are copied, too, unless
    they are large. OSError if the URL can't be read.
    """
    url = url.rstrip('/')
    base, _, name = url.rpartition('/')
    if remote.is_file(url) or remote.is_file(f'{url}.index'):
        beside = {n: facts for n, facts in remote.sizes_in(base).items() if '/' not in n}
        files = {n: f for n, f in beside.items() if n.startswith(name) or f[0] <= _SMALL}
        inner = (posixpath.basename(base), name)
    else:
        files, base, inner = remote.sizes_in(url), url, (name,)
    if not files:
        raise FileNotFoundError(2, 'there is no such file or folder', url)

    def fill(new):
        for file in files:
            fetch(remote.join(base, file), os.path.join(new, inner[0], *file.split('/')))
        for other in os.listdir(folder):
            if not other.startswith('.'):
                shutil.rmtree(os.path.join(folder, other), ignore_errors=True)

    version = hashlib.sha256(repr(files).encode()).hexdigest()[:16]
    return os.path.join(_made_once(os.path.join(folder, version), fill), *inner)


def unpacked(path, root):
    """Return the folder with the files of an archive; it is unpacked once.

    Nothing leaves the folder.
    """

    def fill(new):
        # what would lead out of the folder is refused (tar) or left out (zip)
        options = {} if path.endswith('.zip') else {'filter': 'data'}
        # errors of tarfile, zipfile, zlib, lzma or bz2
        with reporting(f'{path!r} is damaged or refused', errors=Exception):
            shutil.unpack_archive(path, new, **options)

    with reporting(f'cannot unpack {path!r}'):
        name = os.path.basename(path).split('.')[0]
        target = os.path.join(root, 'unpacked', f'{name}-{sha256_of(path)[:16]}')
        entries = os.listdir(_made_once(target, fill))
    inner = os.path.join(target, entries[0]) if len(entries) == 1 else target
    return inner if os.path.isdir(inner) else target


def _made_once(target, fill):
    """Make a folder, whose files ``fill(folder)`` writes, unless it exists; returns its path."""
    folder = make_writable_dir(os.path.dirname(target))
    # one process at a time
    with filelock.FileLock(os.path.join(folder, '.lock')):
        if not os.path.isdir(target):
            with temporary_folder(folder, os.path.basename(target)) as temporary:
                new = os.path.join(temporary, 'new')
                os.mkdir(new)
                fill(new)
                os.replace(new, target)
    return target
