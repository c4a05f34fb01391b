"""A profile of updates."""

import logging
import os

import mxnet as mx

from ..util.files import make_writable_dir
from .callbacks import Callback

__all__ = ['Profiler']

logger = logging.getLogger(__name__)


class Profiler(Callback):
    """Runs MXNet's profiler for some updates, and logs the time of each operator.

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
        self._running = False

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
            self._running = True
        elif done == self._last:
            self._finish()

    def on_end(self, loop):
        if self._running:
            self._finish()
        elif loop.state.step - self._begin < self._first:
            logger.warning(
                'nothing was profiled: that begins at update %d of a run', self._first
            )

    def _finish(self):
        self._running = False
        mx.nd.waitall()
        mx.profiler.set_state('stop')
        logger.info('%s', mx.profiler.dumps(reset=True))
        mx.profiler.dump()
        logger.info('the events are in %s', self._path)
