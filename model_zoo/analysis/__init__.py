"""Analysis of attention heads, and pruning.

``measure_heads`` -> ``normalize_importance`` -> ``mask_heads`` -> ``heads_to_prune`` -> the block's
``prune_heads``. They work with every :class:`model_zoo.blocks.attention_block.AttentionBlock`.

Sources: Michel, Levy, Neubig, "Are Sixteen Heads Really Better than One?" (2019), section 4.1;
``examples/bertology.py`` of pytorch-pretrained-bert after 0.6.2, which gives the same numbers with
its default batch size of 1. With larger batches it divides each sample's loss by the batch size.
"""

import contextlib
import logging
from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..errors import InputError
from ..layers.graphs import with_attributes
from ..util.display import progress

__all__ = [
    'HeadMeasures',
    'MaskingStep',
    'attention_of',
    'heads_left',
    'heads_to_prune',
    'mask_heads',
    'measure_heads',
    'normalize_importance',
]


logger = logging.getLogger(__name__)


class HeadMeasures(NamedTuple):
    """The result of `measure_heads`; NaN stands for heads that were pruned before.

    Parameters
    ----------
    entropy : numpy.ndarray, shape (layers, heads), float64
        Entropy of the attention probabilities, in nats, averaged over all tokens that attend. 0:
        the head looks at one token; the logarithm of the length: at all tokens equally.
    importance : numpy.ndarray, shape (layers, heads), float64
        How much the loss changes with the head's output, not normalized: the absolute value of the
        product of its output and the loss's gradient, averaged over all tokens.
    """

    entropy: np.ndarray
    importance: np.ndarray
    outputs: list


def measure_heads(block, forward, loader, head_mask=None, title=None):
    """Measure the entropy and importance of a block's attention heads, over a data set.

    The block predicts as in an evaluation, without dropout; its parameters' gradients aren't
    computed.

    Parameters
    ----------
    block : AttentionBlock
        It is left as it was.
    forward : callable
        ``forward(batch, head_mask) -> (loss, attentions, output)``: the sum of the samples' losses,
        the block's attentions, and anything to keep.
    loader : iterable
        Yields batches with `valid_length`, an array of shape (batch,).
    head_mask : numpy.ndarray, shape (layers, heads), optional
        1 keeps a head, 0 masks it.
    """
    config = block.config
    kept = [config.kept_heads(layer) for layer in range(config.num_layers)]
    entropy = np.full((config.num_layers, config.num_heads), np.nan)
    for layer, heads in enumerate(kept):
        entropy[layer, heads] = 0
    importance, existing = entropy.copy(), ~np.isnan(entropy)
    tokens, outputs = 0, []
    # the parameters' gradients take a third of the time
    without_gradients = with_attributes(block.collect_params().values(), grad_req='null')
    with _watched(block), without_gradients:
        for batch in progress(loader, 'batches', title):
            mask = None
            if head_mask is not None:
                mask = mx.nd.array(head_mask, ctx=batch.valid_length.context)
            with mx.autograd.record(train_mode=False):
                loss, attentions, output = forward(batch, mask)
            loss.backward()
            parts = _entropies(attentions, batch.valid_length), _importances(block)
            for layer, heads in enumerate(kept):
                for sums, part in zip((entropy, importance), parts):
                    sums[layer, heads] += part[layer].asnumpy()
            tokens += int(batch.valid_length.sum().asscalar())
            outputs.append(output)
    if not tokens:
        raise InputError('there are no batches to measure the heads on')
    if not np.isfinite(entropy[existing] + importance[existing]).all():
        raise InputError("the heads' outputs or gradients are not finite: has the model diverged?")
    return HeadMeasures(entropy / tokens, importance / tokens, outputs)


