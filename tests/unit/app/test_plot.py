"""When the curves of a training are drawn, and what of its log."""

from model_zoo.app import Curves
from model_zoo.app.plot import full_intervals


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


def test_curves_leave_out_intervals_of_few_updates():
    def steps(*numbers):
        return [record['step'] for record in full_intervals([{'step': n} for n in numbers])]

    assert steps(10, 20, 23, 30, 40, 46, 50, 60) == [10, 20, 30, 40, 46, 60]
    assert steps(4, 8, 10, 14) == [4, 8, 10, 14]
    assert steps(3) == [3]
    assert steps() == []
