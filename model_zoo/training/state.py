"""The state of a training."""

import dataclasses
import math
from typing import Any, List, Optional

from ..errors import CheckpointError
from .loss_scale import LossScale

__all__ = ['TrainingState']


@dataclasses.dataclass
class TrainingState:
    """Where a training is and what it has seen; plain JSON, part of each checkpoint.

    Parameters
    ----------
    step : int
        Updates done.
    epoch, batch : int
        The next batch: its epoch, and its place in that, both from 0. After an epoch's last batch
        and before its evaluation has ended, `batch` is the number of batches.
    seconds : float
        Spent on training, without evaluation.
    unit : str
        The things of the objective's last term, here called examples.
    examples, tokens : int
        Numbers over all epochs and workers. Tokens are 0 unless the objective counts them.
    epoch_loss, epoch_examples, epoch_seconds : float, int, float
        Sum of the losses of this epoch's examples, their number, and the time spent on them.
    log : list of dict
        A record each log interval: step, epoch (from 1), loss, lr, grad_norm, samples_per_second
        (or of another `unit`), seconds (of training since the start). An objective of several terms
        adds a loss for each, and their accuracies; one that counts tokens tokens_per_second;
        float16 loss_scale and skipped (updates left out so far).
    epochs : list of dict
        A record each evaluation, which follows an epoch unless it has an interval of its own:
        epoch (from 1), step, train_loss, score, report, train_seconds and evaluation_seconds (of
        what was trained since the last one).
    loss_scale : LossScale, optional
        In float16.
    position : optional
        The loader's ``position()``, if it has one: see `TrainingLoop`.
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
    log: List[dict] = dataclasses.field(default_factory=list)
    epochs: List[dict] = dataclasses.field(default_factory=list)
    loss_scale: Optional[LossScale] = None
    position: Optional[Any] = None

    @classmethod
    def from_json(cls, fields):
        """The state whose ``dataclasses.asdict`` this is.

        Raises
        ------
        CheckpointError
            If a field is unknown or has an impossible value.
        """
        try:
            state = cls(**fields)
            if state.loss_scale is not None:
                state.loss_scale = LossScale(**state.loss_scale)
                _check(state.loss_scale)
            _check(state)
            for record in state.epochs:
                _check_number('score', float, record['score'])
                _check_number('step', int, record['step'])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f'the state of the training is damaged: {error}') from error
        return state

    @property
    def best(self):
        """The record of the epoch with the highest score, the first of equals; None if none."""
        return max(self.epochs, key=lambda record: record['score'], default=None)


def _check(counts):
    """Raise ValueError unless the numbers of a dataclass are counts and times."""
    for field in dataclasses.fields(counts):
        value = getattr(counts, field.name)
        if field.type in (int, float):
            _check_number(field.name, field.type, value)
            if value < 0:
                raise ValueError(f'{field.name} is {value}')
        elif field.name in ('log', 'epochs') and not isinstance(value, list):
            raise ValueError(f'{field.name} is no list')


def _check_number(name, kind, value):
    kinds = (int, float) if kind is float else (int,)
    if type(value) not in kinds or not math.isfinite(value):
        raise ValueError(f'{name} is {value!r:.80}')
