"""Arrays of sequences: their positions, and from the layers' order of axes to the user's."""

__all__ = ['batch_major', 'positions_of', 'vectors_at']


def positions_of(F, x, axis=0):
    """0, 1, 2, ... along an axis of (length, batch, units), in float32: float16 ends at 2048.

    Parameters
    ----------
    F : module
        ``mx.nd`` or ``mx.sym``.
    x : array with 3 axes
    axis : int

    Returns
    -------
    (size of the axis,)
    """
    begin, end = [0, 0, 0], [1, 1, 1]
    begin[axis] = end[axis] = None
    return F.contrib.arange_like(F.cast(F.slice(x, begin=begin, end=end), 'float32'), axis=axis)


def batch_major(F, x, valid_length=None):
    """What layers return, the batch first and zero behind the valid length.

    Parameters
    ----------
    F : module
    x : (length, batch, units)
    valid_length : (batch,), float32, optional

    Returns
    -------
    (batch, length, units)
    """
    if valid_length is not None:
        x = F.SequenceMask(x, sequence_length=valid_length, use_sequence_length=True, axis=0)
    return F.transpose(x, axes=(1, 0, 2))


def vectors_at(F, sequence, positions):
    """One vector of each row.

    Parameters
    ----------
    F : module
    sequence : (batch, length, units)
    positions : (batch,)

    Returns
    -------
    (batch, units)
    """
    rows = F.contrib.arange_like(positions, axis=0)
    index = F.stack(F.cast(rows, 'int32'), F.cast(positions, 'int32'), axis=0)  # (2, B)
    return F.gather_nd(sequence, index)
