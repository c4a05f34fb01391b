"""The state of a training."""

import dataclasses
from typing import List, Optional

from ..errors import CheckpointError
from ..util.files import check_json
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
    position: Optional[object] = None

    @classmethod
    def from_json(cls, fields):
        """The state whose ``dataclasses.asdict`` this is.

        Raises
        ------
        CheckpointError
            If a field is unknown or has an impossible value.
        """
        try:
            check_json(fields, cls)
            for place, record in enumerate(fields.get('epochs', ())):
                check_json(record, {'score': float, 'step': int}, f'epochs[{place}]')
            state = cls(**fields)
            _check_counts(state)
            if state.loss_scale is not None:
                state.loss_scale = LossScale(**state.loss_scale)
                _check_counts(state.loss_scale)
        except ValueError as error:
            raise CheckpointError(f'the state of the training is damaged: {error}') from error
        return state

    @property
    def best(self):
        """The record of the epoch with the highest score, and of equals with the lowest loss on
        the dev sets; None if there is none."""
        return max(self.epochs, key=lambda record: (record['score'], -_loss(record)), default=None)


def _loss(record):
    """The mean loss of an evaluation's sets; 0 if it measures none."""
    reports = (scores for scores in record['report'].values() if isinstance(scores, dict))
    losses = [scores['loss'] for scores in reports if isinstance(scores.get('loss'), float)]
    return sum(losses) / len(losses) if losses else 0.0


def _check_counts(counts):
    """Raise ValueError if a number of a dataclass is negative: they are counts and times."""
    for name, value in vars(counts).items():
        if isinstance(value, (int, float)) and value < 0:
            raise ValueError(f'{name} is {value}')
