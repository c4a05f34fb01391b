"""Which layers stay in float32 when a model becomes INT8."""

import logging

__all__ = ['leave_out']

logger = logging.getLogger(__name__)


def leave_out(layers, harm, attempt, is_enough):
    """Quantize all layers but the few that cost too much.

    Layers are ordered by the harm that each does alone, measured once. Then as few of the most
    harmful ones as possible stay in float32, found by bisection.

    Parameters
    ----------
    layers : iterable of str
    harm : callable
        ``harm(layer) -> float``: how far the model's outputs move if only this layer is quantized.
    attempt : callable
        ``attempt(exclude) -> result``: the model with all other layers quantized.
    is_enough : callable
        ``is_enough(result) -> bool``: whether it is as good as wanted.

    Returns
    -------
    (result, list of str)
        The last attempt that was good enough, and the layers that it leaves in float32. With all
        layers left out, it is returned however good it is.
    """
    result = attempt([])
    layers = list(layers)
    if is_enough(result) or not layers:
        return result, []
    logger.info('measuring the harm of %d layers', len(layers))
    layers.sort(key=harm, reverse=True)
    bad, good, result = 0, 1, None
    while result is None:
        tried = attempt(layers[:good])
        if is_enough(tried) or good == len(layers):
            result = tried
        else:
            bad, good = good, min(2 * good, len(layers))
    while good - bad > 1:
        middle = (bad + good) // 2
        tried = attempt(layers[:middle])
        if is_enough(tried):
            good, result = middle, tried
        else:
            bad = middle
    return result, layers[:good]
