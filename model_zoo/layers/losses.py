"""The losses of the task heads, as the originals define them, computed in float32."""

from .sequences import padding_of

__all__ = ['cross_entropy', 'mean_squared_error', 'span_cross_entropy']


def cross_entropy(F, scores, labels):
    """Return the mean cross-entropy over the labels that aren't -1; 0 where all are.

    Parameters
    ----------
    scores : (..., classes)
        Unnormalized.
    labels : (...)
        Class numbers, or -1 to leave a position out.

    Returns
    -------
    (1,)
    """
    scores, labels = F.cast(scores, 'float32'), F.cast(labels, 'float32')
    counted = labels != -1
    picked = F.pick(F.log_softmax(scores, axis=-1), labels, axis=-1)  # -1 picks the first, unused
    return -_mean(F, picked, counted)


def binary_cross_entropy(F, scores, labels):
    """Return the mean binary cross-entropy over the labels that aren't -1; 0 where all are."""
    scores, labels = F.cast(scores, 'float32'), F.cast(labels, 'float32')
    counted = labels != -1
    losses = F.relu(scores) - scores * labels + F.Activation(-F.abs(scores), act_type='softrelu')
    return _mean(F, losses, counted)


def _mean(F, values, counted):
    """Return the mean of the values where `counted` is 1; 0 where it is nowhere 1."""
    return F.sum(values * counted) / F.broadcast_maximum(F.sum(counted), F.ones((1,)))


def mean_squared_error(F, scores, labels):
    """Return the mean of squared differences."""
    scores, labels = F.cast(scores, 'float32'), F.cast(labels, 'float32')
    return F.mean(F.square(F.reshape(scores, shape=(-1,)) - F.reshape(labels, shape=(-1,))))


def span_cross_entropy(F, scores, positions, valid_length=None):
    """Return the mean cross-entropy of positions in a sequence.

    Positions outside of the sequence are left out, as are all -1. Padding gets no probability,
    so that the loss doesn't depend on how much of it there is.
    """
    scores = F.cast(scores, 'float32')
    steps = F.contrib.arange_like(scores, axis=1)  # (L,)
    if valid_length is not None:
        scores = scores - 10000 * padding_of(F, steps, valid_length)
    steps = F.expand_dims(steps, 0)  # (1, L)
    chosen = F.broadcast_equal(steps, F.expand_dims(F.cast(positions, 'float32'), 1))  # (B, L)
    return -_mean(F, F.log_softmax(scores, axis=-1), chosen)


def in_batch_negatives(F, vectors, scale=20.0, left_out=None):
    """Return the cross-entropy of each text's match among all second and third texts.

    The scores are cosines times `scale` (multiple negatives ranking, Henderson et al. 2017). Where
    `left_out`, (B, second and third texts), is 1, a text doesn't count.
    """
    vectors = _unit_vectors(F, vectors)
    first = F.slice_axis(vectors, axis=1, begin=0, end=1)
    first = F.reshape(first, shape=(0, -1))  # (B, C)
    candidates = F.slice_axis(vectors, axis=1, begin=1, end=None)
    candidates = F.reshape(F.swapaxes(candidates, 0, 1), shape=(-3, 0))  # all second, all third
    scores = scale * F.dot(first, candidates, transpose_b=True)
    if left_out is not None:
        scores = scores - 1e4 * left_out
    return cross_entropy(F, scores, F.contrib.arange_like(first, axis=0))


def cosine_error(F, vectors, labels):
    """Return the mean squared error of the cosines of pairs."""
    return mean_squared_error(F, _cosines_with_first(F, vectors), labels)


def triplet_loss(F, vectors, margin=0.5):
    """Return the mean of ``relu(cos(1, 3) - cos(1, 2) + margin)``."""
    cosines = _cosines_with_first(F, vectors)
    positive = F.slice_axis(cosines, axis=1, begin=0, end=1)
    negative = F.slice_axis(cosines, axis=1, begin=1, end=2)
    return F.mean(F.relu(negative - positive + margin))


def _unit_vectors(F, vectors):
    """Return the vectors on the last axis scaled to length 1, float32."""
    vectors = F.cast(vectors, 'float32')
    length = F.sqrt(F.sum(F.square(vectors), axis=-1, keepdims=True) + 1e-12)
    return F.broadcast_div(vectors, length)


def _cosines_with_first(F, vectors):
    """Return the cosines (batch, texts - 1) of the first text's vector with the others."""
    vectors = _unit_vectors(F, vectors)
    first = F.slice_axis(vectors, axis=1, begin=0, end=1)
    return F.sum(F.broadcast_mul(first, F.slice_axis(vectors, axis=1, begin=1, end=None)), axis=2)
