"""The training loop: batches -> loss -> gradients -> update, with checkpoints and a log.

It knows no tasks: a script passes functions that compute a batch's loss and that evaluate.
"""

import contextlib
import dataclasses
import itertools
import logging
import math
import signal
import threading
import time
from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..errors import CheckpointError, InputError, ZooError
from .checkpoint import TrainingState, seed_all
from .job import Job
from .workers import Workers


class Interrupted(KeyboardInterrupt):
    """The training was stopped and a checkpoint written; the message says how to resume."""


class StopRequested(Exception):
    """Raised by :meth:`InterruptGuard.check`; the training loop turns it into `Interrupted`."""


class InterruptGuard:
    """While entered, the first SIGINT or SIGTERM only sets `requested`; a second stops at once.

    Signals can be handled in the main thread only; elsewhere the guard does nothing.
    """

    def __init__(self):
        self.requested = False
        self._previous = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error):
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _handle(self, number, frame):
        if self.requested:
            raise KeyboardInterrupt('at once, without a checkpoint of this step')
        self.requested = True

    def check(self):
        """Raise `StopRequested` after a signal; for loops that may be abandoned, as evaluations."""
        if self.requested:
            raise StopRequested


class DivergedError(ZooError):
    """The loss or the gradient isn't finite any more; the message names the step."""


class Update(NamedTuple):
    """The values of an update that the log needs."""

    step: int
    lr: float
    totals: np.ndarray
    sums: mx.nd.NDArray
    norm: mx.nd.NDArray
    tokens: int
    skipped: bool


class UpdateLog:
    """The updates since the last record; only making one waits for the device."""

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
        """Read the losses of the updates, check them, and add them to a state."""
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
        finite = np.isfinite(losses)  # all but some of the skipped updates
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
                    correct = sums[terms + number][finite].sum()
                    record[f'{name}_acc'] = float(correct / counted[number])
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


logger = logging.getLogger(__name__)


