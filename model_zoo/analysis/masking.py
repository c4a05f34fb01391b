"""Turning attention heads off, the least important ones first, while the model is good enough.

Sources: see `heads`. Two things differ: each layer keeps one head, because a layer without heads
couldn't be pruned; and masking also ends when all other heads are masked.
"""

import logging
from typing import List, NamedTuple, Tuple

import numpy as np

from ..errors import InputError

__all__ = ['MaskingStep', 'heads_left', 'heads_to_prune', 'mask_heads']

logger = logging.getLogger(__name__)


class MaskingStep(NamedTuple):
    """One trial of `mask_heads`.

    Parameters
    ----------
    heads : list of (int, int)
        Layer and number of the heads that it masked, in addition to those before.
    left : int
        How many heads are left.
    score : float
    accepted : bool
        Whether the score was good enough.
    """

    heads: List[Tuple[int, int]]
    left: int
    score: float
    accepted: bool


def heads_left(config):
    """A mask with 1 for each existing head, 0 for those that were pruned before.

    Parameters
    ----------
    config : AttentionConfig

    Returns
    -------
    numpy.ndarray, shape (layers, heads), float32
    """
    mask = np.zeros((config.num_layers, config.num_heads), np.float32)
    for layer, row in enumerate(mask):
        row[config.kept_heads(layer)] = 1
    return mask


def mask_heads(measure, mask, score, importance, threshold=0.9, amount=0.1):
    """Mask heads until the score falls below a fraction of its first value.

    Parameters
    ----------
    measure : callable
        ``measure(mask) -> (score, importance)`` of the model with a mask; a higher score is better.
    mask : numpy.ndarray, shape (layers, heads)
        To begin with.
    score : float
    importance : numpy.ndarray, shape (layers, heads)
        What `measure` says of that mask.
    threshold : float
        The fraction, from 0 to 1.
    amount : float
        How many heads a step masks, as a fraction of all heads in `mask`.

    Returns
    -------
    numpy.ndarray, shape (layers, heads)
        The last mask with a score that is good enough.
    list of MaskingStep
        All trials; the last one may have failed.
    """
    for name, value in (('threshold', threshold), ('amount', amount)):
        if not 0 < value < 1:
            raise InputError(f'{name} {value}: give a number between 0 and 1')
    if not score > 0:
        raise InputError(
            f'the score is {score:g}, and a share of that means nothing: train the model for the '
            'task first, or choose another metric'
        )
    count = max(1, int(mask.sum() * amount))
    least, steps = threshold * score, []
    while True:
        heads = _least_important(mask, importance, count)
        if not heads:
            return mask, steps
        trial = mask.copy()
        trial[tuple(zip(*heads))] = 0
        score, importance = measure(trial)
        steps.append(MaskingStep(heads, int(trial.sum()), float(score), bool(score >= least)))
        logger.info('%d heads left: score %.4f (threshold %.4f)', trial.sum(), score, least)
        if not steps[-1].accepted:
            return mask, steps
        mask = trial


def _least_important(mask, importance, count):
    """Layers and numbers of the `count` least important heads; each layer keeps one."""
    order = np.argsort(np.where(mask > 0, importance, np.inf), axis=None, kind='stable')
    left, chosen = mask.sum(axis=1), []
    for place in order[: int(mask.sum())].tolist():
        layer, head = divmod(place, mask.shape[1])
        if left[layer] > 1 and len(chosen) < count:
            left[layer] -= 1
            chosen.append((layer, head))
    return chosen


def heads_to_prune(mask, config):
    """The argument of ``block.prune_heads`` that removes the heads that a mask turns off.

    Parameters
    ----------
    mask : numpy.ndarray, shape (layers, heads)
    config : AttentionConfig

    Returns
    -------
    dict of int to list of int
        Layer -> heads; pruned heads aren't listed again.
    """
    off = {
        layer: [head for head in config.kept_heads(layer) if row[head] == 0]
        for layer, row in enumerate(mask)
    }
    return {layer: heads for layer, heads in off.items() if heads}
