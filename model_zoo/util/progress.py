"""The progress of a long loop."""

import logging
import sys
import time

from tqdm import tqdm

__all__ = ['progress']

logger = logging.getLogger(__name__)

INTERVAL = 30.0  # seconds between two lines of the log


def progress(items, unit, title=None, total=None, leave=False):
    """Yield `items`: with a bar on a terminal, else with a line in the log every 30 seconds.

    Parameters
    ----------
    items : iterable
    unit : str
        The name of the items, in the plural.
    title : str, optional
        Shown first.
    total : int, optional
        The number of items, if the iterable doesn't know its length.
    leave : bool
        Whether the bar stays visible at the end.
    """
    if total is None and hasattr(items, '__len__'):
        total = len(items)
    if sys.stderr.isatty():
        return tqdm(items, title, total, leave=leave, unit=f' {unit}')
    return _logged(items, unit, title, total)


def _logged(items, unit, title, total):
    before = '' if title is None else f'{title}: '
    whole = '' if total is None else f' of {total}'
    told = time_told = None
    for count, item in enumerate(items, 1):
        now = time.monotonic()
        if told is None:  # of items that come in groups, the first one's time is the group's
            told, time_told = count, now
        elif now - time_told >= INTERVAL:
            speed = (count - told) / (now - time_told)
            logger.info('%s%d%s %s, %.2f %s/s', before, count, whole, unit, speed, unit)
            told, time_told = count, now
        yield item