class TrainingLoop:
    """Trains a block, and can stop and resume at any update.

    An update takes `accumulate` batches from each worker, or what is left of the epoch. Its
    gradient is the gradient of the objective's means over all of these samples, however they are
    distributed. The loop waits for the device only to log, with a loss scale, and for the update
    before the last one, which keeps the queue of work and the wait after Ctrl-C short.

    Several workers run the same loop, each on its part of each batch. All of them evaluate. Only
    worker 0 has callbacks and writes checkpoints, which all can read.

    Parameters
    ----------
    updater : Updater
        A checkpoint holds the parameters of its block. If the block has state of each worker, its
        method ``gather(workers)`` is called before a checkpoint is written, and
        ``regroup(before, now)`` when the number of workers changes.
    loader : object
        ``loader.epoch(e, start)`` iterates over the batches of epoch e from number `start` on, the
        same ones at each call (:class:`model_zoo.batches.Loader`). None is a batch without a part
        for this worker. A loader that must read all earlier batches to reach one may have
        ``position()``, plain JSON for checkpoints, and ``go_to(position)``.
    num_steps : int
        Updates to do.
    accumulate : int
        Batches per update. A multiple of the number of devices, which get them in turn.
    seed : int
        See :func:`seed_all`.
    log_interval : int
        In updates.
    num_epochs : int, optional
        End after this many epochs, if `num_steps` aren't done before. Then the number of their
        batches needn't be known, and some may have none.
    evaluate : callable, optional
        ``evaluate(guard) -> (score, report)``: a finite float (higher is better), and plain JSON
        for the record. It calls ``guard.check()`` now and then, unless guard is None, to let
        Ctrl-C interrupt it. Without a function the last epoch counts as the best.
    evaluate_interval : int, optional
        Evaluate every N updates, and after the last one; default: after each epoch, and after the
        last update.
    early_stop : int, optional
        Stop after this many evaluations in a row without a new best score.
    store : CheckpointStore, optional
        Receives a checkpoint after each evaluation, and after Ctrl-C.
    checkpoint_interval : int, optional
        Also write one every N updates.
    job : Job, optional
        What must be the same when the training is resumed.
    callbacks : sequence of Callback
    workers : Workers, optional

    Attributes
    ----------
    weights : str or None
        A file that `save_parameters` has just written, if ``on_epoch`` says so: the checkpoint
        that follows links to it instead of writing the same once more.
    """

    def __init__(
        self,
        updater,
        objective,
        loader,
        num_steps,
        *,
        accumulate=1,
        seed=0,
        log_interval=10,
        num_epochs=None,
        evaluate=None,
        evaluate_interval=None,
        early_stop=None,
        store=None,
        checkpoint_interval=None,
        job=None,
        callbacks=(),
        workers=None,
    ):
        self.updater, self.num_steps, self._accumulate = updater, num_steps, accumulate
        self._seed, self._log_interval, self._num_epochs = seed, log_interval, num_epochs
        self._evaluator, self._evaluate_interval = evaluate, evaluate_interval
        self._early_stop = early_stop
        self._store, self._checkpoint_interval = store, checkpoint_interval
        self.state = TrainingState(loss_scale=updater.loss_scale, unit=objective.unit)
        self._objective = objective
        self._loader = loader
        self._workers = workers or Workers()
        self._job = (job or Job()).with_workers(self._workers.size)
        self._callbacks = list(callbacks) if self._workers.rank == 0 else []
        self._log = UpdateLog(objective, self._workers)
        self._in_flight = None
        self.weights = None

    @property
    def block(self):
        """The block that is trained."""
        return self.updater.block

    @property
    def seconds_left(self):
        """Estimate of the training time that is left, or None before the first log interval."""
        pace = self._log.pace
        return None if pace is None else pace * (self.num_steps - self.state.step)

    def resume(self, step=None):
        """Load a checkpoint of the store.

        Returns
        -------
        str or None
            Its directory. None without a checkpoint; the training then starts from the beginning.
        """
        checkpoint = self._find(step)
        if checkpoint is None:
            logger.warning(
                'nothing to resume in %s: starting from the beginning', self._store.folder
            )
            return None
        saved, job = checkpoint.config, self._job
        job.check(saved)
        state = TrainingState.from_json(checkpoint.state)
        before, now = map(job.batches_of, (saved, job.config))
        state.batch = state.batch // before * now  # this loader has updates x batches
        if state.step > self.num_steps:
            raise CheckpointError(
                f'the checkpoint {checkpoint.path!r} is of a longer training: step {state.step} of '
                f'{self.num_steps}; set more updates'
            )
        checkpoint.restore(self.block, self.updater.trainer)
        workers = saved.get('np', 1), self._workers.size
        if hasattr(self.block, 'regroup') and len({*workers}) > 1:
            self.block.regroup(*workers)
        if state.position is not None:
            self._loader.go_to(state.position)
        self.state, self.updater.loss_scale = state, state.loss_scale
        return checkpoint.path

    def _find(self, step):
        """The checkpoint of a step, or the newest one; worker 0 decides for all."""
        checkpoint, position, store = None, (0, 0, 0), self._store
        if self._workers.rank == 0:
            if step is not None:
                checkpoint = store.at(step)
            elif store.paths():
                checkpoint = store.newest()
            position = (-1, 0, 0) if checkpoint is None else store.position(checkpoint)
        position = self._workers.sum(position).astype(int).tolist()
        if checkpoint is None and position[0] >= 0:
            checkpoint = store.load(*position)
        return checkpoint

    def run(self):
        """Train to the end."""
        with contextlib.ExitStack() as stack:
            if self._accumulate > 1:
                stack.enter_context(self.updater.adding_gradients())
            stack.callback(self._call, 'on_end')
            guard = stack.enter_context(InterruptGuard())
            try:
                self._workers.broadcast(self.block)
                self._workers.prepare(self.updater.parameters)
                self._call('on_start')
                while not self.is_finished():
                    self._run_epoch(guard)
                    self._end_epoch(guard)
                if not self.state.step:
                    raise InputError('the loader has no batches')
                if self.state.step < self.num_steps and not self._epochs_are_done:
                    worse = self._worse_evaluations()
                    logger.info('stopping early: no better evaluation in the last %d', worse)
                guard.check()  # a signal that came while the last checkpoint was written
            except StopRequested:
                self._interrupted()
        return self.state

    def is_finished(self):
        """Whether nothing is left to do, the last evaluation included."""
        state = self.state
        if self._evaluate_interval is None and state.batch > 0:
            return False  # the epoch hasn't been evaluated
        if self._early_stop and self._worse_evaluations() >= self._early_stop:
            return True
        if self._epochs_are_done:
            return True
        return bool(state.epochs) and state.epochs[-1]['step'] >= self.num_steps

    @property
    def _epochs_are_done(self):
        return self._num_epochs is not None and self.state.epoch >= self._num_epochs

    def _worse_evaluations(self):
        """Number of evaluations since the best one."""
        records = self.state.epochs
        return len(records) - 1 - records.index(self.state.best) if records else 0

    def _run_epoch(self, guard):
        state = self.state
        batches = iter(self._loader.epoch(state.epoch, state.batch))
        self._log.begin()
        while state.step < self.num_steps:
            used = self._update(itertools.islice(batches, self._accumulate), guard)
            if not used:
                if state.batch == 0 and self._num_epochs is None:
                    raise InputError('the loader has no batches')
                break
            state.step += 1
            state.batch += used
            self._call('on_step')
            if state.step % self._log_interval == 0:
                self._record()
            if self._evaluate_or_save(guard):
                break
        if self._evaluate_interval is None:  # else epochs don't matter to the log
            self._record()
        self._in_flight = None

    def _evaluate_or_save(self, guard):
        """Evaluate or save after an update, where an interval ends; returns whether to stop."""
        step, stop = self.state.step, False
        evaluate, save = self._evaluate_interval, self._checkpoint_interval
        if evaluate and step % evaluate == 0:
            self._evaluate_at_interval(guard)
            stop = self.is_finished()
        elif save and step % save == 0:
            self._record()
            self._save()
        else:
            return False
        self._log.begin()
        return stop

    def _update(self, batches, guard):
        """Do one update with the batches given; returns how many there were."""
        batches, objective, updater = list(batches), self._objective, self.updater
        counts = objective.count(batches)
        sums = self._workers.sum([*counts.sum(axis=0), guard.requested])
        totals, stop = sums[:-1], sums[-1]
        if stop:  # in one worker, or all
            raise StopRequested
        if not batches:
            return 0
        step = self.state.step
        rank = [self._workers.rank] if self._workers.size > 1 else []
        seed_all(self._seed, step, *rank)
        if self._accumulate > 1 or batches[0] is None:
            updater.zero_gradients()
        losses = objective.backward(batches, counts, totals, updater.scale)
        lr, norm, skipped = updater.update(step + 1, self._workers)
        tokens = 0
        if objective.tokens is not None:
            tokens = sum(objective.tokens(batch) for batch in batches if batch is not None)
        self._log.add(Update(step, lr, totals, losses, norm, tokens, skipped))
        if self._in_flight is not None:
            self._in_flight.wait_to_read()
        self._in_flight = losses
        return len(batches)

    def _record(self):
        """Log the updates since the last time."""
        record = self._log.record(self.state)
        if record is not None:
            self._call('on_log', record)

    def _end_epoch(self, guard):
        state = self.state
        if self._evaluate_interval is None:
            self._evaluate(guard)
            state.epoch, state.batch = state.epoch + 1, 0
            self._save()
        elif state.step < self.num_steps:
            state.epoch, state.batch = state.epoch + 1, 0
        elif not self.is_finished():
            self._evaluate_at_interval(guard)

    def _evaluate_at_interval(self, guard):
        self._record()
        self._save()  # the evaluation may fail, and the last checkpoint be many updates old
        self._evaluate(guard)
        self._save()

    def _evaluate(self, guard):
        state = self.state
        started = time.perf_counter()
        score, report = float(state.step), {}  # without an evaluation the last one is the best
        if self._evaluator is not None:
            # several workers stop together, between two updates
            guard = guard if self._workers.size == 1 else None
            score, report = self._evaluator(guard)
        if not math.isfinite(score):
            raise DivergedError(f'the evaluation of epoch {state.epoch + 1} gave the score {score}')
        record = {
            'epoch': state.epoch + 1,
            'step': state.step,
            'train_loss': state.epoch_loss / max(state.epoch_examples, 1),
            'score': score,
            'report': report,
            'train_seconds': state.epoch_seconds,
            'evaluation_seconds': time.perf_counter() - started,
        }
        state.epochs.append(record)
        state.epoch_loss, state.epoch_examples, state.epoch_seconds = 0.0, 0, 0.0
        self._call('on_epoch', record)

    def _save(self):
        store = self._store
        weights, self.weights = self.weights, None
        if store is not None and hasattr(self.block, 'gather'):
            self.block.gather(self._workers)
            weights = None  # written before
        if store is None or self._workers.rank > 0:
            return None
        if hasattr(self._loader, 'position'):
            self.state.position = self._loader.position()
        state = dataclasses.asdict(self.state)
        return store.save(self.block, self.updater.trainer, state, self._job.config, weights)

    def _interrupted(self):
        self._record()
        path = self._save()
        step = f'step {self.state.step} of {self.num_steps}'
        if path is None:
            raise Interrupted(f'stopped at {step}') from None
        hint = 'run the same command with `resume` to continue'
        raise Interrupted(f'{step} is saved in {path}; {hint}') from None

    def _call(self, event, *args):
        for callback in self._callbacks:
            getattr(callback, event)(self, *args)
