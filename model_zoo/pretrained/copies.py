"""Copies of the folders and files that URLs name, for as long as these don't change."""

import os
import posixpath

from ..util.files import read_json, write_json
from ..util.remote import download, is_file, join, sizes_in
from .download import locked

__all__ = ['copy_of']

_SMALL = 2**25  # bytes; beside a file of weights, such ones may be its configuration or vocabulary
_NOTE = 'copied.json'


def copy_of(url, folder):
    """The path of a copy that has the files of a URL; what has changed is fetched again.

    Parameters
    ----------
    url : str
        Of a folder; or of a file, or the beginning of a TensorFlow checkpoint's names: then what
        lies beside it comes, too, unless it is large.
    folder : str
        Of this copy alone.

    Returns
    -------
    str

    Raises
    ------
    OSError
        If it can't be read, or is neither.
    """
    url = url.rstrip('/')
    parent, _, name = url.rpartition('/')
    if is_file(url) or is_file(f'{url}.index'):
        found = {
            each: facts
            for each, facts in sizes_in(parent).items()
            if '/' not in each and (each.startswith(name) or facts[0] <= _SMALL)
        }
        base, name, path = parent, posixpath.basename(parent), name
    else:
        found, base, path = sizes_in(url), url, ''
    if not found:
        raise FileNotFoundError(2, 'there is no such file or folder', url)
    os.makedirs(folder, exist_ok=True)
    target, note = os.path.join(folder, name), os.path.join(folder, _NOTE)
    with locked(os.path.join(folder, '.lock'), url):
        have = read_json(note) if os.path.exists(note) else {}
        for each, facts in found.items():
            copy = os.path.join(target, *each.split('/'))
            if have.get(each) != list(facts) or not os.path.exists(copy):
                download(join(base, each), copy)
        for each in set(have).difference(found):
            if os.path.exists(os.path.join(target, *each.split('/'))):
                os.remove(os.path.join(target, *each.split('/')))
        write_json(note, found)
    return os.path.join(target, path) if path else target
