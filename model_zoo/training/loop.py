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
from collections.abc import Callable, Sequence

import mxnet as mx
import numpy as np

from ..errors import CheckpointError, InputError, ZooError
from .callbacks import Callback
from .checkpoint import CheckpointStore, TrainingState, seed_all
from .job import Job
from .objective import Objective
from .updater import Updater
from .workers import Workers

logger = logging.getLogger(__name__)


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

    def add(self, step, lr, totals, sums, norm, tokens, skipped):
        """Add an update; `sums` and `norm` are on the device."""
        self._updates.append((step, lr, totals, sums, norm, tokens, skipped))

    def record(self, state):
        """Read the losses of the updates, check them, and add them to a state."""
        if not self._updates:
            return None
        steps, lrs, totals, sums, norms, tokens, skipped = zip(*self._updates)
        self._updates, objective, scale = [], self._objective, state.loss_scale
        terms = len(objective.names)
        values = mx.nd.stack(*sums).asnumpy().astype(float)
        *sums, tokens = self._workers.sum(np.column_stack([values, tokens])).T
        totals = np.array(totals).T  # (terms, updates)
        losses = (np.array(sums[:terms]) / np.maximum(totals, 1)).sum(axis=0)
        norms = mx.nd.concat(*norms, dim=0).asnumpy().astype(float)
        exhausted = scale is not None and scale.exhausted
        for step, lr, loss, norm, was_skipped in zip(steps, lrs, losses, norms, skipped):
            is_finite = math.isfinite(loss) and math.isfinite(norm)
            if not is_finite and (exhausted or not was_skipped):
                values = f'loss {loss:g}, gradient norm {norm:g}; use a lower rate than {lr:g}'
                raise DivergedError(f'training has diverged at step {step + 1}: {values}')
        seconds = time.perf_counter() - self._started
        self.pace = seconds / len(steps)
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
            'lr': lrs[-1],
            'grad_norm': norms[-1],
            f'{state.unit}_per_second': examples / seconds,
            'seconds': state.seconds,
        }
        if objective.names != ('loss',):
            record.update(objective.named([each[finite].sum() for each in sums], counted))
        if objective.tokens is not None:
            record['tokens_per_second'] = float(tokens.sum()) / seconds
        if scale is not None:
            record['loss_scale'], record['skipped'] = scale.value, scale.skipped
        state.log.append(record)
        return record


