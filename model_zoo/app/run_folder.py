"""The folder of a run: its log, checkpoints and results, here or at a URL."""

import contextlib
import hashlib
import json
import logging
import math
import os
import pathlib
import platform
import re
import shutil

import numpy as np
from gluonnlp.base import get_home_dir

from ..errors import InputError, reporting
from ..training.checkpoint import CheckpointStore, seed_all
from ..training.workers import Workers
from ..util.files import (
    fetch,
    lock_file,
    make_output_dir,
    make_writable_dir,
    remove_leftovers,
    upload,
)
from ..util.remote import is_url, join, remove_file, sizes_in
from . import cli
from .report import write_results

logger = logging.getLogger(__name__)


class RemoteFolder:
    """A folder of this machine that is copied to a URL: after each checkpoint, and at the end.

    It is in ``$MXNET_HOME/runs``, and is removed at the end, when all is uploaded. Names that begin
    with a dot stay here. InputError if nothing can be written to the URL.
    """

    def __init__(self, url):
        self.url = make_output_dir(url)
        self._parent, _, name = self.url.rpartition('/')
        # what is written beside the folder, as the results of a second dev set, is uploaded, too
        digest = hashlib.sha256(f'{platform.node()} {self.url}'.encode()).hexdigest()[:16]
        self._root = make_writable_dir(os.path.join(get_home_dir(), 'runs', digest))
        self.path = make_writable_dir(os.path.join(self._root, name))
        self._sent = {}

    def pull(self):
        """Replace the content of this machine's folder by the URL's."""
        for folder in (self._root, self.path):
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False) and entry.path != self.path:
                    shutil.rmtree(entry.path)
                elif entry.path != self.path and not entry.name.startswith('.'):
                    os.remove(entry.path)
        with reporting(f'cannot read {self.url!r}'):
            names = [name for name in sizes_in(self.url) if not _HIDDEN.search(name)]
            if names:
                logger.info('fetching %d files from %s', len(names), self.url)
            for name in names:
                fetch(join(self.url, name), os.path.join(self.path, *name.split('/')))
        self._sent = self._files()

    def _files(self):
        """Return size and time of each file that is uploaded, by its name beside the URL."""
        found = {}
        for path in pathlib.Path(self._root).rglob('*'):
            name = path.relative_to(self._root).as_posix()
            if not _HIDDEN.search(name) and path.is_file():
                found[name] = path.stat().st_size, path.stat().st_mtime_ns
        return found

    def push(self):
        """Replace the content of the URL by this machine's folder; checksums are sent last."""
        here = self._files()
        for name in sorted(here, key=lambda name: (name.endswith('SHA256SUMS'), name)):
            if self._sent.get(name) != here[name]:
                upload(os.path.join(self._root, name), join(self._parent, name))
                self._sent[name] = here[name]
        for name in sorted(set(self._sent).difference(here)):
            url = join(self._parent, name)
            with reporting(f'cannot remove {url}'), contextlib.suppress(FileNotFoundError):
                remove_file(url)
            del self._sent[name]

    def close(self):
        """Upload what is left, and remove the folder of this machine."""
        with reporting(f'the results stay in {self.path!r}', errors=InputError):
            self.push()
        self.discard()

    def discard(self):
        """Remove the folder of this machine."""
        shutil.rmtree(self._root, ignore_errors=True)


# What a training leaves beside its checkpoints; the log, cached data and exports may stay.
_MODEL, _RESULTS = 'best_model', 'results.json'
_OF_TRAINING = re.compile(
    r'results\.json|settings\.yaml|report\.html|eval_results\.txt|curves\.png|model_.+_\d+\.params'
)
_HIDDEN = re.compile(r'(^|/)\.')  # names that stay on this machine
_OF_EPOCH = re.compile(r'model_.+_\d+\.params')


