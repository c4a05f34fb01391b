"""Callbacks of the training loop: progress, TensorBoard, Weights & Biases, MLflow, the profiler."""

import contextlib
import datetime
import logging
import os
import sys
import time

import mxnet as mx

from ..errors import MissingExtraError
from ..util.display import has_viewer, open_bar
from ..util.files import make_writable_dir

logger = logging.getLogger(__name__)


class Callback:
    """Base of callbacks; a subclass overrides the methods that it needs."""

    def on_start(self, loop):
        """Called before the first batch, also when training is resumed."""

    def on_step(self, loop):
        """Called after each update; must not wait for the device."""

    def on_log(self, loop, record):
        """Called at each log interval, with the newest record of ``loop.state.log``."""

    def on_epoch(self, loop, record):
        """Called after an epoch's evaluation, before its checkpoint is written."""

    def on_end(self, loop):
        """Called at the end, also after an error or an interruption."""


class ProgressLogger(Callback):
    """Shows loss, learning rate, samples per second and the time left.

    Terminals and notebooks show a bar with epoch, loss and the last score, and the log file gets
    lines. Elsewhere there are only the lines. The environment variable ``TQDM_DISABLE=1`` turns the
    bar off.

    Parameters
    ----------
    terminal : bool, optional
        Default: whether standard error is a terminal, or the process a notebook's.
    """

    def __init__(self, terminal=None):
        self._terminal = has_viewer() if terminal is None else terminal
        self._shown = {}
        self._cleanup = contextlib.ExitStack()

    def on_start(self, loop):
        state, options = loop.state, {} if self._terminal else {'disable': True}
        options.update(total=loop.num_steps, initial=state.step, unit='step', dynamic_ncols=True)
        self._bar = open_bar(**options)
        self._cleanup.callback(self._bar.close)
        if self._bar.disable:  # by TQDM_DISABLE, too
            return
        from tqdm.contrib.logging import logging_redirect_tqdm

        # other lines appear above the bar instead of in it
        self._cleanup.enter_context(logging_redirect_tqdm())
        for handler in logging.getLogger().handlers:
            if getattr(handler, 'stream', None) in (sys.stdout, sys.stderr):
                handler.addFilter(_not_progress)

    def on_step(self, loop):
        self._bar.update(1)

    def on_log(self, loop, record):
        self._show(epoch=record['epoch'], loss=f'{record["loss"]:.4f}')
        logger.info('%s', self.line(loop, record), extra={'progress': True})

    def on_epoch(self, loop, record):
        if record['report']:
            self._show(score=f'{record["score"]:.4f}')

    def _show(self, **values):
        self._shown.update(values)
        self._bar.set_postfix(self._shown)

    def line(self, loop, record):
        """Return the log line for a record."""
        unit = loop.state.unit
        losses = {name: value for name, value in record.items() if name.endswith('_loss')}
        terms = ', '.join(f'{name}={value:.4f}' for name, value in losses.items())
        return (
            f'[Epoch {record["epoch"]} Step {record["step"]}/{loop.num_steps}] '
            f'loss={record["loss"]:.4f}{terms and f" ({terms})"}, lr={record["lr"]:.7f}, '
            f'grad_norm={record["grad_norm"]:.3f}, {record[f"{unit}_per_second"]:.1f} {unit}/s, '
            f'ETA {datetime.timedelta(seconds=round(loop.seconds_left))}'
        )

    def on_end(self, loop):
        self._cleanup.close()


def _not_progress(record):
    return not getattr(record, 'progress', False)


class _FigureWriter(Callback):
    """Gives loss, learning rate, gradient norm, throughput and scores to a subclass's `_write`."""

    def on_log(self, loop, record):
        axes = ('step', 'epoch', 'seconds')
        values = {f'train/{name}': value for name, value in record.items() if name not in axes}
        self._write(record['step'], values)

    def on_epoch(self, loop, record):
        values = {'dev/score': record['score']}
        for segment, report in record['report'].items():
            values.update({f'{segment}/{name}': value for name, value in report.items()})
        self._write(record['step'], values)


class TensorBoardWriter(_FigureWriter):
    """Writes loss, learning rate, gradient norm and throughput, and the scores, for TensorBoard.

    It uses the `tensorboard` package itself, because the usual `SummaryWriter` needs PyTorch.
    MissingExtraError if that isn't installed, InputError if the folder can't be written to.
    """

    def __init__(self, folder):
        MissingExtraError.check('tensorboard', 'tensorboard')
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._writer = EventFileWriter(make_writable_dir(folder))

    def _write(self, step, values):
        values = [self._summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._writer.add_event(
            self._event(wall_time=time.time(), step=step, summary=self._summary(value=values))
        )

    def on_epoch(self, loop, record):
        super().on_epoch(loop, record)
        self._writer.flush()

    def on_end(self, loop):
        self._writer.close()


class WandbLogger(_FigureWriter):
    """Logs loss, learning rate, gradient norm, throughput and scores as a run of Weights & Biases.

    It takes the options of ``wandb.init``. Raises MissingExtraError if wandb isn't installed.
    """

    def __init__(self, **options):
        MissingExtraError.check('wandb', 'wandb')
        import wandb

        self._wandb, self._options, self._run = wandb, options, None

    def on_start(self, loop):
        self._run = self._wandb.init(**self._options)

    def _write(self, step, values):
        self._run.log(values, step=step)

    def on_end(self, loop):
        if self._run is not None:
            self._run.finish(exit_code=0 if loop.is_finished() else 1)


class MLflowLogger(_FigureWriter):
    """Logs loss, learning rate, gradient norm, throughput and scores as a run of MLflow.

    It takes the options of ``mlflow.start_run``. An active run becomes the parent. Raises
    MissingExtraError if mlflow isn't installed.
    """

    def __init__(self, **options):
        MissingExtraError.check('mlflow', 'mlflow')
        import mlflow

        self._mlflow, self._options, self._has_begun = mlflow, options, False

    def on_start(self, loop):
        nested = self._mlflow.active_run() is not None
        self._mlflow.start_run(**{'nested': nested, **self._options})
        self._has_begun = True

    def _write(self, step, values):
        self._mlflow.log_metrics(values, step=step)

    def on_end(self, loop):
        if self._has_begun:
            self._mlflow.end_run('FINISHED' if loop.is_finished() else 'FAILED')


class Profiler(Callback):
    """Runs MXNet's profiler for some updates, and logs the time of each operator.

    Parameters
    ----------
    first, last : int
        Updates to profile, counted from 1 at the program's start. The first ones also do one-time
        work, such as planning memory.
    """

    def __init__(self, path, first=10, last=13):
        make_writable_dir(os.path.dirname(os.path.abspath(path)))
        self._path, self._first, self._last = path, first, last
        self._begin, self._runs = 0, False

    def on_start(self, loop):
        self._begin = loop.state.step

    def on_step(self, loop):
        done = loop.state.step - self._begin
        if done == self._first - 1:
            mx.nd.waitall()
            mx.profiler.set_config(
                profile_symbolic=True,
                profile_imperative=True,
                aggregate_stats=True,
                filename=self._path,
            )
            mx.profiler.set_state('run')
            self._runs = True
        elif done == self._last:
            self.on_end(loop)

    def on_end(self, loop):
        if self._runs:
            mx.nd.waitall()
            mx.profiler.set_state('stop')
            logger.info('%s', mx.profiler.dumps(reset=True))
            mx.profiler.dump()
            logger.info('the events are in %s', self._path)
            self._runs = False
