"""What a case of bad input is."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ['BadInput', 'named', 'values']


class BadInput(NamedTuple):
    """Command lines of a script that are wrong.

    ``arguments(data, folder, edit)`` is the command line of a row, (edit, message). What `data`
    holds is that of a toy of the `contract`, or what ``write(data)`` makes.
    """

    script: str
    arguments: Callable
    rows: list
    toy: str | None = None
    write: Callable = lambda data: None


def named(argv, **names):
    """`argv` with what some of its words stand for."""
    return [part for word in argv for part in names.get(word, [word])]


def values(*flags):
    """Rows of the toy's command line with a flag that alone is wrong, which the message names."""
    return [(['TOY', *flag.split()], flag.split()[0]) for flag in flags]
