"""Errors of requests, and their HTTP status."""

import asyncio
import concurrent.futures
import importlib.util

from ...errors import InputError, MissingExtraError, UnknownNameError, ZooError
from ..pipeline import TooLargeError

__all__ = [
    'ClosedError',
    'FailedError',
    'NoSuchModelError',
    'OverloadedError',
    'TooLargeError',
    'check_extra',
    'status_of',
]


class NoSuchModelError(UnknownNameError):
    """A request for a model that isn't served."""


class OverloadedError(ZooError):
    """A model's queue is full."""

    def __init__(self, message, retry_after):
        super().__init__(message)
        self.retry_after = retry_after


class FailedError(ZooError):
    """A worker has failed, and has logged why."""


class ClosedError(ZooError):
    """A worker takes no more requests: the server stops, or the model is replaced."""


#: errors and their status; the first that fits counts
STATUSES = (
    (NoSuchModelError, 404),
    (TooLargeError, 413),
    ((InputError, UnknownNameError), 400),
    (OverloadedError, 429),
    (ClosedError, 503),
    ((TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError), 504),
)


def check_extra(*libraries, extra='serve'):
    """Raise MissingExtraError unless these libraries of an extra are installed."""
    for each in libraries:
        if importlib.util.find_spec(each) is None:
            raise MissingExtraError.of(each, extra)


def status_of(error):
    """The HTTP status of an error; 500 for one that nobody expects."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
