"""Checkpoints: everything a training needs to continue as if it had never stopped.

A checkpoint is a directory: ``model.params``, ``optimizer.params`` (the optimizer's arrays by the
names of their parameters), ``state.json`` (place, history, configuration) and ``SHA256SUMS``. There
are no pickles, which ``gluon.Trainer.save_states`` writes: they run code when they are read. A
checkpoint is written under a temporary name, and renamed once it is complete.
"""

import contextlib
import json
import logging
import os
import re
import shutil

import mxnet as mx

from ..checkpoint.params import read_params, write_params
from ..checkpoint.sums import SUMS, read_sums, write_sums
from ..environment import blas
from ..errors import CheckpointError, InputError
from ..util.files import make_writable_dir, read_json, sha256_of, write_json
from .optimizer_state import load_optimizer, optimizer_tensors

__all__ = ['Checkpoint', 'CheckpointStore', 'check_same_config']

logger = logging.getLogger(__name__)

VERSION = 2  # 1 counted the epochs of the records from 0, and their time from the start
_MODEL, _OPTIMIZER, _STATE = 'model.params', 'optimizer.params', 'state.json'
_FIELDS = 'version', 'state', 'config', 'update_counts'  # of the state's file
_NAME = re.compile(r'step-(\d+)-epoch-(\d+)-batch-(\d+)$')
_UNFINISHED, _REPLACED = '.unfinished-', '.replaced-'


def _name(step, epoch, batch):
    return f'step-{step:08d}-epoch-{epoch}-batch-{batch}'


