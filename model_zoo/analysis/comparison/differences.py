"""How far two programs' outputs are from one another."""

import numpy as np

from ...errors import InputError
from ...util.figures import new_figure, save_figure

__all__ = ['differences_of', 'plot_differences']

PREDICTIONS = ('masked words', 'next sentence', 'next word')


def differences_of(ours, theirs, mask):
    """Compare the outputs that both programs have.

    Parameters
    ----------
    ours, theirs : dict of str to numpy.ndarray
    mask : numpy.ndarray, shape (batch, length), bool
        Which tokens count in outputs that begin with these axes.

    Returns
    -------
    list of dict
        For each output ``name``, the largest difference ``max``, the standard deviations of the
        differences ``std`` and of the values ``std_of_values``, and for predictions in how many of
        ``of`` places they are the ``same``.
    """
    rows = []
    for name in ours:
        if name not in theirs:
            continue
        one, two = ours[name].astype('float64'), theirs[name].astype('float64')
        if one.shape != two.shape:
            raise InputError(f'{name}: our shape is {one.shape}, and theirs is {two.shape}')
        if one.shape[:2] == mask.shape:
            one, two = one[mask], two[mask]
        difference = one - two
        row = {
            'name': name,
            'max': float(np.abs(difference).max()),
            'std': float(difference.std()),
            'std_of_values': float(two.std()),
        }
        if name in PREDICTIONS:
            row['same'] = int((one.argmax(-1) == two.argmax(-1)).sum())
            row['of'] = int(one[..., 0].size)
        rows.append(row)
    return rows


def plot_differences(path, rows, title):
    """Draw the largest difference and the standard deviation of each output.

    Parameters
    ----------
    path : str
        A PNG file.
    rows : list of dict
        Of `differences_of`.
    title : str
    """
    figure = new_figure(9, 4.5)
    axes = figure.subplots()
    places = range(len(rows))
    for kind, label in (('max', 'largest'), ('std', 'standard deviation')):
        # a logarithmic axis has no place for 0
        values = [max(row[kind], 1e-12) for row in rows]
        axes.plot(places, values, marker='o', label=label)
    axes.set_yscale('log')
    axes.set_xticks(list(places), [row['name'] for row in rows], rotation=60, ha='right')
    axes.set(ylabel='difference', title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(path, figure)