def _entropies(attentions, valid_length):
    """Return for each layer, (heads,), the sum over the tokens that attend."""
    valid = mx.nd.contrib.arange_like(attentions[0], axis=2).expand_dims(0)  # (1, L)
    valid = mx.nd.broadcast_lesser(valid, valid_length.astype('float32').expand_dims(1))  # (B, L)
    result = []
    for attention in attentions:  # (B, heads, L, L)
        logs = mx.nd.log(mx.nd.maximum(attention, np.finfo(np.float32).tiny))
        entropy = -(attention * logs).sum(axis=-1)
        result.append((entropy * valid.expand_dims(1)).sum(axis=(0, 2)))
    return result


def _importances(block):
    """Return for each layer, (heads,), the sum over the tokens; padding has no gradient."""
    pairs = zip(block.get_multihead_outputs(), block.get_multihead_gradients())
    return [(output * gradient).sum(axis=-1).abs().sum(axis=(0, 2)) for output, gradient in pairs]


@contextlib.contextmanager
def _watched(block):
    """Open a context in which the block returns attentions and keeps its heads' outputs."""
    before = block.watch_heads()
    try:
        yield
    finally:
        block.watch_heads(*before)


def attention_of(block, *inputs):
    """Return the attention probabilities for a text.

    Parameters
    ----------
    block : AttentionBlock
        A task's block, whose last output is the attentions, or a backbone. It isn't changed.
    *inputs
        Of the block, such as `words` of shape (1, length).

    Returns
    -------
    list of numpy.ndarray, shape (batch, heads, length, length)
        One array per layer, for the heads that it has. A token's row says where it looks.
    """
    with _watched(block):
        outputs = block(*inputs)
        index = block.output_names.index('attentions') if block.base is block else -1
        return [attention.asnumpy() for attention in outputs[index]]


def normalize_importance(importance, by_layer=True, overall=True):
    """Scale importances so that they can be compared with one another.

    Parameters
    ----------
    importance : numpy.ndarray, shape (layers, heads)
        As `measure_heads` returns it; NaN for heads that were pruned before.
    by_layer : bool
        Scale each layer to the Euclidean norm 1, as Molchanov et al. (2017) found best.
    overall : bool
        Then scale all values to the range from 0 to 1.
    """
    result = np.array(importance, np.float64)
    if by_layer:
        result /= np.sqrt(np.nansum(result**2, axis=1, keepdims=True)) + 1e-20
    if overall:
        low, high = np.nanmin(result), np.nanmax(result)
        result = (result - low) / (high - low) if high > low else result * 0
    return result


class MaskingStep(NamedTuple):
    """One trial of `mask_heads`."""

    heads: list[tuple[int, int]]
    left: int
    score: float
    accepted: bool


def heads_left(config):
    """Return a mask (layers, heads), float32: 1 for each existing head, 0 for pruned ones."""
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
        The first mask.
    score : float
    importance : numpy.ndarray, shape (layers, heads)
        What `measure` says of that mask.
    threshold : float
        The fraction, between 0 and 1.
    amount : float
        How many heads a step masks, as a fraction of all heads in `mask`.

    Returns
    -------
    numpy.ndarray, shape (layers, heads)
        The last mask with a score that is good enough.
    list of MaskingStep
        All trials; the last one may have failed.
    """
    if not score > 0:
        raise InputError(f'the score {score:g} must be positive: train the model first')
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
    for index in order[: int(mask.sum())].tolist():
        layer, head = divmod(index, mask.shape[1])
        if left[layer] > 1 and len(chosen) < count:
            left[layer] -= 1
            chosen.append((layer, head))
    return chosen


def heads_to_prune(mask, config):
    """Return the argument of ``block.prune_heads``, layer -> heads, for a mask (layers, heads).

    Heads that are already pruned aren't listed again, nor heads that another layer with the same
    parameters needs.
    """
    off = {}
    for layer in range(len(mask)):
        needed = mask[config.layers_like(layer)].any(axis=0)
        off[layer] = [head for head in config.kept_heads(layer) if not needed[head]]
    return {layer: heads for layer, heads in off.items() if heads}
