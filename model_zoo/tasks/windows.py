"""Texts that are longer than the model takes, in windows that overlap."""

from typing import NamedTuple

__all__ = ['Window', 'even_windows']


class Window(NamedTuple):
    """Part of a text that the model sees at once.

    Parameters
    ----------
    start, stop : int
        The pieces that it sees.
    first, last : int
        Those for which its outputs count, from `first` to before `last`: they have no more context
        in any other window.
    """

    start: int
    stop: int
    first: int
    last: int


def even_windows(count, room):
    """Windows of at most `room` pieces over `count` pieces.

    Neighbours overlap by half of their length or more, and the middle of what they share is where
    one takes over from the other, so that each piece counts in the window in which the nearer edge
    is farthest away ("maximum context" in BERT's run_squad.py).

    Parameters
    ----------
    count : int
    room : int

    Returns
    -------
    list of Window
        In order; `first` of each is `last` of the one before.
    """
    if count <= room:
        return [Window(0, count, 0, count)]
    step = room - room // 2
    number = -(-(count - room) // step) + 1
    starts = [place * (count - room) // (number - 1) for place in range(number)]
    turns = [(left + right + room) // 2 for left, right in zip(starts, starts[1:])]
    return [
        Window(start, start + room, first, last)
        for start, first, last in zip(starts, [0, *turns], [*turns, count])
    ]
