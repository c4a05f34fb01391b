"""Figures of matplotlib that need no display, as PNG files."""

import io

from .files import atomic_write

__all__ = ['new_figure', 'save_figure']


def new_figure(width, height, layout='constrained'):
    """An empty figure.

    Parameters
    ----------
    width, height : float
        In inches.
    layout : str, optional
        ``'compressed'`` for panels whose height follows from their width, ``'constrained'`` for
        others; None for matplotlib's fixed margins.

    Returns
    -------
    matplotlib.figure.Figure
    """
    # no pyplot, which keeps figures alive and may want a display
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(path, figure):
    """Write a figure to a PNG file, whole or not at all; margins are cut off, titles aren't."""
    with atomic_write(path, mode='wb') as file:
        file.write(_png_of(figure))


def _png_of(figure):
    content = io.BytesIO()
    figure.savefig(content, format='png', dpi=100, bbox_inches='tight')
    return content.getvalue()
