"""Learning curves as a picture."""

import time

from ..util.figures import new_figure, save_figure

__all__ = ['Curves', 'plot_curves']

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


def full_intervals(log):
    """The records of full intervals; a short one at an epoch's end has a noisy mean loss."""
    steps = [0, *(record['step'] for record in log)]
    sizes = [stop - start for start, stop in zip(steps, steps[1:])]
    return [record for record, size in zip(log, sizes) if 2 * size >= max(sizes)]


def plot_curves(path, state, title='', score_name='score'):
    """Draw the loss by step, and the score by epoch, to a PNG file.

    Log intervals with fewer than half of the usual updates, at the end of an epoch, are left out.

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
    log = full_intervals(state.log)
    # a line through one point can't be seen, and one through a few hides where they are
    marker = 'o' if len(log) <= FEW_POINTS else None
    left.plot(
        [record['step'] for record in log],
        [record['loss'] for record in log],
        marker=marker,
    )
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
