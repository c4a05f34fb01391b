"""The state of a training: seeds, counts, the optimizer's state; and all of it as files."""

import contextlib
import dataclasses
import logging
import os
import random
import re
import shutil

import mxnet as mx
import numpy as np

from ..checkpoint.readers import SUMS, read_sums, write_sums
from ..checkpoint.tensor_files import read_params, write_params
from ..errors import CheckpointError, InputError, reporting
from ..util.files import make_writable_dir, write_json
from ..util.reading import read_json, sha256_of
from .updater import LossScale


def seed_all(seed, *position):
    """Seed Python's, NumPy's and MXNet's global generators.

    MXNet's generator can be set but not read, so its state can't be part of a checkpoint. Seeding
    all three at each step from ``(seed, step)`` makes a resumed run draw what an unbroken one
    draws, and costs about a millisecond.
    """
    # The length keeps (seed,) and (seed, 0) apart, which NumPy takes for the same entropy.
    words = np.random.SeedSequence([len(position), seed % 2**32, *position]).generate_state(3)
    random.seed(int(words[0]))
    np.random.seed(words[1])
    mx.random.seed(int(words[2]) % 2**31)


def _names(block, trainer):
    """(index in the trainer, structural name, parameter) of the trained parameters."""
    # Structural names, because Gluon's prefixes count the blocks made before in the same process.
    names = {}
    for name, parameter in block._collect_params_with_prefix().items():
        # a shared parameter has several, and so has one in parts: take the first
        names.setdefault(id(getattr(parameter, 'whole', parameter)), name)
    for index, parameter in enumerate(trainer._params):
        if parameter.grad_req != 'null':
            yield index, names.get(id(parameter), parameter.name), parameter


def _leaves(state, path=''):
    """Yield (path, NDArray) of an optimizer's state: None, an array, or tuples of these."""
    if isinstance(state, mx.nd.NDArray):
        yield path, state
    else:
        for position, part in enumerate(state or ()):
            yield from _leaves(part, f'{path}/{position}')


def _updaters(trainer):
    """Return MXNet's updater of each device."""
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    return trainer._updaters


def optimizer_tensors(block, trainer):
    """The optimizer's state: name of a parameter and path in its state -> array; update counts."""
    updater = _updaters(trainer)[0]  # all devices have the same
    counts = {}
    for of_device in updater.optimizer._all_index_update_counts.values():
        counts.update(of_device)
    names = {index: name for index, name, _ in _names(block, trainer)}
    tensors = {}
    for index, name in names.items():
        for path, array in _leaves(updater.states.get(index)):
            tensors[name + path] = array.asnumpy()
    updates = {name: counts[index] for index, name in names.items() if index in counts}
    return tensors, {'num_update': updater.optimizer.num_update, 'parameters': updates}


def load_optimizer(block, trainer, tensors, updates, source):
    """Load the result of `optimizer_tensors`; `source` is the file, for errors."""
    updaters, counts, left = _updaters(trainer), {}, set(tensors)
    for index, name, parameter in _names(block, trainer):
        if name not in updates['parameters']:
            continue  # not updated yet
        counts[index] = updates['parameters'][name]
        for updater, ctx in zip(updaters, parameter.list_ctx()):
            state = updater.optimizer.create_state_multi_precision(index, parameter.data(ctx))
            for path, array in _leaves(state):
                value = tensors.get(name + path)
                if value is None or value.shape != array.shape or value.dtype != array.dtype:
                    raise CheckpointError(f'{source!r} does not fit the optimizer: {name + path}')
                array[:] = value
                left.discard(name + path)
            updater.states[index] = state
            updater.states_synced[index] = True
    if left:
        raise CheckpointError(f'{source!r} does not fit the optimizer: left over {min(left)}')
    for updater in updaters:
        shared = updater.optimizer
        shared.num_update = updates['num_update']
        for device in {0, *(ctx.device_id for ctx in trainer._contexts)}:
            shared._all_index_update_counts[device] = dict(counts)
        shared._index_update_count = shared._all_index_update_counts[0]


@dataclasses.dataclass
class TrainingState:
    """The position of a training, and its records; plain JSON, part of each checkpoint.

    Parameters
    ----------
    epoch, batch : int
        The next batch: its epoch, and its number in that, both from 0. After an epoch's last batch
        and before its evaluation has ended, `batch` is the number of batches.
    log : list of dict
        A record each log interval: step, epoch (from 1), loss, lr, grad_norm, samples_per_second
        (or of another `unit`), seconds (of training since the start). An objective of several terms
        adds a loss for each, and their accuracies; one that counts tokens tokens_per_second;
        float16 loss_scale and skipped (updates left out so far).
    epochs : list of dict
        A record each evaluation, which follows an epoch unless it has its own interval: epoch (from
        1), step, train_loss, score, report, train_seconds and evaluation_seconds (of what was
        trained since the last one).
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    unit: str = 'samples'
    examples: int = 0
    tokens: int = 0
    epoch_loss: float = 0.0
    epoch_examples: int = 0
    epoch_seconds: float = 0.0
    log: list[dict] = dataclasses.field(default_factory=list)
    epochs: list[dict] = dataclasses.field(default_factory=list)
    loss_scale: LossScale | None = None
    position: object | None = None

    @classmethod
    def from_json(cls, fields):
        """The state whose ``dataclasses.asdict`` this is."""
        state = cls(**fields)
        if state.loss_scale is not None:
            state.loss_scale = LossScale(**state.loss_scale)
        return state

    @property
    def best(self):
        """The record of the epoch with the highest score; None before the first.

        Of equal scores the lowest loss on the dev sets counts, rounded to four digits as the log
        shows it, and then the earliest epoch.
        """
        return max(self.epochs, key=lambda record: (record['score'], -_loss(record)), default=None)


def _loss(record):
    """The mean loss of an evaluation's sets, rounded; 0 if it measures none."""
    reports = (scores for scores in record['report'].values() if isinstance(scores, dict))
    losses = [scores['loss'] for scores in reports if isinstance(scores.get('loss'), float)]
    return round(sum(losses) / len(losses), 4) if losses else 0.0


