"""The updates of a training, and the records made of them."""

import math
import time
from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..errors import ZooError

__all__ = ['DivergedError', 'Update', 'UpdateLog']


class DivergedError(ZooError):
    """The loss or the gradient isn't finite any more; the message names the step."""


class Update(NamedTuple):
    """What an update leaves for the log.

    Parameters
    ----------
    step : int
    lr : float
    totals : numpy.ndarray, shape (terms,)
        Number of things of each term, over all workers.
    sums : NDArray
        This worker's sums of the terms' losses, and of right predictions where there are any.
    norm : NDArray, shape (1,)
        Of the gradient.
    tokens : int
        This worker's.
    skipped : bool
    """

    step: int
    lr: float
    totals: np.ndarray
    sums: mx.nd.NDArray
    norm: mx.nd.NDArray
    tokens: int
    skipped: bool


class UpdateLog:
    """The updates since the last record; only making one waits for the device.

    Parameters
    ----------
    objective : Objective
    workers : Workers

    Attributes
    ----------
    pace : float or None
        Seconds per update, lately.
    """

    def __init__(self, objective, workers):
        self._objective, self._workers = objective, workers
        self._updates = []
        self._started = None
        self.pace = None

    def begin(self):
        """Take the time from now on, unless there are updates already."""
        if not self._updates:
            self._started = time.perf_counter()

    def add(self, update):
        self._updates.append(update)

    def record(self, state):
        """Read the losses of the updates, check them, and add them to a state.

        Parameters
        ----------
        state : TrainingState

        Returns
        -------
        dict or None
            The record that `state` has got; None if there was no update, or each was left out.

        Raises
        ------
        DivergedError
            If a loss or a gradient isn't finite.
        """
        if not self._updates:
            return None
        updates, self._updates = self._updates, []
        terms = len(self._objective.names)
        values = mx.nd.stack(*[update.sums for update in updates]).asnumpy().astype(float)
        tokens = np.array([[update.tokens] for update in updates])
        *sums, tokens = self._workers.sum(np.hstack([values, tokens])).T
        totals = np.array([update.totals for update in updates]).T  # (terms, updates)
        means = np.array(sums[:terms]) / np.maximum(totals, 1)
        losses = means.sum(axis=0)
        norms = mx.nd.concat(*[update.norm for update in updates], dim=0).asnumpy().astype(float)
        _check_finite(updates, losses, norms, state.loss_scale)
        now = time.perf_counter()
        seconds, self._started = now - self._started, now
        self.pace = seconds / len(updates)
        examples = int(totals[-1].sum())
        finite = np.isfinite(losses)  # all, but for some of the updates left out
        counted = totals[:, finite].sum(axis=1)
        loss_sum = float((losses * totals[-1])[finite].sum())
        state.seconds += seconds
        state.examples += examples
        state.tokens += int(tokens.sum())
        state.epoch_loss += loss_sum
        state.epoch_examples += int(counted[-1])
        state.epoch_seconds += seconds
        if not finite.any():
            return None
        record = {
            'step': state.step,
            'epoch': state.epoch + 1,
            'loss': loss_sum / counted[-1],
            'lr': updates[-1].lr,
            'grad_norm': norms[-1],
            f'{state.unit}_per_second': examples / seconds,
            'seconds': state.seconds,
        }
        if self._objective.names != ('loss',):
            for number, name in enumerate(self._objective.names):
                record[f'{name}_loss'] = float(sums[number][finite].sum() / counted[number])
                if self._objective.accuracies:
                    right = sums[terms + number][finite].sum()
                    record[f'{name}_acc'] = float(right / counted[number])
        if self._objective.tokens is not None:
            record['tokens_per_second'] = float(tokens.sum()) / seconds
        if state.loss_scale is not None:
            record['loss_scale'] = state.loss_scale.value
            record['skipped'] = state.loss_scale.skipped
        state.log.append(record)
        return record


def _check_finite(updates, losses, norms, loss_scale):
    """Raise DivergedError for a loss or gradient that isn't finite."""
    exhausted = loss_scale is not None and loss_scale.exhausted
    for update, loss, norm in zip(updates, losses, norms):
        bad = not (math.isfinite(loss) and math.isfinite(norm))
        if bad and (exhausted or not update.skipped):
            raise DivergedError(
                f'training has diverged at step {update.step + 1}: loss {loss:g}, learning '
                f'rate {update.lr:g}, gradient norm {norm:g}; try a lower learning rate'
            )
