"""Models that are named by where they are: on the hub, at an address or URL, in an archive."""

import hashlib
import os
import re
from urllib.parse import urlsplit

from ..errors import InputError, PretrainedNotFoundError, ZooError
from ..util.remote import is_url
from .archives import is_archive, unpacked
from .catalogue import is_alias
from .copies import copy_of
from .download import download
from .sources import default_root

__all__ = ['is_place', 'local_path']

_REPOSITORY = re.compile(r'(?P<name>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>\w[\w./-]*))?', re.ASCII)


def is_place(name):
    """Whether a model's name says where else than in a folder or file here the model is.

    Parameters
    ----------
    name : str or os.PathLike
        ``'owner/name'`` or ``'owner/name@revision'`` of the Hugging Face hub, unless the catalogue
        has it; an address that begins with ``https://`` or ``http://``; a URL of a folder or
        file that fsspec reads, such as ``s3://bucket/model``; or a file such as ``model.tar.gz``.
    """
    name = os.path.expanduser(os.fspath(name))
    if os.path.exists(name):
        return os.path.isfile(name) and is_archive(name)
    return is_url(name) or bool(_REPOSITORY.fullmatch(name)) and not is_alias(name)


def local_path(name, weights=True, vocab=True, root=None):
    """The folder or file on this machine that a name means.

    What is elsewhere is downloaded once, and archives are unpacked.

    Parameters
    ----------
    name : str or os.PathLike
    weights, vocab : bool
        Whether they are needed, of a repository of the hub.
    root : str, optional
        The cache of addresses and archives, ``$MXNET_HOME/models`` by default; the hub has its
        own.

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
    if _is_address(path):
        path, source = _downloaded(path, root), 'address'
    elif is_url(path):
        path, source = _copied(path, root), 'address'
    elif not os.path.exists(path):
        return _from_hub(path, weights, vocab), 'Hugging Face hub'
    return (unpacked(path, root) if is_archive(path) else path), source


def _is_address(name):
    return name.startswith(('https://', 'http://'))


def _downloaded(address, root):
    name = os.path.basename(urlsplit(address).path)
    if not name or name.startswith('.'):
        raise InputError(f'{address!r} is the address of no file')
    digest = hashlib.sha256(address.encode()).hexdigest()[:16]
    try:
        return download(address, os.path.join(root, 'downloads', digest, name))
    except InputError:
        raise
    except ZooError as error:
        raise PretrainedNotFoundError(str(error)) from error


def _copied(url, root):
    """A copy of a folder or file, renewed where that has changed."""
    digest = hashlib.sha256(url.encode()).hexdigest()[:16]
    try:
        return copy_of(url, os.path.join(root, 'remote', digest))
    except OSError as error:
        raise PretrainedNotFoundError(f'cannot read {url!r}: {error.strerror}') from error


def _from_hub(name, weights, vocab):
    from .hub import Repository  # huggingface_hub takes a while to import

    match = _REPOSITORY.fullmatch(name)
    try:
        return Repository(match['name'], match['revision']).fetch(weights, vocab)
    except ZooError as error:
        raise PretrainedNotFoundError(
            f'{name!r}: no such folder, no name of pretrained weights, and on the hub: {error}'
        ) from error
