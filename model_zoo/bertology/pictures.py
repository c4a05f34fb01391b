"""Heat maps of attention heads, as PNG files."""

import math
import warnings

import numpy as np

from ..pictures import new_figure, save_figure

__all__ = ['plot_attention', 'plot_heads']

MOST_NUMBERS = 16  # heads of a layer, up to which their values are written into the cells
LARGEST = 15  # inches of a panel; so many tokens can't be read anyhow


def _save(figure, path):
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', message='Glyph')  # of scripts that the font lacks
        save_figure(path, figure)


def plot_heads(path, values, title='', label=''):
    """Draw a value of each head, such as its importance.

    Parameters
    ----------
    path : str
    values : numpy.ndarray, shape (layers, heads)
        NaN, for a head that isn't there, leaves a hole.
    title : str
    label : str
        What the values are.

    Raises
    ------
    InputError
        If the file can't be written.
    """
    layers, heads = values.shape
    figure = new_figure(2 + 0.55 * heads, 1.5 + 0.45 * layers)
    axes = figure.subplots()
    image = axes.imshow(np.ma.masked_invalid(values), cmap='viridis', aspect='auto')
    figure.colorbar(image, ax=axes, label=label)
    axes.set(xlabel='head', ylabel='layer', title=title)
    axes.set_xticks(range(heads))
    axes.set_yticks(range(layers))
    if heads <= MOST_NUMBERS:
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        for (layer, head), value in np.ndenumerate(values):
            if not np.isnan(value):
                color = 'black' if value > middle else 'white'
                axes.text(head, layer, f'{value:.2f}', ha='center', va='center', color=color,
                          fontsize=7)  # fmt: skip
    _save(figure, path)


def plot_attention(path, attentions, tokens, titles, title=''):
    """Draw where each token of a text looks, a panel for each head.

    Parameters
    ----------
    path : str
    attentions : numpy.ndarray, shape (panels, length, length)
        Probabilities; a row for each token that looks.
    tokens : list of str, length of them
    titles : list of str
        Of the panels.
    title : str

    Raises
    ------
    InputError
        If the file can't be written.
    """
    columns = math.ceil(math.sqrt(len(attentions)))
    rows = math.ceil(len(attentions) / columns)
    side = min(1.2 + 0.16 * len(tokens), LARGEST)
    figure = new_figure(columns * side, rows * side + 0.6)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    names = [token.replace('$', r'\$') for token in tokens]  # which would begin a formula
    for axes, attention, name in zip(panels, attentions, titles):
        image = axes.imshow(attention, cmap='viridis', vmin=0, vmax=1)
        axes.set_title(name, fontsize=8)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
        axes.set_yticks(range(len(names)), names, fontsize=6)
    for axes in panels[len(attentions) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=panels.tolist(), label='probability', shrink=0.6)
    figure.suptitle(title.replace('$', r'\$'))
    _save(figure, path)
