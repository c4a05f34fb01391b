"""Learning curves as a picture."""

from ..pictures import new_figure, save_figure

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
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(10, 4)
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
    save_figure(path, figure)
