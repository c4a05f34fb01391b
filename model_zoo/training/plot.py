"""Learning curves as a picture."""

from ..files import atomic_write

__all__ = ['plot_curves']

FEW_POINTS = 20


def plot_curves(path, state, title='', score_name='score'):
    """Draw the loss by step, and the score by epoch, to a PNG file.

    Parameters
    ----------
    path : str
    state : TrainingState
    title : str
    score_name : str
        What the epochs' scores are.

    Raises
    ------
    InputError
        If the file can't be written.
    """
    # no pyplot, which keeps figures alive and may want a display
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(10, 4), layout='constrained')
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    # a line through one point can't be seen, and one through a few hides where they are
    marker = 'o' if len(state.log) <= FEW_POINTS else None
    left.plot(
        [record['step'] for record in state.log],
        [record['loss'] for record in state.log],
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
    with atomic_write(path, mode='wb') as file:
        figure.savefig(file, format='png', dpi=100)