class RunFolder:
    """A run's folder. Creating it starts the log, and sets the seed.

    The folder is locked until `close`: another run in it is refused. Temporary files
    of a killed run are removed.

    Parameters
    ----------
    settings : Settings
        Its ``output_dir`` is made if it is missing. For a URL the run has a folder on each machine,
        which begins as a copy of the URL, and is uploaded after each checkpoint and at the end.
        ``seed`` seeds the random numbers.
    workers : Workers, optional
        All but number 0 log errors only, and to standard error.
    trains : bool
        Whether the run writes a training's files to the folder. If the folder has another
        training's files, the run is refused without ``resume`` and ``overwrite_output_dir``.
    """

    def __init__(
        self, settings, log, workers=None, verbose=False, trains=False, setup_logging=None
    ):
        workers, path = workers or Workers(), settings.output_dir
        place = pathlib.Path(path).absolute()
        self._made = [each for each in (place, *place.parents) if not each.exists()]
        self._remote = RemoteFolder(path) if is_url(path) else None
        self.path = self._remote.path if self._remote else make_writable_dir(path)
        self._ending = contextlib.ExitStack()
        if workers.rank == 0 or (self._remote is not None and workers.local_rank == 0):
            self._lock()
            if self._remote is not None:
                self._remote.pull()
        if self._remote is not None:
            workers.wait()  # until the folders are there
            if workers.local_rank == 0:
                end = self._remote.close if workers.rank == 0 else self._remote.discard
                self._ending.callback(end)
        if workers.rank == 0:
            if not os.path.exists(self.file(log)):
                self._made.insert(0, self.file(log))
            if trains:
                try:
                    self._check_place(settings.resume, settings.overwrite_output_dir)
                except InputError:
                    self.close()  # a program may keep the error, which would keep the lock
                    raise
            (setup_logging or cli.setup_logging)(self.file(log), verbose)
        else:
            cli.setup_logging(level=logging.ERROR)
        logger.debug('arguments: %s', json.dumps(vars(settings)))
        seed_all(settings.seed)

    def _lock(self):
        message = f'another run is writing to {self.path!r}: wait for it, or name another folder'
        try:
            lock = lock_file(self.file('.lock'), message)
        except NotImplementedError:
            logger.warning('%s has no locks: run nothing else there', self.path)
        else:
            self._ending.callback(lock.release)
        for name in ('', _MODEL, 'model', 'vocab', 'cache'):
            if os.path.isdir(self.file(name)):
                remove_leftovers(self.file(name), is_ours=True)
        if os.path.isdir(self.file('checkpoints')):
            self.checkpoints().clean()

    def close(self, failed=False):
        """Upload the files, if the folder is a URL, and let other runs write to it.

        A run that has `failed` before it trained leaves nothing, unless it found the folder.
        """
        made = [self.file('checkpoints'), self.file('.lock'), *self._made] if failed else []
        for path in made:
            with contextlib.suppress(OSError):  # not empty, or not there
                os.rmdir(path) if os.path.isdir(path) else os.remove(path)
        self._ending.close()

    def _check_place(self, resume, overwrite):
        """Refuse to write over another training."""
        can_resume = bool(self.checkpoints().paths())
        is_taken = any(os.path.exists(self.file(name)) for name in (_MODEL, _RESULTS))
        if overwrite or (can_resume and resume) or not (can_resume or is_taken):
            return
        problem = 'has the results of another training: add '
        if resume:
            problem = 'has a finished training, whose state only `keep_state` would keep: add '
        elif can_resume:
            problem += '`resume` to continue it, '
        cure = '`overwrite_output_dir` to replace it, or name another folder'
        raise InputError(f'{self.path!r} {problem}{cure}')

    def check_room(self, block, settings, num_steps, is_kept, keeps_epochs=True):
        """Raise InputError unless the disk has room for all that a training may write.

        `is_kept` and `keeps_epochs` are as in `Trainer`; files that are here already count as room.
        """
        parameters = block.collect_params().values()
        size = sum(math.prod(each.shape) * np.dtype(each.dtype).itemsize for each in parameters)
        epochs = num_steps if settings.training_steps else math.ceil(settings.epochs)
        kept = settings.keep_checkpoints
        # while an epoch is written, the last ones and the best one
        count = min(kept + 2, epochs) if keeps_epochs else 0
        if is_kept:  # the model, and checkpoints, which have two moments, too
            count += 1 + 3 * min(kept + 1, epochs + num_steps // settings.ckpt_interval)
        files = filter(pathlib.Path.is_file, pathlib.Path(self.path).rglob('*'))
        room = shutil.disk_usage(self.path).free + sum(file.stat().st_size for file in files)
        if room < count * size:
            sizes = f'{room / 1e9:.1f} GB of room, and the run may write {count * size / 1e9:.1f}'
            cure = 'make room, name another folder, or keep fewer `keep_checkpoints`'
            raise InputError(f'{self.path!r} has {sizes}: {cure}', field='output_dir')

    def clear(self):
        """Remove what another training has left."""
        self.checkpoints().clear()
        for name in filter(_OF_TRAINING.fullmatch, os.listdir(self.path)):
            os.remove(self.file(name))
        shutil.rmtree(self.file(_MODEL), ignore_errors=True)

    def file(self, name):
        """The path of a file in the folder."""
        return os.path.join(self.path, name)

    def location(self):
        """Return the path or URL of the folder after the run."""
        return self._remote.url if self._remote else self.path

    def checkpoints(self, keep=2, name='checkpoints'):
        """Return the `CheckpointStore` of a subfolder, which keeps the newest ones."""
        on_save = None if self._remote is None else self._remote.push
        return CheckpointStore(self.file(name), keep, on_save)

    def keep_epochs(self, kept):
        """Remove the parameters of all epochs but those in the files `kept`."""
        kept = {*map(os.path.basename, kept)}
        for name in filter(_OF_EPOCH.fullmatch, os.listdir(self.path)):
            if name not in kept:
                os.remove(self.file(name))

    def tidy(self, kept, settings):
        """Leave what a finished training needs: the parameters `kept`.

        With ``keep_state`` its newest checkpoint stays, too; with ``keep_checkpoints`` that number
        of checkpoints and of epochs' parameters.
        """
        if settings.is_given('keep_checkpoints'):
            return
        store = self.checkpoints()
        store.remove(store.paths()[int(settings.keep_state) :])
        self.keep_epochs(kept)

    def write(self, name, settings, state=None, **more):
        """Write a JSON file, beside results.json settings.yaml; see `write_results`."""
        results = write_results(self.file(name), vars(settings), state, **more)
        if name == _RESULTS:
            cli.write_yaml(self.file('settings.yaml'), settings.to_repeat())
        return results
