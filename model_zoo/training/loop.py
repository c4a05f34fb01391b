"""The training loop: batches -> loss -> gradients -> update, with checkpoints and a log.

It knows no task: a script gives it a function that computes a batch's loss, and one that evaluates.
"""

import dataclasses
import itertools
import logging
import math
import time
from typing import List

import mxnet as mx

from ..errors import InputError, ZooError
from ..optimizer import clip_grad_global_norm, grad_global_norm
from .checkpoint import check_same_config
from .interrupt import Interrupted, InterruptGuard, StopRequested
from .seed import seed_all

__all__ = ['Callback', 'DivergedError', 'TrainingLoop', 'TrainingState']

logger = logging.getLogger(__name__)


class DivergedError(ZooError):
    """The loss or the gradient isn't finite any more; the message names the step."""


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
    examples : int
        Trained on, of all epochs.
    epoch_loss, epoch_examples, epoch_seconds : float, int, float
        Sum of the losses of this epoch's examples, their number, and the time spent on them.
    log : list of dict
        A record each log interval: step, epoch (from 1), loss, lr, grad_norm, samples_per_second,
        seconds (of training since the start).
    epochs : list of dict
        A record each epoch: epoch (from 1), step, train_loss, score, report, train_seconds and
        evaluation_seconds (of this epoch).
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    examples: int = 0
    epoch_loss: float = 0.0
    epoch_examples: int = 0
    epoch_seconds: float = 0.0
    log: List[dict] = dataclasses.field(default_factory=list)
    epochs: List[dict] = dataclasses.field(default_factory=list)

    @property
    def best(self):
        """The record of the epoch with the highest score, the first of equals; None if none."""
        return max(self.epochs, key=lambda record: record['score'], default=None)


class Callback:
    """What wants to know of a training's progress; all methods may be left out."""

    def on_start(self, loop):
        """Before the first batch, also of a resumed training."""

    def on_step(self, loop):
        """After each update; must not wait for the device."""

    def on_log(self, loop, record):
        """At each log interval, with the record that is the newest of ``loop.state.log``."""

    def on_epoch(self, loop, record):
        """After an epoch's evaluation, before its checkpoint is written."""

    def on_end(self, loop):
        """At the end, also after an error or an interruption."""


