"""What a case of bad input is."""

from collections.abc import Callable
from typing import NamedTuple

from json_files import cases

__all__ = ['BadInput', 'named', 'with_rows']


class BadInput(NamedTuple):
    """Command lines of a script that are wrong.

    ``arguments(data, folder, edit)`` is the command line of a row, [edit, message]. What `data`
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


def with_rows(script, arguments, **options):
    """The script's name and its `BadInput`, whose rows are those of ``cases/bad_input.json``."""
    return script, BadInput(script, arguments, cases('bad_input')[script], **options)
