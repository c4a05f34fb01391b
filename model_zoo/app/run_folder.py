"""The folder of a run: its log, checkpoints and results."""

import json
import logging
import os

from ..training.checkpoint import CheckpointStore
from ..training.seed import seed_all
from ..training.workers import Workers
from ..util.files import make_writable_dir
from . import cli
from .report import write_eval_results, write_results

__all__ = ['RunFolder']

logger = logging.getLogger(__name__)


class RunFolder:
    """The folder of a run. Creating it starts the log, which lists the flags, and sets the seed.

    Parameters
    ----------
    path : str
        Made where it is missing.
    args : argparse.Namespace
        Goes to each of the run's JSON files; ``args.seed`` seeds the random numbers.
    log : str
        Name of the log's file.
    workers : Workers, optional
        All but number 0 log errors only, and to standard error.
    verbose : bool
        Whether the log has details.
    """

    def __init__(self, path, args, log, workers=None, verbose=False):
        self.path, self.args = make_writable_dir(path), args
        if (workers or Workers()).rank == 0:
            cli.setup_logging(self.file(log), verbose)
        else:
            cli.setup_logging(level=logging.ERROR)
        logger.info('%s', json.dumps(vars(args)))
        seed_all(args.seed)

    def file(self, name):
        """The path of a file in the folder."""
        return os.path.join(self.path, name)

    def checkpoints(self, name='checkpoints'):
        """The checkpoints in a subfolder; ``args.keep_checkpoints`` of them are kept."""
        return CheckpointStore(self.file(name), self.args.keep_checkpoints)

    def write(self, name, state=None, **more):
        """Write a JSON file: see `write_results`."""
        write_results(self.file(name), vars(self.args), state, **more)

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
