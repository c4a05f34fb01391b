"""Conversion of weights' number types."""

import numpy as np

__all__ = ['as_weights', 'from_bfloat16', 'plain_arrays']


def from_bfloat16(bits):
    """Convert bfloat16 to float32; its bits are the first half of float32's.

    Parameters
    ----------
    bits : numpy.ndarray of uint16

    Returns
    -------
    numpy.ndarray of float32
    """
    return (bits.astype(np.uint32) << 16).view(np.float32)


def as_weights(tensors):
    """`tensors`, with float16 converted to float32, the type that blocks compute with."""
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in tensors.items()
    }


def plain_arrays(state_dict):
    """The arrays of a dict as NumPy's.

    Parameters
    ----------
    state_dict : dict of str to array
        NDArrays, NumPy arrays, or torch's tensors.

    Returns
    -------
    dict of str to numpy.ndarray
    """
    result = {}
    for name, value in state_dict.items():
        if hasattr(value, 'asnumpy'):
            value = value.asnumpy()
        elif hasattr(value, 'detach'):  # torch's
            value = value.detach().cpu()
            value = (value.float() if 'bfloat16' in str(value.dtype) else value).numpy()
        result[name] = np.asarray(value)
    return result
