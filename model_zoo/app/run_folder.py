"""The folder of a run: its log, checkpoints and results."""

import json
import logging
import os
import re
import shutil
import weakref

from ..errors import InputError
from ..training.checkpoint import CheckpointStore, seed_all
from ..training.workers import Workers
from ..util.files import lock_file, make_writable_dir, remove_leftovers
from ..util.remote import is_url, join
from . import cli
from .remote_folder import RemoteFolder
from .report import write_eval_results, write_results

__all__ = ['RunFolder']

logger = logging.getLogger(__name__)


# What a training leaves beside its checkpoints; the log, cached data and exports may stay.
_MODEL, _RESULTS = 'best_model', 'results.json'
_OF_TRAINING = re.compile(
    r'results\.json|report\.html|eval_results\.txt|curves\.png|model_.+_\d+\.params'
)


class RunFolder:
    """The folder of a run. Creating it starts the log, and sets the seed.

    The folder is locked until the command has ended: another run in it is refused. Temporary files
    that a killed run has left there are removed.

    Parameters
    ----------
    path : str
        Made where it is missing. For a URL the run has a folder on each machine, which begins as
        what the URL has, and is uploaded after each checkpoint and at the end; of `args`, flags
        with that URL get its path.
    args : argparse.Namespace
        Goes to each of the run's JSON files; ``args.seed`` seeds the random numbers.
    log : str
        Name of the log's file.
    workers : Workers, optional
        All but number 0 log errors only, and to standard error.
    verbose : bool
        Whether the log has details.
    trains : bool
        Whether the run writes a training's files to the folder. If it has those of another one,
        that is refused without ``args.resume`` and ``args.overwrite_output_dir``.

    setup_logging : callable, optional
        In place of `cli.setup_logging`.

    Raises
    ------
    InputError
        If the folder can't be written to, or is in use, or another training's.
    """

    def __init__(self, path, args, log, workers=None, verbose=False, trains=False,
                 setup_logging=None):  # fmt: skip
        workers = workers or Workers()
        self._remote = RemoteFolder(path) if is_url(path) else None
        self.path = self._remote.path if self._remote else make_writable_dir(path)
        self.args, self._given = args, {}
        if self._remote is not None:
            self._given = {name: value for name, value in vars(args).items() if value == path}
            vars(args).update(dict.fromkeys(self._given, self.path))
        if workers.rank == 0 or self._remote is not None and workers.local_rank == 0:
            self._lock()
            if self._remote is not None:
                self._remote.pull()
        if self._remote is not None:
            workers.wait()  # until the folders are there
            end = self._remote.close if workers.rank == 0 else self._remote.discard
            if workers.local_rank == 0:
                cli.at_end(end)
                weakref.finalize(self, end)
        if workers.rank == 0:
            if trains:
                try:
                    self._check_place()
                except InputError:
                    self.close()  # what raises may be kept, and the lock with it
                    raise
            (setup_logging or cli.setup_logging)(self.file(log), verbose)
        else:
            cli.setup_logging(level=logging.ERROR)
        logger.debug('arguments: %s', json.dumps(vars(args)))
        seed_all(args.seed)

    def _lock(self):
        message = f'another run is writing to {self.path!r}: wait for it, or name another folder'
        try:
            lock = lock_file(self.file('.lock'), message)
        except NotImplementedError:
            logger.warning('%s has no locks: run nothing else in it', self.path)
        else:
            self._unlock = lock.release
            cli.at_end(lock.release)
            weakref.finalize(self, lock.release)  # where there is no command
        for place in ('', _MODEL, 'cache'):
            if os.path.isdir(self.file(place)):
                remove_leftovers(self.file(place))

    def close(self):
        """Let other runs write to the folder; a command does so when it ends."""
        if self._unlock is not None:
            self._unlock()

    _unlock = None

    def _check_place(self):
        """Refuse to write over another training."""
        if self.args.overwrite_output_dir:
            if self.args.resume:
                raise InputError(
                    '--resume and --overwrite_output_dir contradict one another: give one'
                )
            return
        if self.checkpoints().paths():
            ways = None if self.args.resume else 'add --resume to go on with it, '
        elif any(os.path.exists(self.file(name)) for name in (_MODEL, _RESULTS)):
            ways = 'it has no checkpoint to go on from; add ' if self.args.resume else 'add '
        else:
            ways = None
        if ways is not None:
            raise InputError(
                f'{self.path!r} has the results of another training: {ways}'
                '--overwrite_output_dir to replace it, or name another folder'
            )

    def clear(self):
        """Remove what another training has left, if ``args.overwrite_output_dir`` says so."""
        if not self.args.overwrite_output_dir:
            return
        self.checkpoints().clear()
        for name in filter(_OF_TRAINING.fullmatch, os.listdir(self.path)):
            os.remove(self.file(name))
        shutil.rmtree(self.file(_MODEL), ignore_errors=True)

    def file(self, name):
        """The path of a file in the folder."""
        return os.path.join(self.path, name)

    def place(self, *names):
        """Where the folder, or a file in it, is after the run: at its URL, if it has one."""
        return join(self._remote.url if self._remote else self.path, *names)

    def checkpoints(self, name='checkpoints'):
        """The checkpoints in a subfolder; ``args.keep_checkpoints`` of them are kept."""
        on_save = None if self._remote is None else self._remote.push
        return CheckpointStore(self.file(name), self.args.keep_checkpoints, on_save)

    def write(self, name, state=None, **more):
        """Write a JSON file, and return what it has: see `write_results`."""
        return write_results(
            self.file(name), {**vars(self.args), **self._given}, state, **more
        )

    def write_eval_results(self, report, record=None):
        """Write ``eval_results.txt``: see `write_eval_results`.

        Parameters
        ----------
        report : dict
            Dev set -> its metrics.
        record : dict, optional
            The evaluation's record in the state of the training, if there was one.
        """
        trained = {} if record is None else {
            'step': record['step'], 'train_loss': record['train_loss']
        }  # fmt: skip
        write_eval_results(self.path, report, **trained)
