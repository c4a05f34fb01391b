"""Heat maps of attention heads, as PNG files."""

import math
import textwrap

import numpy as np

from ..util.display import new_figure, save_figure

MOST_NUMBERS = 16  # heads of a layer, up to which their values are written into the cells
LARGEST = 15  # inches of a panel; more tokens couldn't be read anyhow
LEAST_TITLE = 30  # characters of a line of the title, however narrow the panels are
TITLE_WIDTH = 0.09  # inches of a character
# Fonts for Chinese, Japanese and Korean, which matplotlib's own font lacks
MORE_FONTS = (
    'Noto Sans CJK SC',
    'Noto Sans CJK JP',
    'WenQuanYi Zen Hei',
    'NanumGothic',
    'PingFang SC',
    'Arial Unicode MS',
    'Microsoft YaHei',
    'Malgun Gothic',
)


def font_families():
    """Return names of the installed fonts, in order of preference."""
    from matplotlib import font_manager, rcParams

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [*rcParams['font.family'], *(name for name in MORE_FONTS if name in installed)]


def plot_heads(path, values, title='', label=''):
    """Draw a value of each head, such as its importance.

    Parameters
    ----------
    path : str
    values : numpy.ndarray, shape (layers, heads)
        NaN, for a missing head, leaves a hole.
    title : str
    label : str
        What the values are.
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
                axes.text(
                    head, layer, f'{value:.2f}', ha='center', va='center', color=color, fontsize=7
                )
    save_figure(path, figure)


def plot_attention(path, attentions, tokens, titles, title=''):
    """Draw where each token of a text looks, a panel for each head.

    Parameters
    ----------
    path : str
    attentions : numpy.ndarray, shape (panels, length, length)
        Probabilities; a row for each token that looks.
    tokens : list of str, length of them
    titles : list of str
        Titles of the panels.
    title : str
    """
    columns = math.ceil(math.sqrt(len(attentions)))
    rows = math.ceil(len(attentions) / columns)
    side = min(1.2 + 0.16 * len(tokens), LARGEST)
    figure = new_figure(columns * side, rows * side + 0.6, 'compressed')
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    names = [token.replace('$', r'\$') for token in tokens]  # a dollar would begin a formula
    points = min(8, 72 * (side - 1.2) / len(tokens))  # size of a line
    fonts = font_families()
    for axes, attention, name in zip(panels, attentions, titles):
        image = axes.imshow(attention, cmap='viridis', vmin=0, vmax=1)
        axes.set_title(name, fontsize=8)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=points, fontfamily=fonts)
        axes.set_yticks(range(len(names)), names, fontsize=points, fontfamily=fonts)
    for axes in panels[len(attentions) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=panels.tolist(), label='probability', shrink=0.6)
    lines = textwrap.wrap(title, max(int(columns * side / TITLE_WIDTH), LEAST_TITLE))
    figure.suptitle('\n'.join(lines).replace('$', r'\$'))
    save_figure(path, figure)
