"""What a long run has finished so far, for another run to go on with."""

import contextlib
import json
import logging
import os
import shutil

import filelock
import numpy as np

from ..errors import CheckpointError, InputError
from ..files import write_json
from .checkpoint import check_same_config
from .interrupt import Interrupted, StopRequested

__all__ = ['PartialOutput']

logger = logging.getLogger(__name__)

_JOB, _RECORDS, _ENDS, _LOCK = 'job.json', 'records', 'ends', 'lock'


class PartialOutput:
    """Records of finished work, in the folder ``OUTPUT.part`` until the output is complete.

    To be used in a ``with`` statement. Whatever ends the run, each record is there whole or not at
    all: the file of their ends is written after that of the records. A folder without a record is
    removed. Ends the run with `Interrupted` where `StopRequested` was raised.

    Parameters
    ----------
    path : str
        The output.
    job : dict
        Flag without its dashes -> value, plain JSON: what must be the same for a run to go on
        (`training_config`).
    resume : bool
        Go on with what an earlier run has left; without it, that is replaced.

    Attributes
    ----------
    folder : str
    count : int
        Records that are there.

    Raises
    ------
    InputError
        On entering, if the folder can't be written to, belongs to another job, or is in use by
        another run; later, if a record can't be written.
    CheckpointError
        On entering, if the folder is damaged.
    """

    def __init__(self, path, job, resume=False):
        self.path, self.folder = path, f'{path}.part'
        self._job, self._resume = job, resume
        self._ends = [0]

    @property
    def count(self):
        return len(self._ends) - 1

    def __enter__(self):
        with self._reporting(), contextlib.ExitStack() as stack:
            if not os.path.isdir(self.folder):
                os.mkdir(self.folder)
            lock = filelock.FileLock(self._file(_LOCK))
            try:
                stack.enter_context(lock.acquire(timeout=0))
            except filelock.Timeout:
                raise InputError(f'another run is writing {self.path!r}: wait for it') from None
            self._begin()
            self._records, self._index = (
                stack.enter_context(open(self._file(name), 'ab')) for name in (_RECORDS, _ENDS)
            )
            self._records.truncate(self._ends[-1])
            self._index.truncate(8 * self.count)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind, *error):
        with contextlib.suppress(OSError):  # of a full disk, which append has told of
            self._stack.close()
        if not self.count:
            self.remove()
        if kind is StopRequested:
            if not self.count:
                raise Interrupted('nothing was finished yet') from None
            raise Interrupted(
                f'what is finished is in {self.folder}; run the same command with --resume to go on'
            ) from None

    def _file(self, name):
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def _reporting(self):
        try:
            yield
        except OSError as error:
            kept = ''
            if self.count:
                kept = f'; what is finished stays in {self.folder}, and --resume goes on with it'
            raise InputError(
                f'cannot write {self.path!r}: {error.strerror or error}{kept}'
            ) from error

    def _begin(self):
        saved = self._read_job()
        if self._resume and saved is not None:
            check_same_config(saved, self._job)
            self._ends += self._read_ends()
            logger.info('resuming from %s', self.folder)
            return
        if self._resume:
            logger.warning('nothing to resume in %s: starting anew', self.folder)
        elif saved is not None:
            logger.warning(
                '%s, which an interrupted run has left, is replaced: with --resume this one would '
                'have gone on with it',
                self.folder,
            )
        for name in (_RECORDS, _ENDS):  # before the job that they will seem to be of
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._file(name))
        write_json(self._file(_JOB), self._job)

    def _read_job(self):
        try:
            with open(self._file(_JOB), encoding='utf-8') as file:
                return dict(json.load(file))
        except FileNotFoundError:
            return None
        except (TypeError, ValueError):
            if not self._resume:
                return {}
            raise CheckpointError(
                f'{self.folder!r} is damaged: remove it, or leave --resume out to start anew'
            ) from None

    def _read_ends(self):
        """Ends of the records that are whole."""
        try:
            ends = np.fromfile(self._file(_ENDS), '<i8')
            size = os.path.getsize(self._file(_RECORDS))
        except FileNotFoundError:
            return []
        broken = (ends > size) | (np.diff(ends, prepend=0) <= 0)
        return ends[: np.argmax(broken)].tolist() if broken.any() else ends.tolist()

    def append(self, record):
        """Add a record.

        Parameters
        ----------
        record : bytes
            Not empty.
        """
        end = self._ends[-1] + len(record)
        with self._reporting():
            self._records.write(record)
            self._records.flush()
            self._index.write(np.int64(end).astype('<i8').tobytes())
            self._index.flush()
        self._ends.append(end)

    @property
    def sizes(self):
        """Of the records, in bytes: numpy.ndarray, (count,), int64."""
        return np.diff(np.array(self._ends, np.int64))

    def __iter__(self):
        """The records, one after the other."""
        with open(self._file(_RECORDS), 'rb') as file:
            for size in self.sizes.tolist():
                yield file.read(size)

    def publish(self):
        """Make the records, one behind the other, the output; the folder is removed."""
        with self._reporting():
            os.fsync(self._records.fileno())
            os.replace(self._file(_RECORDS), self.path)
        self.remove()

    def remove(self):
        """Remove the folder: the output is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)
