"""Outputs of a model for all samples of a loader, in the order of the samples."""

import numpy as np

__all__ = ['predict']


def predict(forward, loader, guard=None):
    """Run `forward` over the batches of a loader.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, ...), the same for all but the first axis.
    loader : model_zoo.batches.SampleLoader
        Its batches' `indices` say where the rows belong.
    guard : InterruptGuard, optional
        Asked before each batch.

    Returns
    -------
    numpy.ndarray, shape (num_samples, ...)
    """
    result, previous = None, None
    for batch in loader:
        if guard is not None:
            guard.check()
        # the device works on this batch while the last one's outputs are copied
        current = batch.indices, forward(batch)
        result = _store(result, previous, loader.num_samples)
        previous = current
    return _store(result, previous, loader.num_samples)


def _store(result, part, num_samples):
    if part is None:
        return result
    indices, rows = part[0], part[1].asnumpy()
    if result is None:
        result = np.zeros((num_samples, *rows.shape[1:]), rows.dtype)
    result[indices] = rows
    return result
