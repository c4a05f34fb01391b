"""Arrays of sequences: their positions, and from the layers' order of axes to the user's."""

__all__ = ['Mask', 'batch_major', 'without_nan']


class Mask(list):
    """An attention mask, (batch, length), instead of a valid length.

    It is 1 at tokens that are attended to. It is a list, so that a block has different graphs for
    masks and for lengths; within a graph Gluon turns it into a plain list.
    """


def positions_of(F, x, axis=0):
    """Return 0, 1, 2, ... along an axis (0 or 1) in float32, as float16 ends at 2048."""
    begin, end = [0, 0, 0], [1, 1, 1]
    begin[axis] = end[axis] = None
    return F.contrib.arange_like(F.cast(F.slice(x, begin=begin, end=end), 'float32'), axis=axis)


def is_mask(valid):
    """Return whether padding is given by a `Mask` (in a graph a plain list) instead of a length."""
    return isinstance(valid, (list, tuple))


def without_nan(F, x):
    """`x` in float32, with 0 for NaN."""
    x = F.cast(x, 'float32')
    return F.where(F.broadcast_equal(x, x), x, F.zeros_like(x))


def bounded(F, valid, words):
    """Return a valid length or attention mask in float32, clipped to its bounds."""
    # A block refuses other values, but a caller of an exported graph may pass any, and MXNet's
    # `SequenceMask` writes where a negative length points to.
    if valid is None:
        return None
    if is_mask(valid):
        return Mask([F.clip(without_nan(F, valid[0]), 0, 1)])
    length = F.sum(F.ones_like(F.cast(words, 'float32')), axis=-1)
    return F.broadcast_minimum(F.maximum(without_nan(F, valid), 0), length)


def padding_of(F, positions, valid):
    """Return 1 at padding, 0 elsewhere."""
    if is_mask(valid):
        return 1 - F.clip(F.cast(valid[0], 'float32'), 0, 1)
    valid_length = F.expand_dims(valid, 1)  # (B, 1)
    return F.broadcast_greater_equal(F.expand_dims(positions, 0), F.cast(valid_length, 'float32'))


def batch_major(F, x, valid_length=None):
    """Put the batch first, and zeros behind the valid length.

    An attention mask zeroes nothing, as in the originals.

    Parameters
    ----------
    x : (length, batch, units)
    valid_length : (batch,), float32, or list of an attention mask, optional

    Returns
    -------
    (batch, length, units)
    """
    if valid_length is not None and not is_mask(valid_length):
        x = F.SequenceMask(x, sequence_length=valid_length, use_sequence_length=True, axis=0)
    return F.transpose(x, axes=(1, 0, 2))


def vectors_at(F, sequence, positions):
    """Return one vector of each row."""
    rows = F.contrib.arange_like(positions, axis=0)
    index = F.stack(F.cast(rows, 'int32'), F.cast(positions, 'int32'), axis=0)  # (2, B)
    return F.gather_nd(sequence, index)


def without_padding(F, labels, valid_length):
    """Return the labels of sequences, -1 behind their valid length."""
    labels = F.cast(labels, 'float32')
    if valid_length is None:
        return labels
    if is_mask(valid_length):
        return F.where(F.cast(valid_length[0], 'float32'), labels, -F.ones_like(labels))
    lengths = F.cast(valid_length, 'float32')
    options = {'use_sequence_length': True, 'value': -1, 'axis': 1}
    return F.SequenceMask(labels, sequence_length=lengths, **options)
