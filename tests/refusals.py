"""That an error says what it is of: its field, its place, or what it names."""

import contextlib

import pytest

from model_zoo.errors import InputError

__all__ = ['refuses']


@contextlib.contextmanager
def refuses(field=None, *, line=None, says='', kind=InputError):
    """Expect an error of a kind about a field, or about a line (or row) of its place.

    What it `says` is one word or several: names and values, not the wording.
    """
    with pytest.raises(kind) as caught:
        yield
    error = caught.value
    assert field is None or error.field == field, repr(error)
    assert line is None or error.where.line == line, repr(error)
    for word in [says] if isinstance(says, str) else says:
        assert word in str(error), repr(error)
