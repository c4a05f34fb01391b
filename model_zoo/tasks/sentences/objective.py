"""What encoders of sentences learn."""

import mxnet as mx

from ...errors import UnknownNameError
from ...layers.losses import cosine_error, in_batch_negatives, triplet_loss

__all__ = ['LOSSES', 'make_loss']

#: loss -> the kinds of examples that it can learn from
LOSSES = {'in_batch': ('pairs', 'triplets'), 'cosine': ('scored',), 'triplet': ('triplets',)}


def make_loss(name, scale=20.0, margin=0.5):
    """A loss of vectors.

    Parameters
    ----------
    name : str
        One of `LOSSES`: `in_batch_negatives`, `cosine_error` or `triplet_loss` of
        `model_zoo.layers.losses`.
    scale : float
        Of the cosines, for 'in_batch'.
    margin : float
        Between the cosines, for 'triplet'.

    Returns
    -------
    callable
        ``loss(vectors, labels) -> NDArray`` of shape (1,), from vectors of shape (batch, texts,
        units) and labels of shape (batch,), which only 'cosine' looks at.
    """
    if name not in LOSSES:
        raise UnknownNameError.of('loss', name, LOSSES)
    if name == 'in_batch':
        return lambda vectors, labels: in_batch_negatives(mx.nd, vectors, scale)
    if name == 'cosine':
        return lambda vectors, labels: cosine_error(mx.nd, vectors, labels)
    return lambda vectors, labels: triplet_loss(mx.nd, vectors, margin)
