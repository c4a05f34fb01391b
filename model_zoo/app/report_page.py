"""``report.html``: the curves, figures and mistakes of a training, as one page."""

import json
import pathlib
import string

from ..util.files import atomic_write
from .plot import loss_points

__all__ = ['dev_loss', 'write_report_page']


def dev_loss(record):
    """The loss of an epoch's first dev set, or None."""
    metrics = next(iter(record['report'].values()), {})
    parts = [metrics[name] for name in ('mlm_loss', 'nsp_loss') if name in metrics]
    return metrics.get('loss', sum(parts) if parts else None)


def write_report_page(path, title, results, metric=None, next_command=None):
    """Write the page, whole or not at all.

    Parameters
    ----------
    path : str
    title : str
    results : dict
        Those of results.json; its ``examination`` may be missing.
    metric : str, optional
        By which epochs are compared; None if there is no dev set.
    next_command : str, optional
    """
    page = _template().substitute(data=_as_script(_content(title, results, metric, next_command)))
    with atomic_write(path) as file:
        file.write(page)


def _template():
    page = pathlib.Path(__file__).with_name('report_page.html')
    return string.Template(page.read_text(encoding='utf-8'))


def _as_script(value):
    """JSON within an element of HTML: no text in it can end the element."""
    text = json.dumps(value)  # in ASCII
    for character in '<>&':
        text = text.replace(character, f'\\u{ord(character):04x}')
    return text


def _content(title, results, metric, next_command):
    training, best = results['training'], results['best']
    epochs, found = training['epochs'], results.get('examination') or {}
    segment, examined = next(iter(found.items()), (None, {}))
    guessed = examined.get('baseline') or {}
    guess = f'always "{examined.get("guess")}"'
    losses = [(each['step'], dev_loss(each), each['epoch']) for each in epochs]
    tiles = []
    if metric is not None:
        score = max(each['score'] for each in epochs)
        tiles.append((score, f'best {metric}', 'good'))
    if metric in guessed:
        tiles.append((guessed[metric], f'{metric} of {guess}'))
    tiles.append((f'{best["epoch"]} of {len(epochs)}', 'best epoch' if metric else 'epoch'))
    tiles.append((training['steps'], 'updates'))
    tiles.append((_duration(training['seconds']), 'of training'))
    sets = {name: each for name, each in best.items() if isinstance(each, dict)}
    return {
        'title': title,
        'subtitle': 'Report of a training with gluon-transformer-zoo',
        'tiles': tiles,
        'metric': metric,
        'guess': guess,
        'baseline': guessed.get(metric),
        'train': loss_points(training['log']),
        'dev': [each for each in losses if each[1] is not None],
        'score': [(each['step'], each['score'], each['epoch']) for each in epochs if metric],
        'sets': [
            {'name': name, 'rows': _rows(each, guessed if name == segment else {})}
            for name, each in sets.items()
        ],
        'classes': examined.get('classes'),
        'confusion': examined.get('confusion'),
        'mistakes': examined.get('mistakes') or [],
        'next': next_command,
        'args': results['args'],
        'versions': results['versions'],
    }


def _rows(metrics, guessed):
    return [
        (name, value, guessed.get(name))
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not name.endswith('_per_second')
    ]


def _duration(seconds):
    seconds = round(seconds)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f'{hours} h {minutes} min'
    return f'{minutes} min {seconds % 60} s' if minutes else f'{seconds} s'
