"""Checks of the arrays that a user passes, and of the devices that hold them."""

import mxnet as mx
import numpy as np

from ..errors import InputError

__all__ = ['check_gpu', 'check_range', 'check_shape']


def check_shape(name, array, shape):
    """Raise InputError unless `array` is an NDArray of `shape`, where -1 is any size but 0."""
    if not isinstance(array, mx.nd.NDArray):
        raise InputError(
            f'{name} must be an NDArray, but is a {type(array).__name__}: pass mx.nd.array({name})'
        )
    if array.stype != 'default':
        raise InputError(f"{name} is sparse ({array.stype}): pass {name}.tostype('default')")
    if 0 in array.shape:
        raise InputError(f'{name} is empty: it has shape {array.shape}')
    wrong = len(array.shape) != len(shape) or any(
        wanted not in (-1, size) for wanted, size in zip(shape, array.shape)
    )
    if wrong:
        wanted = ', '.join('any' if size == -1 else str(size) for size in shape)
        raise InputError(f'{name} must have shape ({wanted}), but has {array.shape}')


def check_range(name, array, low, high, are_ids=False):
    """Raise InputError unless all values of `array` are whole numbers in [low, high).

    MXNet's embedding silently takes the first or last row for an id out of range, and operators
    that take lengths can read beyond their memory. When a model is called, the values of a batch
    are in the CPU's memory, so this check takes some microseconds. On a GPU it would stall the
    queue of operators, so it is skipped.
    """
    if array.context.device_type == 'gpu':
        return
    values = array.asnumpy()
    if not (values.min() >= low and values.max() < high):  # NaN is neither
        wrong = values[~((values >= low) & (values < high))].flat[0]
        hint = ': was the text encoded with the vocabulary of these weights?' if are_ids else ''
        raise InputError(
            f'{name} holds {wrong:.10g}, and its values must be in [{low}, {high}){hint}'
        )
    if not np.issubdtype(values.dtype, np.integer):
        wrong = values[values != np.floor(values)]
        if wrong.size:
            what = 'ids' if are_ids else 'its values'
            raise InputError(f'{name} holds {wrong[0]:.10g}, and {what} are whole numbers')


def check_gpu(number, given):
    """Raise InputError if MXNet has no GPU of this number."""
    if not mx.runtime.Features().is_enabled('CUDA'):
        raise InputError(
            f'{given}: this build of MXNet ({mx.__version__}) has no GPU support; install a CUDA '
            'build such as mxnet-cu112, or leave this out to run on the CPU'
        )
    count = mx.context.num_gpus()
    if not 0 <= number < count:
        raise InputError(f'{given}: this machine has {count} GPU(s), numbered from 0')
