"""model_zoo.util.display."""

import logging
import sys
import types

import pytest

from model_zoo.util import display as module
from model_zoo.util.display import progress


@pytest.fixture
def clock(monkeypatch, caplog):
    """A clock that is moved by hand."""
    caplog.set_level(logging.INFO)
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(module.time, 'monotonic', lambda: clock.now)
    return clock


def work(clock, count, seconds, group=1):
    """Items of which each group takes so many seconds."""
    for number in range(count):
        if number % group == 0:
            clock.now += seconds
        yield number


def test_a_line_every_30_seconds(clock, caplog):
    assert list(progress(work(clock, 10, 8), 'lines', total=10)) == list(range(10))
    # the first item is there after 8 s, and the fifth 32 s later
    assert caplog.messages == ['5 of 10 lines, 0.12 lines/s', '9 of 10 lines, 0.12 lines/s']


def test_speed_of_items_that_come_in_groups(clock, caplog):
    assert len(list(progress(work(clock, 400, 20, group=100), 'lines', total=400))) == 400
    assert caplog.messages == ['201 of 400 lines, 5.00 lines/s']


def test_a_bar_on_a_terminal(clock, caplog, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: True)
    assert list(progress(work(clock, 3, 40), 'lines', 'heads', total=3)) == [0, 1, 2]
    assert 'heads' in capsys.readouterr().err
    assert not caplog.messages
