"""Learning curves as a picture."""

import time

from ..util.figures import new_figure, save_figure

__all__ = ['Curves', 'loss_points', 'plot_curves']

FEW_POINTS = 20
#: while a training runs: a picture takes half a second
SECONDS_BETWEEN_PICTURES = 30


class Curves:
    """The picture of a training that goes on.

    Parameters
    ----------
    draw : callable
        ``draw(state)`` writes it.
    """

    def __init__(self, draw):
        self._draw = draw
        self._drawn = time.monotonic()

    def update(self, state):
        """Draw it anew unless that was done a short time ago, or the training has just begun."""
        if time.monotonic() - self._drawn >= SECONDS_BETWEEN_PICTURES:
            self.finish(state)

    def finish(self, state):
        """Draw it."""
        self._draw(state)
        self._drawn = time.monotonic()


def loss_points(log):
    """The mean training loss over full log intervals.

    A short interval, as at the end of an epoch, has a noisy mean: it is joined to the one before
    it, weighted by their numbers of updates.

    Parameters
    ----------
    log : list of dict
        See `TrainingState`.

    Returns
    -------
    list of (int, float)
        Steps and losses.
    """
    steps = [0, *(record['step'] for record in log)]
    sizes = [stop - start for start, stop in zip(steps, steps[1:])]
    full, points = max(sizes, default=0), []  # of (step, loss, updates)
    for record, size in zip(log, sizes):
        step, loss = record['step'], record['loss']
        if points and size < full:
            _, before, count = points.pop()
            size, loss = size + count, (size * loss + count * before) / (size + count)
        points.append((step, loss, size))
    return [(step, loss) for step, loss, _ in points]


def plot_curves(path, state, title='', score_name='score'):
    """Draw the loss by step, and the score by epoch, to a PNG file.

    See `loss_points`.

    Parameters
    ----------
    path : str
    state : TrainingState
    title : str
    score_name : str
        What the epochs' scores are.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(10, 4, layout=None)  # to find one takes as long as to draw
    left, right = figure.subplots(1, 2)
    points = loss_points(state.log)
    # a line through one point can't be seen, and one through a few hides where they are
    marker = 'o' if len(points) <= FEW_POINTS else None
    left.plot(*zip(*points), marker=marker)
    left.set(xlabel='step', ylabel='training loss')
    right.plot(
        [record['epoch'] for record in state.epochs],
        [record['score'] for record in state.epochs],
        marker='o',
    )
    right.set(xlabel='epoch', ylabel=score_name)
    right.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    save_figure(path, figure)