class Checkpoint:
    """A checkpoint with verified files.

    Parameters
    ----------
    path : str
        Its directory.

    Attributes
    ----------
    state : dict
        As given to :meth:`CheckpointStore.save`.
    config : dict
        Likewise.
    """

    def __init__(self, path):
        self.path = path
        try:
            sums = read_sums(os.path.join(path, SUMS))
            if {*sums} != {_MODEL, _OPTIMIZER, _STATE}:
                raise ValueError(f'{SUMS} is incomplete')
            for name, wanted in sums.items():
                if sha256_of(os.path.join(path, name)) != wanted:
                    raise ValueError(f'the checksum of {name} is wrong')
            content = read_json(os.path.join(path, _STATE))
            if not isinstance(content, dict) or not {*_FIELDS} <= {*content}:
                raise ValueError(f'{_STATE} lacks one of {", ".join(_FIELDS)}')
            if _NAME.match(os.path.basename(path)) and _place(path) != _place_of(content['state']):
                raise ValueError(f'{_STATE} is that of another step, epoch or batch')
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f'the checkpoint {path!r} is damaged: {error}') from error
        if content['version'] != VERSION:
            raise CheckpointError(
                f'the checkpoint {path!r} has version {content["version"]}, and version {VERSION} '
                'can be read'
            )
        self.state = content['state']
        self.config = content['config']
        self._counts = content['update_counts']
        self._blas = content.get('blas', blas())  # earlier versions didn't write it

    def restore(self, block, trainer):
        """Load the parameters into `block` and the optimizer's states into `trainer`."""
        if self._blas != blas():
            logger.warning(
                'the training was computed by %s and goes on by %s, whose last digits differ; '
                'ZOO_BLAS=%s chooses', self._blas, blas(), str(self._blas).lower(),
            )  # fmt: skip
        path = os.path.join(self.path, _MODEL)
        is_plain = type(block).load_parameters is mx.gluon.Block.load_parameters
        # of a damaged file MXNet believes the sizes, and fails for one without arrays
        if is_plain and not read_params(path)[0]:
            raise CheckpointError(f'{path!r} holds no parameters: is it damaged?')
        try:
            block.load_parameters(path, ctx=trainer._contexts)
        except (AssertionError, mx.MXNetError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise CheckpointError(f'{path!r} does not fit the model: {reason}') from error
        path = os.path.join(self.path, _OPTIMIZER)
        load_optimizer(block, trainer, read_params(path)[0], self._counts, path)


class CheckpointStore:
    """The checkpoints of one training, in their own directory.

    Parameters
    ----------
    folder : str
        Made where it is missing.
    keep : int
        How many of the newest ones to keep. With 2 or more, a training survives a damaged one.
    on_save : callable, optional
        Is called after each `save`.
    """

    def __init__(self, folder, keep=2, on_save=None):
        if keep < 1:
            raise InputError(f'keep is {keep}; at least 1 checkpoint must be kept')
        self.folder = make_writable_dir(folder)
        self.keep, self._on_save = keep, on_save
        self._own = []  # written, or gone on from, by this training; the newest last

    def paths(self):
        """Directories of the checkpoints, including damaged ones; the newest first."""
        names = [name for name in os.listdir(self.folder) if _NAME.match(name)]
        names.sort(key=_place, reverse=True)
        return [os.path.join(self.folder, name) for name in names]

    def save(self, block, trainer, state, config, weights=None):
        """Write a checkpoint, whole or not at all, and remove the old ones.

        This includes checkpoints of an earlier training in the same directory, unless `newest` was
        called to continue it.

        Parameters
        ----------
        block : mxnet.gluon.Block
        trainer : mxnet.gluon.Trainer
            With ``update_on_kvstore=False``.
        state : dict
            Plain JSON; holds at least the ints 'step', 'epoch' and 'batch'.
        config : dict
            Plain JSON: what must be the same when the training is resumed.
        weights : str, optional
            A file of the same disk that has the block's parameters as they are: it is linked.

        Returns
        -------
        str
            Its directory.
        """
        name = _name(state['step'], state['epoch'], state['batch'])
        final = os.path.join(self.folder, name)
        part = os.path.join(self.folder, _UNFINISHED + name)
        replaced = os.path.join(self.folder, _REPLACED + name)
        try:
            self._clean()
            os.makedirs(part)
            _save_weights(block, os.path.join(part, _MODEL), weights)
            tensors, counts = optimizer_tensors(block, trainer)
            write_params(os.path.join(part, _OPTIMIZER), tensors, {'format': 'optimizer'})
            content = {
                'version': VERSION,
                'state': state,
                'config': config,
                'update_counts': counts,
                'blas': blas(),
            }
            write_json(os.path.join(part, _STATE), content)
            files = [os.path.join(part, name) for name in (_MODEL, _OPTIMIZER, _STATE)]
            write_sums(os.path.join(part, SUMS), files)
            if os.path.isdir(final):  # the same place of the training, reached again
                os.replace(final, replaced)
            os.replace(part, final)
        except BaseException as error:
            with contextlib.suppress(OSError):  # the disk may be gone
                self._clean()
            if isinstance(error, OSError):
                raise InputError(
                    f'cannot write the checkpoint {final!r}: {error.strerror or error}'
                ) from error
            raise
        shutil.rmtree(replaced, ignore_errors=True)
        self._own = [path for path in self._own if path != final] + [final]
        self._own = self._own[-self.keep :]
        for path in self.paths():  # also those of an earlier training that this one replaces
            if path not in self._own:
                shutil.rmtree(path, ignore_errors=True)
        if self._on_save is not None:
            self._on_save()
        return final

    def place(self, checkpoint):
        """Step, epoch and batch of a checkpoint, for `load`."""
        return _place(checkpoint.path)

    def load(self, step, epoch, batch):
        """The checkpoint of a place."""
        return Checkpoint(os.path.join(self.folder, _name(step, epoch, batch)))

    def at(self, step):
        """The checkpoint of a step."""
        for path in self.paths():
            if _place(path)[0] == step:
                return Checkpoint(path)
        steps = sorted(_place(path)[0] for path in self.paths())
        there = f'there are those of {", ".join(map(str, steps))}' if steps else 'there is none'
        raise CheckpointError(f'no checkpoint of step {step} in {self.folder!r}: {there}')

    def newest(self):
        """The newest whole checkpoint; damaged ones are skipped with a warning.

        Returns
        -------
        Checkpoint
        """
        self._clean()
        paths = self.paths()
        for number, path in enumerate(paths):
            try:
                checkpoint = Checkpoint(path)
            except CheckpointError as error:
                logger.warning('%s; trying the one before it', error)
            else:
                self._own = paths[number:][::-1]  # damaged newer ones go at the next save
                return checkpoint
        if paths:
            raise CheckpointError(
                f'all {len(paths)} checkpoints in {self.folder!r} are damaged; start anew'
            )
        raise CheckpointError(f'nothing to resume: there is no checkpoint in {self.folder!r}')

    def clear(self):
        """Remove all checkpoints."""
        for path in self.paths():
            shutil.rmtree(path, ignore_errors=True)

    def _clean(self):
        """Remove the rest of a killed or failed save, and restore what it had set aside."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.startswith(_REPLACED):
                final = os.path.join(self.folder, name[len(_REPLACED) :])
                if not os.path.isdir(final):  # it ended between its two renamings
                    with contextlib.suppress(OSError):
                        os.replace(path, final)
                    continue
            if name.startswith((_REPLACED, _UNFINISHED)):
                shutil.rmtree(path, ignore_errors=True)


def check_same_config(saved, current, instead='leave `resume` out to start anew'):
    """Raise InputError, naming the fields, unless `current` is what the training began with.

    Parameters
    ----------
    saved, current : dict
        Field -> value, plain JSON.
    instead : str
        What the user can do other than giving the same values.
    """
    current = json.loads(json.dumps(current))  # tuples have become lists in the file
    differing = [
        f'`{name}` is {current.get(name)!r} and was {saved.get(name)!r}'
        for name in sorted({*saved, *current})
        if saved.get(name) != current.get(name)
    ]
    if differing:
        raise InputError(
            f'cannot resume: {"; ".join(differing)}; give the same value, or {instead}'
        )


def _save_weights(block, path, same):
    if same is not None:
        with contextlib.suppress(OSError):  # a disk without links
            os.link(same, path)
            return
    try:
        block.save_parameters(path)
    except mx.MXNetError as error:
        raise OSError(0, str(error).splitlines()[-1]) from error


def _place(path):
    """Step, epoch and batch in a checkpoint's name."""
    return tuple(map(int, _NAME.match(os.path.basename(path)).groups()))


def _place_of(state):
    return tuple(state[name] for name in ('step', 'epoch', 'batch'))