logger = logging.getLogger(__name__)

VERSION = 2  # 1 counted the epochs of the records from 0, and their time from the start
_FILES = _MODEL, _OPTIMIZER, _STATE = 'model.params', 'optimizer.params', 'state.json'
_SHAPE = {'version': int, 'state': dict, 'config': dict, 'update_counts': dict}
_NAME = re.compile(r'step-(\d+)-epoch-(\d+)-batch-(\d+)$')
_UNFINISHED, _REPLACED = '.unfinished-', '.replaced-'


def _place(path):
    """Step, epoch and batch in a checkpoint's name."""
    return tuple(map(int, _NAME.search(path).groups()))


class Checkpoint:
    """A checkpoint with verified files."""

    def __init__(self, path):
        self.path = path
        try:
            found = {name: sha256_of(os.path.join(path, name)) for name in _FILES}
            if found != read_sums(os.path.join(path, SUMS)):
                raise ValueError(f'its files differ from {SUMS}')
            content = read_json(os.path.join(path, _STATE), shape=_SHAPE)
            TrainingState.from_json(content['state'])
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(f'the checkpoint {path!r} is damaged: {error}') from error
        if content['version'] != VERSION:
            raise CheckpointError(f'the checkpoint {path!r} is of version 0.1: start again')
        self.state, self.config = content['state'], content['config']
        self._counts = content['update_counts']

    def restore(self, block, trainer):
        """Load the parameters into `block` and the optimizer's states into `trainer`."""
        path = os.path.join(self.path, _MODEL)
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
        self.folder = make_writable_dir(folder)
        self.keep, self._on_save = keep, on_save

    def paths(self):
        """Directories of the checkpoints, including damaged ones; the newest first."""
        names = filter(_NAME.match, os.listdir(self.folder))
        return [os.path.join(self.folder, name) for name in sorted(names, key=_place, reverse=True)]

    def save(self, block, trainer, state, config):
        """Write a checkpoint, whole or not at all, and remove the old ones."""
        step, epoch, batch = state['step'], state['epoch'], state['batch']
        name = f'step-{step:08d}-epoch-{epoch}-batch-{batch}'
        names = name, _UNFINISHED + name, _REPLACED + name
        final, part, replaced = (os.path.join(self.folder, each) for each in names)
        files = model_file, optimizer_file, state_file = [os.path.join(part, n) for n in _FILES]
        try:
            with reporting(f'cannot write {final!r}', errors=(OSError, mx.MXNetError)):
                self.clean()
                os.makedirs(part)
                block.save_parameters(model_file)
                tensors, counts = optimizer_tensors(block, trainer)
                write_params(optimizer_file, tensors, {'format': 'optimizer'})
                content = {'version': VERSION, 'state': state, 'config': config}
                write_json(state_file, {**content, 'update_counts': counts})
                write_sums(os.path.join(part, SUMS), files)
                if os.path.isdir(final):  # the same step, reached again
                    os.replace(final, replaced)
                os.replace(part, final)
        except BaseException:
            with contextlib.suppress(OSError):  # the disk may be gone
                self.clean()
            raise
        shutil.rmtree(replaced, ignore_errors=True)
        paths = self.paths()
        at = paths.index(final)
        self.remove(paths[:at] + paths[at + self.keep :])  # newer ones are of an earlier training
        if self._on_save is not None:
            self._on_save()
        return final

    def at(self, step):
        """The checkpoint of a step."""
        paths = {_place(path)[0]: path for path in reversed(self.paths())}
        if step not in paths:
            found = ', '.join(map(str, paths)) or 'none'
            raise CheckpointError(f'{self.folder!r} has no checkpoint of step {step}, but {found}')
        return Checkpoint(paths[step])

    def newest(self):
        """The newest whole checkpoint; damaged ones are skipped with a warning."""
        self.clean()
        for path in self.paths():
            try:
                return Checkpoint(path)
            except CheckpointError as error:
                logger.warning('%s; trying the one before it', error)
        raise CheckpointError(f'no whole checkpoint in {self.folder!r}: start again')

    def job(self):
        """The configuration in the newest readable checkpoint; None without one."""
        for path in self.paths():
            with contextlib.suppress(InputError):
                return read_json(os.path.join(path, _STATE), shape={'config': dict})['config']
        return None

    def remove(self, paths):
        """Remove checkpoints, the oldest first; at each moment one is there whole or not at all."""
        for path in reversed(paths):
            with contextlib.suppress(OSError):
                part = os.path.join(self.folder, _UNFINISHED + os.path.basename(path))
                os.replace(path, part)
                shutil.rmtree(part, ignore_errors=True)

    def clear(self):
        """Remove all checkpoints, and what a killed save or removal has left."""
        self.remove(self.paths())
        self.clean()

    def clean(self):
        """Remove the rest of a killed or failed save, and restore what it had set aside."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.startswith(_REPLACED):
                final = os.path.join(self.folder, name.removeprefix(_REPLACED))
                if not os.path.isdir(final):  # the save ended between its two renamings
                    with contextlib.suppress(OSError):
                        os.replace(path, final)
                    continue
            if name.startswith((_REPLACED, _UNFINISHED)):
                shutil.rmtree(path, ignore_errors=True)
