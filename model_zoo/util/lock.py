"""One process at a time in a folder."""

import filelock

from ..errors import InputError

__all__ = ['lock_file']


def lock_file(path, message):
    """Lock a file until the lock is released, or the process ends.

    Parameters
    ----------
    path : str
        Made where it is missing; it stays.
    message : str
        Of the error where another process, or another part of this one, has locked it.

    Returns
    -------
    filelock.FileLock
        Call its ``release``.

    Raises
    ------
    InputError
    """
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise InputError(message) from None
    return lock
