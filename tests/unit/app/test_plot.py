"""When the curves of a training are drawn, and what of its log."""

import pytest

from model_zoo.app.report import Curves, loss_points


def test_curves_are_drawn_at_times_and_at_the_end(monkeypatch):
    now, drawn = [100.0], []
    monkeypatch.setattr('time.monotonic', lambda: now[0])
    curves = Curves(drawn.append)
    for seconds, state in ((1, 'a'), (29, 'b'), (29, 'c'), (1, 'd')):
        now[0] += seconds
        curves.update(state)
    assert drawn == ['b', 'd']
    curves.finish('e')
    assert drawn == ['b', 'd', 'e']


def test_short_intervals_of_a_curve_are_weighted_by_their_updates():
    def points(*pairs):
        return loss_points([{'step': step, 'loss': loss} for step, loss in pairs])

    assert points((10, 4.0), (20, 3.0), (25, 6.0), (35, 2.0)) == [(10, 4.0), (25, 4.0), (35, 2.0)]
    assert points((10, 1.0), (12, 2.5), (15, 4.0)) == [(15, pytest.approx(1.8))]
    assert points((4, 1.0), (8, 2.0), (12, 3.0)) == [(4, 1.0), (8, 2.0), (12, 3.0)]
    assert points((2, 1.0), (7, 2.0)) == [(2, 1.0), (7, 2.0)]
    several = points((6, 6.0), (10, 3.0), (12, 6.0), (18, 2.0), (20, 2.0), (24, 1.0))
    assert several == [(6, 6.0), (12, 4.0), (18, 2.0), (24, pytest.approx(4 / 3))]
    assert points() == []
