"""Notes about finished tasks, so that another run of a job leaves them out."""

import hashlib
import json
import os

from .files import read_json, remove_leftovers, write_json
from .remote import exists, file_size, is_folder, is_url, join, names_in, remove_file

__all__ = ['FinishedTasks']

_FOLDER = '.done'


class FinishedTasks:
    """The finished tasks of a job, each of which writes one file of a folder, or none.

    Parameters
    ----------
    folder : str
        A path or URL; the notes are in ``.done`` there.
    job : list
        All that decides on what the files hold, plain JSON. Notes of another job don't count.
    """

    def __init__(self, folder, job):
        self._folder = folder
        self._job = hashlib.sha256(json.dumps(job, default=str).encode()).hexdigest()

    def _note(self, name):
        return join(self._folder, _FOLDER, f'{name}.json')

    def _size(self, name):
        path = join(self._folder, name)
        return file_size(path) if exists(path) else None

    @staticmethod
    def forget(folder):
        """Remove the notes of a folder, whose files are about to be written by another job."""
        notes = join(folder, _FOLDER)
        for name in names_in(notes) if is_folder(notes) else ():
            remove_file(join(notes, name))

    @staticmethod
    def tidy(folder, names):
        """Remove what killed workers have left in a folder beside these files and their notes."""
        if is_url(folder):  # they write to this machine first
            return
        remove_leftovers(folder, set(names))
        if is_folder(join(folder, _FOLDER)):
            remove_leftovers(join(folder, _FOLDER), {f'{name}.json' for name in names})

    def get(self, name):
        """What `put` has noted of a file; None if it isn't finished, or has another size since."""
        if not exists(self._note(name)):
            return None
        note = read_json(self._note(name))
        if (note['job'], note['size']) != (self._job, self._size(name)):
            return None
        return note['facts']

    def put(self, name, facts):
        """Note that a file is finished.

        Parameters
        ----------
        name : str
        facts : object
            Plain JSON, not None.
        """
        if not is_url(self._folder):
            os.makedirs(join(self._folder, _FOLDER), exist_ok=True)
        write_json(self._note(name), {'job': self._job, 'size': self._size(name), 'facts': facts})
