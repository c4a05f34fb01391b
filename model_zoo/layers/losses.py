"""The losses of the task heads, as the originals define them, computed in float32."""

from .sequences import is_mask, padding_of

__all__ = [
    'binary_cross_entropy',
    'cross_entropy',
    'mean_squared_error',
    'span_cross_entropy',
    'without_padding',
]


def cross_entropy(F, scores, labels):
    """Mean cross-entropy over the labels that aren't -1; 0 where all are.

    Parameters
    ----------
    F : module
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
    total = F.sum(picked * counted)
    return -total / F.broadcast_maximum(F.sum(counted), F.ones((1,)))


def binary_cross_entropy(F, scores, labels):
    """Mean binary cross-entropy over the labels that aren't -1; 0 where all are.

    Parameters
    ----------
    F : module
    scores : (...)
        Unnormalized, for the label 1.
    labels : (...)
        0, 1, or -1 to leave a position out.

    Returns
    -------
    (1,)
    """
    scores, labels = F.cast(scores, 'float32'), F.cast(labels, 'float32')
    counted = labels != -1
    losses = F.relu(scores) - scores * labels + F.Activation(-F.abs(scores), act_type='softrelu')
    return F.sum(losses * counted) / F.broadcast_maximum(F.sum(counted), F.ones((1,)))


def mean_squared_error(F, scores, labels):
    """Mean of squared differences.

    Parameters
    ----------
    scores : (batch, 1)
    labels : (batch,) or (batch, 1)

    Returns
    -------
    (1,)
    """
    scores, labels = F.cast(scores, 'float32'), F.cast(labels, 'float32')
    difference = F.reshape(scores, shape=(-1,)) - F.reshape(labels, shape=(-1,))
    return F.mean(F.square(difference))


def span_cross_entropy(F, scores, positions, valid_length=None):
    """Mean cross-entropy of positions in a sequence.

    Positions outside of the sequence are left out, as are all -1. Padding gets no probability,
    so that the loss doesn't depend on how much of it there is.

    Parameters
    ----------
    scores : (batch, length)
        Unnormalized.
    positions : (batch,)
    valid_length : (batch,), or list of an attention mask, optional

    Returns
    -------
    (1,)
    """
    scores = F.cast(scores, 'float32')
    steps = F.contrib.arange_like(scores, axis=1)  # (L,)
    if valid_length is not None:
        scores = scores - 10000 * padding_of(F, steps, valid_length)
    steps = F.expand_dims(steps, 0)  # (1, L)
    chosen = F.broadcast_equal(steps, F.expand_dims(F.cast(positions, 'float32'), 1))  # (B, L)
    total = F.sum(F.log_softmax(scores, axis=-1) * chosen)
    return -total / F.broadcast_maximum(F.sum(chosen), F.ones((1,)))


def without_padding(F, labels, valid_length):
    """The labels of sequences, -1 behind their valid length.

    Parameters
    ----------
    F : module
    labels : (batch, length)
    valid_length : (batch,), list of an attention mask (batch, length), or None

    Returns
    -------
    (batch, length), float32
    """
    labels = F.cast(labels, 'float32')
    if valid_length is None:
        return labels
    if is_mask(valid_length):
        return F.where(F.cast(valid_length[0], 'float32'), labels, -F.ones_like(labels))
    return F.SequenceMask(
        labels,
        sequence_length=F.cast(valid_length, 'float32'),
        use_sequence_length=True,
        value=-1,
        axis=1,
    )
