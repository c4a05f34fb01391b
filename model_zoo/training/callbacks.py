"""Callbacks of the training loop: progress, TensorBoard, the profiler."""

import contextlib
import datetime
import logging
import os
import sys
import time

import mxnet as mx

from ..errors import MissingExtraError
from ..util.display import has_viewer, is_notebook, open_bar
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

        handlers, streams = logging.getLogger().handlers, (sys.stdout, sys.stderr)
        shown = [each for each in handlers if getattr(each, 'stream', None) in streams]
        if shown or not is_notebook():  # where it would add one that writes in red
            # other lines appear above the bar instead of in it
            self._cleanup.enter_context(logging_redirect_tqdm())
        for handler in logging.getLogger().handlers:
            if getattr(handler, 'stream', None) in streams:
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


class TensorBoardWriter(Callback):
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
        summary = self._summary(value=values)
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=summary))

    def on_log(self, loop, record):
        axes = ('step', 'epoch', 'seconds')
        values = {f'train/{name}': value for name, value in record.items() if name not in axes}
        self._write(record['step'], values)

    def on_epoch(self, loop, record):
        values = {'dev/score': record['score']}
        for segment, report in record['report'].items():
            values.update({f'{segment}/{name}': value for name, value in report.items()})
        self._write(record['step'], values)
        self._writer.flush()

    def on_end(self, loop):
        self._writer.close()


class Profiler(Callback):
    """Runs MXNet's profiler for a few updates, and logs the time of each operator.

    The first nine updates since the program's start also do one-time work, such as planning memory.
    """

    def __init__(self, path, first=10, last=13):
        make_writable_dir(os.path.dirname(os.path.abspath(path)))
        self._path, self._first, self._last = path, first, last
        self._done, self._runs = 0, False

    def on_step(self, loop):
        self._done += 1
        if self._done == self._first - 1:
            mx.nd.waitall()
            kinds = {'profile_symbolic': True, 'profile_imperative': True, 'aggregate_stats': True}
            mx.profiler.set_config(filename=self._path, **kinds)
            mx.profiler.set_state('run')
            self._runs = True
        elif self._done == self._last:
            self.on_end(loop)

    def on_end(self, loop):
        if self._runs:
            mx.nd.waitall()
            mx.profiler.set_state('stop')
            logger.info('%s', mx.profiler.dumps(reset=True))
            mx.profiler.dump()
            logger.info('the events are in %s', self._path)
            self._runs = False
