"""Texts that are longer than the model takes, in windows that overlap."""

import itertools
from typing import NamedTuple

import numpy as np

__all__ = ['NO_WINDOW', 'Window']

#: score of no answer for a question without a window
NO_WINDOW = 1000000.0


class Window(NamedTuple):
    """Part of a text that the model sees at once.

    Parameters
    ----------
    first, last : int
        The pieces whose outputs count, from `first` to before `last`: they have no more context in
        any other window.
    """

    start: int
    stop: int
    first: int
    last: int


def text_windows(count, room, step=None):
    """Return the windows of at most `room` pieces over `count` pieces.

    With a `step`, they begin at its multiples, and all of their pieces count. Without it they
    overlap by half of their length or more, and each piece counts in one of them.
    """
    if count <= room:
        return [Window(0, count, 0, count)]
    if step is not None:
        step = min(step, room)  # no gaps
        spans = [(n, min(n + room, count)) for n in range(0, count - room + step, step)]
        return [Window(*span, *span) for span in spans]
    # The middle of what neighbours share is where one takes over from the other, so that each piece
    # counts in the window in which the nearer edge is farthest away ("maximum context" in BERT's
    # run_squad.py).
    step = room - room // 2
    number = -(-(count - room) // step) + 1
    starts = [n * (count - room) // (number - 1) for n in range(number)]
    turns = [(left + right + room) // 2 for left, right in itertools.pairwise(starts)]
    parts = zip(starts, [0, *turns], [*turns, count])
    return [Window(start, start + room, first, last) for start, first, last in parts]


def best_windows(windows, size):
    """Return the number of the window in which each piece of a text has the most context."""
    # That is the window with the largest minimum of the pieces before and after it; of equal ones
    # the longer, then the first.
    starts, lengths = np.array(windows, dtype=np.int64).reshape(-1, 2, 1).swapaxes(0, 1)
    before = np.arange(size) - starts  # (windows, size)
    context = np.minimum(before, lengths - 1 - before)
    return np.where(context < 0, -np.inf, context + 0.01 * lengths).argmax(axis=0)


def spans_within(starts, ends, longest):
    """First and last pieces of the spans with these starts and ends, up to `longest` pieces."""
    lengths = ends - starts[:, None] + 1
    first, last = np.nonzero((lengths >= 1) & (lengths <= longest))
    return starts[first], ends[last]
