"""The training loop: batches -> loss -> gradients -> update, with checkpoints and a log.

It knows no task: a script gives it a function that computes a batch's loss, and one that evaluates.
"""

import dataclasses
import itertools
import logging
import math
import time
from typing import List, NamedTuple, Optional

import mxnet as mx
import numpy as np

from ..blocks.mirror import finish_backward
from ..errors import CheckpointError, InputError, ZooError
from ..optimizer import clip_grad_global_norm, grad_global_norm
from .checkpoint import check_same_config
from .interrupt import Interrupted, InterruptGuard, StopRequested
from .loss_scale import LossScale
from .seed import seed_all
from .workers import Workers

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
    unit : str
        What the objective's last term is the mean over, here called examples.
    examples, tokens : int
        Trained on, of all epochs and workers. Tokens are counted only if the objective does.
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

    @classmethod
    def from_json(cls, fields):
        """The state whose ``dataclasses.asdict`` this is."""
        scale = fields.get('loss_scale')
        return cls(**{**fields, 'loss_scale': None if scale is None else LossScale(**scale)})

    @property
    def best(self):
        """The record of the epoch with the highest score, the first of equals; None if none."""
        return max(self.epochs, key=lambda record: record['score'], default=None)


class _Update(NamedTuple):
    """What an update leaves for the log.

    Parameters
    ----------
    step : int
    lr : float
    totals : numpy.ndarray, shape (terms,)
        The things that each term is the mean over, of all workers.
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

    An update takes `accumulate` batches of each worker, and its gradient is that of the
    objective's means over all that these hold, however much each of them has; the last update of
    an epoch takes what is left. The device is waited for only when something is logged (and for
    the update before the last one, so that the queue of work, and with it the wait after Ctrl-C,
    stays short), and with a loss scale.

    Several workers run the same loop, each on its part of each batch; all evaluate, and worker 0
    alone has callbacks and writes checkpoints, which all can read.

    Parameters
    ----------
    block : mxnet.gluon.Block
        Its parameters are what a checkpoint holds.
    trainer : mxnet.gluon.Trainer
        With ``update_on_kvstore=False``, and without an lr_scheduler of its own if `schedule` is
        given.
    objective : Objective
    loader : object
        ``loader.epoch(e, start)`` iterates over the batches of epoch e from number `start` on, the
        same ones at each call (:class:`model_zoo.tasks.batching.BucketedLoader`). None
        stands for a batch of
        which this worker has no part.
    num_steps : int
        Updates to do.
    schedule : callable, optional
        Number of the update, from 1 -> learning rate (:mod:`model_zoo.optimizer.schedules`).
    accumulate : int
        Batches of an update; with several devices, to which the loader deals them out in turn, a
        multiple of their number.
    max_grad_norm : float, optional
        The norm of all gradients together is scaled down to this; None leaves them.
    seed : int
        See :func:`seed_all`.
    log_interval : int
        In updates.
    evaluate : callable, optional
        ``evaluate(guard) -> (score, report)`` after each epoch, and after the last update: a finite
        float by which epochs are compared (more is better), and plain JSON for the record. Calling
        ``guard.check()`` now and then, where guard isn't None, lets Ctrl-C interrupt it.
    evaluate_interval : int, optional
        Evaluate after so many updates, and after the last one, in the place of each epoch.
    early_stop : int, optional
        Stop after so many evaluations in a row that aren't better than the best before them.
    callbacks : sequence of Callback
    store : CheckpointStore, optional
        Gets a checkpoint after each evaluation.
    checkpoint_interval : int, optional
        Write one after so many updates too.
    loss_scale : LossScale, optional
        For float16.
    workers : Workers, optional
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
        objective,
        loader,
        num_steps,
        schedule=None,
        accumulate=1,
        max_grad_norm=1.0,
        seed=0,
        log_interval=10,
        evaluate=None,
        evaluate_interval=None,
        early_stop=None,
        callbacks=(),
        store=None,
        checkpoint_interval=None,
        loss_scale=None,
        workers=None,
        config=None,
        resume_hint='run the same command with `resume` to go on',
    ):
        numbers = {
            'num_steps': num_steps,
            'accumulate': accumulate,
            'log_interval': log_interval,
            'early_stop': early_stop,
            'evaluate_interval': evaluate_interval,
            'checkpoint_interval': checkpoint_interval,
        }
        for name, value in numbers.items():
            if value is not None and value < 1:
                raise InputError(f'{name} is {value}; it must be 1 or more')
        self.block = block
        self.trainer = trainer
        self.num_steps = num_steps
        self.state = TrainingState(loss_scale=loss_scale, unit=objective.unit)
        self._objective = objective
        self._loader = loader
        self._schedule = schedule
        self._accumulate = accumulate
        self._max_grad_norm = max_grad_norm
        self._seed = seed
        self._log_interval = log_interval
        self._evaluate = evaluate
        self._evaluate_interval = evaluate_interval
        self._early_stop = early_stop
        self._workers = workers or Workers()
        self._callbacks = list(callbacks) if self._workers.rank == 0 else []
        self._store = store
        self._checkpoint_interval = checkpoint_interval
        self._config = dict(config or {})
        if self._workers.size > 1:
            self._config['np'] = self._workers.size  # horovodrun's name for it
        self._resume_hint = resume_hint
        # In the block's order, not the trainer's: that sorts by name, and Gluon's names count on
        # from earlier blocks, so that the order and the norm's rounding would depend on them.
        trained = set(trainer._params)
        self._parameters = [
            p for p in block.collect_params().values() if p.grad_req != 'null' and p in trained
        ]
        self._window = []  # the updates not logged yet
        self._window_start = None
        self._in_flight = None
        self._pace = None  # seconds an update took lately

    @property
    def seconds_left(self):
        """Estimate of the training time that is left, or None before the first log interval."""
        return None if self._pace is None else self._pace * (self.num_steps - self.state.step)

    def resume(self, step=None):
        """Go back to a checkpoint of the store.

        Parameters
        ----------
        step : int, optional
            Default: the newest that is whole.

        Returns
        -------
        str or None
            Its directory. None if there is no checkpoint at all, as of a training that ended before
            its first; it begins anew, then.

        Raises
        ------
        CheckpointError
            If there is none of this step, all are damaged, or it doesn't fit.
        InputError
            If the training was begun with other values in `config`.
        """
        checkpoint = self._find(step)
        if checkpoint is None:
            logger.warning('nothing to resume in %s: starting anew', self._store.folder)
            return None
        check_same_config(checkpoint.config, self._config)
        state = TrainingState.from_json(checkpoint.state)
        if (state.loss_scale is None) != (self.state.loss_scale is None):
            raise CheckpointError(f'{checkpoint.path!r} was written with another `dtype`')
        checkpoint.restore(self.block, self.trainer)
        self.state = state
        return checkpoint.path

    def _find(self, step):
        """The checkpoint of a step, or the newest: in all workers that which worker 0 has found."""
        checkpoint, place = None, (0, 0, 0)
        if self._workers.rank == 0:
            if step is not None:
                checkpoint = self._store.at(step)
            elif self._store.paths():
                checkpoint = self._store.newest()
            place = (-1, 0, 0) if checkpoint is None else self._store.place(checkpoint)
        place = self._workers.sum(place).astype(int).tolist()
        if checkpoint is None and place[0] >= 0:
            checkpoint = self._store.load(*place)
        return checkpoint

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
                    self._workers.broadcast(self.block)
                    self._call('on_start')
                    while not self._finished():
                        self._run_epoch(guard)
                        self._end_epoch(guard)
                    if self.state.step < self.num_steps:
                        worse = self._worse_evaluations()
                        logger.info('stopping early: no better evaluation in the last %d', worse)
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
        """Whether nothing is left to do, the last evaluation included."""
        state = self.state
        if self._evaluate_interval is None and state.batch > 0:
            return False  # the epoch hasn't been evaluated
        if self._early_stop is not None and self._worse_evaluations() >= self._early_stop:
            return True
        return bool(state.epochs) and state.epochs[-1]['step'] >= self.num_steps

    def _worse_evaluations(self):
        """How many there were since the best one."""
        records = self.state.epochs
        return len(records) - 1 - records.index(self.state.best) if records else 0

    def _run_epoch(self, guard):
        state = self.state
        batches = iter(self._loader.epoch(state.epoch, state.batch))
        if not self._window:
            self._window_start = time.perf_counter()
        while state.step < self.num_steps:
            used = self._update(itertools.islice(batches, self._accumulate), guard)
            if not used:
                if state.batch == 0:
                    raise InputError('the loader has no batches')
                break
            state.step += 1
            state.batch += used
            self._call('on_step')
            if state.step % self._log_interval == 0:
                self._log()
            if self._do_what_is_due(guard):
                break
        if self._evaluate_interval is None:  # else epochs don't matter to the log
            self._log()
        self._in_flight = None

    def _do_what_is_due(self, guard):
        """Evaluate or save after an update, where an interval ends; returns whether to stop."""
        step, stop = self.state.step, False
        if self._evaluate_interval and step % self._evaluate_interval == 0:
            self._evaluate_at_interval(guard)
            stop = self._finished()
        elif self._checkpoint_interval and step % self._checkpoint_interval == 0:
            self._log()
            self._save()
        else:
            return False
        self._window_start = time.perf_counter()
        return stop

    def _update(self, batches, guard):
        """Do one update with the batches given; returns how many there were."""
        batches = list(batches)
        counts = np.zeros((len(batches), len(self._objective.names)))
        for row, batch in zip(counts, batches):
            row[:] = 0 if batch is None else self._objective.counts(batch)
        *totals, stop = self._workers.sum([*counts.sum(axis=0), guard.requested])
        if stop:  # in one worker, or all
            raise StopRequested
        if not batches:
            return 0
        rank = [self._workers.rank] if self._workers.size > 1 else []
        seed_all(self._seed, self.state.step, *rank)
        totals = np.array(totals)
        sums = self._backward(batches, counts, totals)
        lr = self.trainer.learning_rate
        if self._schedule is not None:
            lr = self._schedule(self.state.step + 1)
            self.trainer.set_learning_rate(lr)
        norm, skipped = self._step()
        tokens = 0
        if self._objective.tokens is not None:
            tokens = sum(self._objective.tokens(batch) for batch in batches if batch is not None)
        self._window.append(_Update(self.state.step, lr, totals, sums, norm, tokens, skipped))
        if self._in_flight is not None:
            self._in_flight.wait_to_read()
        self._in_flight = sums
        return len(batches)

    def _backward(self, batches, counts, totals):
        """Compute this worker's part of the gradient; returns `_Update.sums`."""
        if self._accumulate > 1 or batches[0] is None:
            self._zero_gradients()
        scale = 1.0 if self.state.loss_scale is None else self.state.loss_scale.value
        sums = []
        for batch, own in zip(batches, counts):
            if batch is None:
                continue
            with mx.autograd.record():
                arrays = [array.reshape((1,)) for array in self._objective.terms(batch)]
                # their share of the means over all parts: a lone part's is 1, and changes nothing
                weights = scale * own / np.maximum(totals, 1)
                head = mx.nd.add_n(
                    *[term if w == 1 else term * w for term, w in zip(arrays, weights.tolist())]
                )
            head.backward()
            finish_backward()
            factors = [*own.tolist(), *[1.0] * (len(arrays) - len(own))]
            arrays = [
                array.detach().astype('float32').as_in_context(mx.cpu()) * factor
                for array, factor in zip(arrays, factors)
            ]
            sums.append(mx.nd.concat(*arrays, dim=0))
        return mx.nd.add_n(*sums) if sums else mx.nd.zeros(self._objective.num_sums)

    def _zero_gradients(self):
        for parameter in self._parameters:
            parameter.zero_grad()
            for data in parameter.list_data():
                data._fresh_grad = True  # for the trainer: it has been set, if not by backward()

    def _step(self):
        """Sum the gradient over the workers, clip it, and update; returns its norm, and whether
        the update was left out."""
        self.trainer.allreduce_grads()
        self._workers.sum_gradients(self._parameters)
        loss_scale = self.state.loss_scale
        scale = 1.0 if loss_scale is None else loss_scale.value
        if self._max_grad_norm is None:
            norm = grad_global_norm(self._parameters)
        else:
            norm = clip_grad_global_norm(self._parameters, self._max_grad_norm * scale)
        if loss_scale is not None:
            finite = math.isfinite(norm.asscalar())
            loss_scale.update(finite)
            if not finite:
                return norm, True
        self.trainer.update(scale)
        return norm / scale, False

    def _log(self):
        """Read the losses since the last time, check them, and make a record of them."""
        if not self._window:
            return
        window, self._window = self._window, []
        terms = len(self._objective.names)
        values = mx.nd.stack(*[update.sums for update in window]).asnumpy().astype(float)
        tokens = np.array([[update.tokens] for update in window])
        *sums, tokens = self._workers.sum(np.hstack([values, tokens])).T
        totals = np.array([update.totals for update in window]).T  # (terms, updates)
        means = np.array(sums[:terms]) / np.maximum(totals, 1)
        losses = means.sum(axis=0)
        norms = mx.nd.concat(*[update.norm for update in window], dim=0).asnumpy().astype(float)
        self._check_finite(window, losses, norms)
        now = time.perf_counter()
        seconds = now - self._window_start
        self._window_start = now
        self._pace = seconds / len(window)
        state = self.state
        examples = int(totals[-1].sum())
        finite = np.isfinite(losses)  # all, but for some of the updates left out
        loss_sum = float((losses * totals[-1])[finite].sum())
        state.seconds += seconds
        state.examples += examples
        state.tokens += int(tokens.sum())
        state.epoch_loss += loss_sum
        state.epoch_examples += int(totals[-1][finite].sum())
        state.epoch_seconds += seconds
        if not finite.any():
            return
        record = {
            'step': state.step,
            'epoch': state.epoch + 1,
            'loss': loss_sum / totals[-1][finite].sum(),
            'lr': window[-1].lr,
            'grad_norm': norms[-1],
            f'{state.unit}_per_second': examples / seconds,
            'seconds': state.seconds,
        }
        if terms > 1:
            for number, name in enumerate(self._objective.names):
                counted = totals[number][finite].sum()
                record[f'{name}_loss'] = float(sums[number][finite].sum() / counted)
                if self._objective.accuracies:
                    record[f'{name}_acc'] = float(sums[terms + number][finite].sum() / counted)
        if self._objective.tokens is not None:
            record['tokens_per_second'] = float(tokens.sum()) / seconds
        if state.loss_scale is not None:
            record['loss_scale'] = state.loss_scale.value
            record['skipped'] = state.loss_scale.skipped
        state.log.append(record)
        self._call('on_log', record)

    def _check_finite(self, window, losses, norms):
        """Raise DivergedError for an update that is beyond help."""
        exhausted = self.state.loss_scale is not None and self.state.loss_scale.exhausted
        for update, loss, norm in zip(window, losses, norms):
            bad = not (math.isfinite(loss) and math.isfinite(norm))
            if bad and (exhausted or not update.skipped):
                raise DivergedError(
                    f'training has diverged at step {update.step + 1}: loss {loss:g}, learning '
                    f'rate {update.lr:g}, gradient norm {norm:g}; try a lower learning rate'
                )

    def _end_epoch(self, guard):
        state = self.state
        if self._evaluate_interval is None:
            self._evaluate_now(guard)
            state.epoch, state.batch = state.epoch + 1, 0
            self._save()
        elif state.step < self.num_steps:
            state.epoch, state.batch = state.epoch + 1, 0
        elif not self._finished():
            self._evaluate_at_interval(guard)

    def _evaluate_at_interval(self, guard):
        self._log()
        self._save()  # the evaluation may fail, and the last checkpoint be many updates old
        self._evaluate_now(guard)
        self._save()

    def _evaluate_now(self, guard):
        state = self.state
        started = time.perf_counter()
        score, report = float(state.step), {}  # without an evaluation the last one is the best
        if self._evaluate is not None:
            # several workers stop together, between two updates
            score, report = self._evaluate(guard if self._workers.size == 1 else None)
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
        if self._store is None or self._workers.rank > 0:
            return None
        state = dataclasses.asdict(self.state)
        return self._store.save(self.block, self.trainer, state, self._config)

    def _interrupted(self):
        self._log()
        path = self._save()
        step = f'step {self.state.step} of {self.num_steps}'
        if self._workers.rank > 0:
            raise Interrupted(f'stopped at {step}') from None
        if path is None:
            raise Interrupted(f'stopped at {step}; no checkpoint was asked for') from None
        raise Interrupted(f'{step} is saved in {path}; {self._resume_hint}') from None

    def _call(self, event, *args):
        for callback in self._callbacks:
            getattr(callback, event)(self, *args)
