"""The last words of a training: figures, mistakes, files, and what to type next."""

import logging
import os
import shlex
import shutil
import sys

__all__ = ['log_summary', 'path_of_zoo']

logger = logging.getLogger(__name__)

MOST_CLASSES = 12  # of a confusion matrix that fits a terminal
MOST_MISTAKES = 5


def log_summary(results, folder, command, place=None):
    """Log what a reader wants to know at the end of a training.

    Parameters
    ----------
    results : dict
        Those of results.json.
    folder : str
        Of the run.
    command : str
        What uses the model.
    place : str, optional
        Where the folder's files will be, if that is elsewhere.
    """
    for segment, found in (results.get('examination') or {}).items():
        for line in _examination(segment, results['best'].get(segment, {}), found):
            logger.info('%s', line)
    names = ('report.html', 'results.json', 'curves.png', 'best_model', 'checkpoints')
    names = [*names, *(results.get('predictions') or ())]
    logger.info('written to %s:', place or folder)
    for name in names:
        if os.path.exists(os.path.join(folder, name)):
            logger.info('    %s', name)
    place = path_of_zoo()
    if place is not None:
        logger.info('zoo is not on the PATH; it is %s', place)
    logger.info('next: %s', command)


def path_of_zoo():
    """Path of the command ``zoo`` where the shell doesn't find it, or None."""
    path = os.path.join(os.path.dirname(sys.executable), 'zoo')
    if shutil.which('zoo') is not None or not os.path.isfile(path):
        return None
    return shlex.quote(path)


def _quoted(text):
    return f'"{text}"' if text else '(none)'


def _examination(segment, metrics, found):
    yield f'{segment}: {found["examples"]} examples; beside the model, always "{found["guess"]}":'
    for name, value in metrics.items():
        if name in found['baseline']:
            yield f'    {name:<12} {value:8.4f}   {found["baseline"][name]:8.4f}'
    classes = found['classes']
    if classes is not None and len(classes) <= MOST_CLASSES:
        yield 'confusion matrix (rows: labels, columns: predictions):'
        width = max(6, *(min(len(name), 14) for name in classes))
        yield '    ' + ' ' * width + ''.join(f' {name[:width]:>{width}}' for name in classes)
        for name, row in zip(classes, found['confusion']):
            cells = ''.join(f' {count:>{width}}' for count in row)
            yield f'    {name[:width]:<{width}}{cells}'
    if found['mistakes']:
        yield 'worst mistakes (report.html has more):'
    for each in found['mistakes'][:MOST_MISTAKES]:
        yield (
            f'    loss {each["loss"]:.2f}, {_quoted(each["label"])} taken for '
            f'{_quoted(each["prediction"])}: {each["text"][:100]}'
        )
