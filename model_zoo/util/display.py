"""Views of long work: its progress, and figures as PNG files, without a display."""

import logging
import sys
import time
import warnings

from .files import atomic_write


def in_number(count, units):
    """Return a count with its unit, which is given in the plural: '1 update', '2 updates'."""
    return f'{count} {units.removesuffix("s") if count == 1 else units}'


def short(value, decimals=4):
    """Return a value for people: a count whole, other numbers with so many decimals below 10."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f'{value:,}'
    size = abs(value)
    if size and not 1e-3 <= size < 1e6:
        return f'{value:.2e}'
    return f'{value:.{max(0, decimals - (3 if size >= 100 else 2 if size >= 10 else 0))}f}'


def has_viewer():
    """Return whether a bar can be seen: on a terminal, or in a notebook."""
    return sys.stderr.isatty() or is_notebook()


def is_notebook():
    """Return whether the process is a notebook's."""
    shell = getattr(sys.modules.get('IPython'), 'get_ipython', lambda: None)()
    return hasattr(shell, 'kernel')


def open_bar(*args, **options):
    """Return a bar of tqdm, with ipywidgets in a notebook that has them."""
    if is_notebook():  # which shows standard error in red
        options['file'] = sys.stdout
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'IProgress not found')
        from tqdm.auto import tqdm

    return tqdm(*args, **options)


def new_figure(width, height, layout='constrained'):
    """Return an empty figure."""
    # no pyplot, which keeps figures alive and may want a display
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(path, figure):
    """Write a figure to a PNG file, whole or not at all; margins are cut off, titles aren't."""
    with atomic_write(path, mode='wb') as file:
        figure.savefig(file, format='png', dpi=100, bbox_inches='tight')


logger = logging.getLogger(__name__)

INTERVAL = 30.0  # seconds between two lines of the log


def progress(items, unit, title=None, total=None, leave=False):
    """Yield `items`: with a bar if a person watches, else with a line in the log every 30 seconds.

    `unit` is their name in the plural, `total` their number, if they don't know it; with `leave`
    the bar stays at the end.
    """
    if total is None and hasattr(items, '__len__'):
        total = len(items)
    if has_viewer():
        return open_bar(items, title, total, leave=leave, unit=f' {unit}')
    return _logged(items, unit, title, total)


def _logged(items, unit, title, total):
    before = '' if title is None else f'{title}: '
    whole = '' if total is None else f' of {total}'
    logged, time_logged = None, 0.0
    for done, item in enumerate(items, 1):
        now = time.monotonic()
        if logged is None or now - time_logged >= INTERVAL:
            if logged is not None:
                speed = (done - logged) / (now - time_logged)
                logger.info('%s%d%s %s, %.2f %s/s', before, done, whole, unit, speed, unit)
            # of items that come in groups, the first one's time is the group's
            logged, time_logged = done, now
        yield item
