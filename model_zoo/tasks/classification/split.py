"""A dev set that is held out of the training file."""

import collections

import numpy as np

from ...errors import InputError

__all__ = ['split']


def split(task, examples, segment):
    """The part of a training file's examples that is a segment, by ``task.dev_split``.

    Parameters
    ----------
    task : Task
    examples : list of Example
    segment : str
        'train' or 'dev'; of others all are returned.

    Returns
    -------
    list of Example
        In the file's order.
    """
    if segment not in ('train', 'dev'):
        return examples
    groups = collections.defaultdict(list)
    for number, example in enumerate(examples):
        groups[None if task.regression else example.label].append(number)
    rng, held_out = np.random.RandomState(task.split_seed), set()
    for label in sorted(groups, key=str):
        order = rng.permutation(groups[label]).tolist()
        held_out.update(order[: int(task.dev_split * len(order) + 0.5)])
    if not 0 < len(held_out) < len(examples):
        raise InputError(
            f'`dev_split` {task.dev_split:g} of {len(examples)} examples leaves a set empty: give '
            'another share, or a dev file'
        )
    return [each for n, each in enumerate(examples) if (n in held_out) == (segment == 'dev')]