class TrainingLoop:
    """Trains a block, and can stop and resume at any update.

    An update takes `accumulate` batches, and its gradient is the mean over all their examples,
    however many each batch has; the last update of an epoch takes what is left. The device is
    waited for only when something is logged (and for the update before the last one, so that
    the queue of work, and with it the wait after Ctrl-C, stays short).

    Parameters
    ----------
    block : mxnet.gluon.Block
        Its parameters are what a checkpoint holds.
    trainer : mxnet.gluon.Trainer
        With ``update_on_kvstore=False``, and without an lr_scheduler of its own if `schedule` is
        given.
    step_loss : callable
        ``step_loss(batch) -> (loss, count)``: the mean loss, a scalar NDArray, and over how many
        examples (an int) it is the mean. Called in ``autograd.record()``.
    loader : object
        ``len(loader)`` batches an epoch; ``loader.epoch(e)`` iterates over those of epoch e, the
        same ones at each call (:class:`model_zoo.data.BucketedLoader`).
    num_steps : int
        Updates to do.
    schedule : callable, optional
        Number of the update, from 1 -> learning rate (:mod:`model_zoo.optimizer.schedules`).
    accumulate : int
    max_grad_norm : float, optional
        The norm of all gradients together is scaled down to this; None leaves them.
    seed : int
        See :func:`seed_all`.
    log_interval : int
        In updates.
    evaluate : callable, optional
        ``evaluate(guard) -> (score, report)`` after each epoch, and after the last update: a finite
        float by which epochs are compared (more is better), and plain JSON for the record. Calling
        ``guard.check()`` now and then lets Ctrl-C interrupt it.
    early_stop : int, optional
        Stop after so many epochs in a row that aren't better than the best before them.
    callbacks : sequence of Callback
    store : CheckpointStore, optional
    config : dict, optional
        Flag -> value: what must be the same when the training is resumed.
    resume_hint : str
        Ends the message after Ctrl-C.

    Attributes
    ----------
    state : TrainingState

    Raises
    ------
    InputError
        If a number isn't positive.
    """

    def __init__(
        self,
        block,
        trainer,
        step_loss,
        loader,
        num_steps,
        schedule=None,
        accumulate=1,
        max_grad_norm=1.0,
        seed=0,
        log_interval=10,
        evaluate=None,
        early_stop=None,
        callbacks=(),
        store=None,
        config=None,
        resume_hint='run the same command with --resume to go on',
    ):
        numbers = {
            'num_steps': num_steps,
            'accumulate': accumulate,
            'log_interval': log_interval,
            'early_stop': early_stop,
        }
        for name, value in numbers.items():
            if value is not None and value < 1:
                raise InputError(f'{name} is {value}; it must be 1 or more')
        if not len(loader):
            raise InputError('the loader has no batches')
        self.block = block
        self.trainer = trainer
        self.num_steps = num_steps
        self.state = TrainingState()
        self._step_loss = step_loss
        self._loader = loader
        self._schedule = schedule
        self._accumulate = accumulate
        self._max_grad_norm = max_grad_norm
        self._seed = seed
        self._log_interval = log_interval
        self._evaluate = evaluate
        self._early_stop = early_stop
        self._callbacks = list(callbacks)
        self._store = store
        self._config = config or {}
        self._resume_hint = resume_hint
        # In the block's order, not the trainer's: that sorts by name, and Gluon's names count on
        # from earlier blocks, so that the order and the norm's rounding would depend on them.
        trained = set(trainer._params)
        self._parameters = [
            p for p in block.collect_params().values() if p.grad_req != 'null' and p in trained
        ]
        self._window = []  # (step, lr, count, loss, norm) of the updates not logged yet
        self._window_start = None
        self._in_flight = None
        self._pace = None  # seconds an update took lately

    @property
    def seconds_left(self):
        """Estimate of the training time that is left, or None before the first log interval."""
        return None if self._pace is None else self._pace * (self.num_steps - self.state.step)

    def resume(self):
        """Go back to the newest whole checkpoint of the store.

        Returns
        -------
        str
            Its directory.

        Raises
        ------
        CheckpointError
            If there is none, or it doesn't fit.
        InputError
            If the training was begun with other values in `config`.
        """
        checkpoint = self._store.newest()
        check_same_config(checkpoint.config, self._config)
        checkpoint.restore(self.block, self.trainer)
        self.state = TrainingState(**checkpoint.state)
        return checkpoint.path

    def run(self):
        """Train to the end.

        Returns
        -------
        TrainingState

        Raises
        ------
        DivergedError
            If the loss, a gradient or the score isn't finite any more.
        Interrupted
            After SIGINT or SIGTERM, once a checkpoint has been written.
        """
        if self._accumulate > 1:
            for parameter in self._parameters:
                parameter.grad_req = 'add'
        try:
            with InterruptGuard() as guard:
                try:
                    self._call('on_start')
                    while not self._finished():
                        self._run_epoch(guard)
                        self._end_epoch(guard)
                    guard.check()  # a signal that came while the last checkpoint was written
                except StopRequested:
                    self._interrupted()
        finally:
            self._call('on_end')
            if self._accumulate > 1:
                for parameter in self._parameters:
                    parameter.grad_req = 'write'
        return self.state

    def _finished(self):
        """Whether nothing is left to do, the evaluation of the last epoch included."""
        state = self.state
        if state.batch == 0 and self._early_stop is not None and state.best is not None:
            since = len(state.epochs) - 1 - state.epochs.index(state.best)
            if since >= self._early_stop:
                logger.info('stopping early: no better epoch in the last %d', since)
                return True
        return state.batch == 0 and state.step >= self.num_steps

    def _run_epoch(self, guard):
        state = self.state
        batches = itertools.islice(self._loader.epoch(state.epoch), state.batch, None)
        self._window_start = time.perf_counter()
        while state.step < self.num_steps:
            guard.check()
            used = self._update(itertools.islice(batches, self._accumulate))
            if not used:
                break
            state.step += 1
            state.batch += used
            self._call('on_step')
            if state.step % self._log_interval == 0:
                self._log()
        self._log()
        self._in_flight = None

    def _update(self, batches):
        """Do one update with the batches given; returns how many there were."""
        seed_all(self._seed, self.state.step)
        if self._accumulate > 1:
            for parameter in self._parameters:
                parameter.zero_grad()
        losses, counts = [], []
        for batch in batches:
            with mx.autograd.record():
                loss, count = self._step_loss(batch)
                # Gradients of sums add up to that of the sum over all examples.
                head = loss * count if self._accumulate > 1 else loss
            head.backward()
            losses.append(loss.detach().reshape((1,)).astype('float32') * count)
            counts.append(count)
        if not losses:
            return 0
        total = sum(counts)
        scale = total if self._accumulate > 1 else 1
        lr = self.trainer.learning_rate
        if self._schedule is not None:
            lr = self._schedule(self.state.step + 1)
            self.trainer.set_learning_rate(lr)
        self.trainer.allreduce_grads()
        if self._max_grad_norm is None:
            norm = grad_global_norm(self._parameters)
        else:
            norm = clip_grad_global_norm(self._parameters, self._max_grad_norm * scale)
        self.trainer.update(scale)
        loss = mx.nd.add_n(*losses) / total
        self._window.append((self.state.step, lr, total, loss, norm / scale))
        if self._in_flight is not None:
            self._in_flight.wait_to_read()
        self._in_flight = loss
        return len(losses)

    def _log(self):
        """Read the losses since the last time, check them, and make a record of them."""
        if not self._window:
            return
        steps, rates, counts, losses, norms = zip(*self._window)
        values = mx.nd.concat(*losses, *norms, dim=0).asnumpy().astype(float)
        losses, norms = values[: len(steps)], values[len(steps) :]
        for step, lr, loss, norm in zip(steps, rates, losses, norms):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise DivergedError(
                    f'training has diverged at step {step + 1}: loss {loss:g}, learning rate '
                    f'{lr:g}, gradient norm {norm:g}; try a lower learning rate'
                )
        now = time.perf_counter()
        seconds = now - self._window_start
        self._window_start = now
        self._window = []
        self._pace = seconds / len(steps)
        state = self.state
        examples = sum(counts)
        loss_sum = sum(loss * count for loss, count in zip(losses, counts))
        state.seconds += seconds
        state.examples += examples
        state.epoch_loss += loss_sum
        state.epoch_examples += examples
        state.epoch_seconds += seconds
        record = {
            'step': state.step,
            'epoch': state.epoch + 1,
            'loss': loss_sum / examples,
            'lr': rates[-1],
            'grad_norm': norms[-1],
            'samples_per_second': examples / seconds,
            'seconds': state.seconds,
        }
        state.log.append(record)
        self._call('on_log', record)

    def _end_epoch(self, guard):
        state = self.state
        started = time.perf_counter()
        score, report = (0.0, {}) if self._evaluate is None else self._evaluate(guard)
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
        state.epoch, state.batch = state.epoch + 1, 0
        self._call('on_epoch', record)
        self._save()

    def _save(self):
        if self._store is None:
            return None
        state = dataclasses.asdict(self.state)
        return self._store.save(self.block, self.trainer, state, self._config)

    def _interrupted(self):
        self._log()
        path = self._save()
        step = f'step {self.state.step} of {self.num_steps}'
        if path is None:
            raise Interrupted(f'stopped at {step}; no checkpoint was asked for') from None
        raise Interrupted(f'{step} is saved in {path}; {self._resume_hint}') from None

    def _call(self, event, *args):
        for callback in self._callbacks:
            getattr(callback, event)(self, *args)
