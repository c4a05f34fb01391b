"""Markers of finished files: a job of many files that is run again leaves these out."""

import hashlib
import json
import os

from ..errors import InputError
from .files import write_json
from .reading import read_json
from .remote import exists, file_size, is_url, join, remove_file


def read_done(path, job):
    """Return what `mark_done` has noted about a file, a dict.

    None without a marker, if it belongs to another job, or if the file's size has changed since.
    """
    marker = _marker(path)
    if not exists(marker):
        return None
    try:
        noted = read_json(marker, 'the marker', {'job': str, 'facts': dict})
    except InputError:  # damaged: as good as none
        return None
    return noted['facts'] if (noted['job'], noted.get('size')) == _state(path, job) else None


def mark_done(path, job, **facts):
    """Note that a job has finished a file; `job` is JSON of all that the file depends on."""
    marker = _marker(path)
    if not is_url(marker):
        os.makedirs(os.path.dirname(marker), exist_ok=True)
    digest, size = _state(path, job)
    write_json(marker, {'job': digest, 'size': size, 'facts': facts})


def forget_done(path):
    """Remove a file's marker, before the file is made anew."""
    if exists(_marker(path)):
        remove_file(_marker(path))


def _marker(path):
    folder, name = os.path.split(path)
    return join(folder, '.done', f'{name}.json')


def _state(path, job):
    digest = hashlib.sha256(json.dumps(job, default=str).encode()).hexdigest()
    return digest, file_size(path) if exists(path) else None
