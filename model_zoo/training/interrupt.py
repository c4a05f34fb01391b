"""Ctrl-C and SIGTERM as a request that the training checks between two steps."""

import signal
import threading

__all__ = ['InterruptGuard', 'Interrupted', 'StopRequested']


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