@dataclasses.dataclass(eq=False)
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
    objective : Objective
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
        Stop after this many evaluations in a row without a new best one; see `TrainingState.best`.
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
    state : TrainingState
    """

    updater: Updater
    objective: Objective
    loader: object
    num_steps: int
    _: dataclasses.KW_ONLY
    accumulate: int = 1
    seed: int = 0
    log_interval: int = 10
    num_epochs: int | None = None
    evaluate: Callable | None = None
    evaluate_interval: int | None = None
    early_stop: int | None = None
    store: CheckpointStore | None = None
    checkpoint_interval: int | None = None
    job: Job = dataclasses.field(default_factory=Job)
    callbacks: Sequence[Callback] = ()
    workers: Workers = dataclasses.field(default_factory=Workers)

    def __post_init__(self):
        self.state = TrainingState(loss_scale=self.updater.loss_scale, unit=self.objective.unit)
        if self.workers.size > 1:
            config = {**self.job.config, 'np': self.workers.size}
            self.job = dataclasses.replace(self.job, config=config)
        if self.workers.rank > 0:
            self.callbacks = ()
        self._log = UpdateLog(self.objective, self.workers)
        self._in_flight = None

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
        """Load a checkpoint of the store: of a step, or the newest one.

        Returns
        -------
        str or None
            Its directory. None without a checkpoint; the training then starts from the beginning.
        """
        job, store, checkpoint = self.job, self.store, None
        with self.workers.first_alone():  # which may have to tidy the folder
            if step is not None:
                checkpoint = store.at(step)
            elif store.paths():
                checkpoint = store.newest()
        if checkpoint is None:
            logger.warning('nothing to resume in %s: starting from the beginning', store.folder)
            return None
        saved = checkpoint.config
        job.check(saved)
        state = TrainingState.from_json(checkpoint.state)
        # this loader has updates x batches
        state.batch = state.batch // job.batches_of(saved) * job.batches_of(job.config)
        if state.step > self.num_steps:
            problem = f'is of a longer training: step {state.step} of {self.num_steps}'
            raise CheckpointError(f'the checkpoint {checkpoint.path!r} {problem}; set more updates')
        checkpoint.restore(self.block, self.updater.trainer)
        before, now = saved.get('np', 1), self.workers.size
        if before != now and hasattr(self.block, 'regroup'):
            self.block.regroup(before, now)
        if state.position is not None:
            self.loader.go_to(state.position)
        self.state, self.updater.loss_scale = state, state.loss_scale
        return checkpoint.path

    def run(self):
        """Train to the end."""
        with contextlib.ExitStack() as stack:
            if self.accumulate > 1:
                stack.enter_context(self.updater.adding_gradients())
            stack.callback(self._call, 'on_end')
            guard = stack.enter_context(InterruptGuard())
            try:
                self.workers.broadcast(self.block)
                self._call('on_start')
                while not self.is_finished():
                    self._run_epoch(guard)
                if not self.state.step:
                    raise InputError('the loader has no batches')
                if self.state.step < self.num_steps and not self._epochs_are_done:
                    logger.info('stopping early: no better evaluation in the last %d', self._worse)
                guard.check()  # a signal that came while the last checkpoint was written
            except StopRequested:
                self._interrupted()
        return self.state

    def is_finished(self):
        """Whether nothing is left to do, the last evaluation included."""
        state = self.state
        if self.evaluate_interval is None and state.batch > 0:
            return False  # the epoch hasn't been evaluated
        if (self.early_stop and self._worse >= self.early_stop) or self._epochs_are_done:
            return True
        return bool(state.epochs) and state.epochs[-1]['step'] >= self.num_steps

    @property
    def _epochs_are_done(self):
        return self.num_epochs is not None and self.state.epoch >= self.num_epochs

    @property
    def _worse(self):
        """Number of evaluations since the best one."""
        records = self.state.epochs
        return len(records) - 1 - records.index(self.state.best) if records else 0

    def _run_epoch(self, guard):
        """Train to the end of an epoch, or of the training; evaluate and save where it is due."""
        state, by_epochs = self.state, self.evaluate_interval is None
        batches = iter(self.loader.epoch(state.epoch, state.batch))
        while state.step < self.num_steps:
            self._log.begin()
            used = self._update(list(itertools.islice(batches, self.accumulate)), guard)
            if not used:
                if state.batch == 0 and self.num_epochs is None:
                    raise InputError('the loader has no batches')
                break
            state.step += 1
            state.batch += used
            self._call('on_step')
            if state.step % self.log_interval == 0:
                self._record()
            if not by_epochs and state.step % self.evaluate_interval == 0:
                self._evaluate_at_interval(guard)
                if self.is_finished():
                    return
            elif self.checkpoint_interval and state.step % self.checkpoint_interval == 0:
                self._record()
                self._save()
        if by_epochs:
            self._record()
            self._evaluate(guard)
        elif state.step == self.num_steps:
            self._evaluate_at_interval(guard)
            return
        state.epoch, state.batch = state.epoch + 1, 0
        if by_epochs:
            self._save()

    def _update(self, batches, guard):
        """Do one update with the batches given; returns how many there were."""
        objective, updater = self.objective, self.updater
        counts = objective.count(batches)
        *totals, stop = self.workers.sum([*counts.sum(axis=0), guard.requested])
        if stop:  # in one worker, or all
            raise StopRequested
        if not batches:
            return 0
        step, totals = self.state.step, np.array(totals)
        rank = [self.workers.rank] if self.workers.size > 1 else []
        seed_all(self.seed, step, *rank)
        if self.accumulate > 1 or batches[0] is None:
            updater.zero_gradients()
        losses = objective.backward(batches, counts, totals, updater.scale)
        lr, norm, skipped = updater.update(step + 1, self.workers)
        tokens = 0
        if objective.tokens is not None:
            tokens = sum(objective.tokens(batch) for batch in batches if batch is not None)
        self._log.add(step, lr, totals, losses, norm, tokens, skipped)
        if self._in_flight is not None:
            self._in_flight.wait_to_read()
        self._in_flight = losses
        return len(batches)

    def _record(self):
        """Log the updates since the last time."""
        record = self._log.record(self.state)
        if record is not None:
            self._call('on_log', record)

    def _evaluate_at_interval(self, guard):
        self._record()
        self._save()  # the evaluation may fail, and the last checkpoint be many updates old
        self._evaluate(guard)
        self._save()

    def _evaluate(self, guard):
        state = self.state
        started = time.perf_counter()
        score, report = float(state.step), {}  # without an evaluation the last one is the best
        if self.evaluate is not None:
            # several workers stop together, between two updates
            score, report = self.evaluate(guard if self.workers.size == 1 else None)
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
        if self.store is None:
            return None
        if hasattr(self.block, 'gather'):
            self.block.gather(self.workers)
        if self.workers.rank > 0:
            return None
        if hasattr(self.loader, 'position'):
            self.state.position = self.loader.position()
        state = dataclasses.asdict(self.state)
        return self.store.save(self.block, self.updater.trainer, state, self.job.config)

    def _interrupted(self):
        self._record()
        path = self._save()
        message = f'step {self.state.step} of {self.num_steps}'
        if path is not None:
            message += f' is saved in {path}; run the same command with `resume` to continue'
        raise Interrupted(message) from None

    def _call(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)
