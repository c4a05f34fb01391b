"""A profile of updates."""

import logging
import os
import time

import mxnet as mx

from ..util.files import make_writable_dir
from .callbacks import Callback

__all__ = ['Profiler']

logger = logging.getLogger(__name__)


class Profiler(Callback):
    """Runs MXNet's profiler for some updates, and logs the time of each operator.

    The log also tells the share of these updates' time in which the loop has waited for data.

    Parameters
    ----------
    path : str
        Receives the events, for Chrome's ``chrome://tracing``.
    first, last : int
        Updates to profile, counted from 1 at the program's start. The first ones also do one-time
        work, such as planning memory.
    """

    def __init__(self, path, first=10, last=13):
        make_writable_dir(os.path.dirname(os.path.abspath(path)))
        self._path, self._first, self._last = path, first, last
        self._begin = 0
        self._running, self._started, self._waited = False, 0.0, 0.0

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
            self._started, self._waited = time.perf_counter(), loop.data_seconds
            mx.profiler.set_state('run')
            self._running = True
        elif done == self._last:
            self._finish(loop)

    def on_end(self, loop):
        if self._running:
            self._finish(loop)
        elif loop.state.step - self._begin < self._first:
            logger.warning(
                'nothing was profiled: that begins at update %d of a run', self._first
            )

    def _finish(self, loop):
        self._running = False
        mx.nd.waitall()
        seconds = time.perf_counter() - self._started
        waited = loop.data_seconds - self._waited
        mx.profiler.set_state('stop')
        logger.info('%s', mx.profiler.dumps(reset=True))
        logger.info(
            'wait for data: %.4f s of %.3f s, %.2f%%', waited, seconds, 100 * waited / seconds
        )
        mx.profiler.dump()
        logger.info('the events are in %s', self._path)
