"""Arrays: checks of those that a user passes, rows of different lengths, and probabilities."""

import mxnet as mx
import numpy as np

from ..errors import InputError


def check_array(name, array, shape, low=None, high=None):
    """Raise InputError unless `array` is an NDArray of `shape`, where -1 is any size but 0.

    With bounds its values must be whole numbers in [low, high): MXNet's embedding silently takes
    the first or last row for an id out of range, and operators that take lengths can read beyond
    their memory. When a model is called, the values of a batch are in the CPU's memory, so this
    takes some microseconds. On a GPU it would stall the queue of operators, so it is skipped.
    """
    if not isinstance(array, mx.nd.NDArray) or array.stype != 'default':
        raise InputError(f'{name} must be a dense NDArray, not a {type(array).__name__}')
    fits = [size == actual or (size == -1 and actual) for size, actual in zip(shape, array.shape)]
    if len(array.shape) != len(shape) or not all(fits):
        expected = ', '.join('any' if size == -1 else str(size) for size in shape)
        raise InputError(f'{name} must have shape ({expected}), but has {array.shape}')
    if low is None or array.context.device_type == 'gpu':
        return
    values = array.asnumpy()
    if not (values.min() >= low and values.max() < high):  # NaN is neither
        wrong = values[~((values >= low) & (values < high))].flat[0]
        hint = ': was the text encoded with another vocabulary?' if name == 'words' else ''
        raise InputError(f'{name} holds {wrong:.10g}; its values must be in [{low}, {high}){hint}')
    if not np.issubdtype(values.dtype, np.integer) and (values != np.floor(values)).any():
        wrong = values[values != np.floor(values)][0]
        raise InputError(f'{name} holds {wrong:.10g}, and must hold whole numbers')


def check_gpu(number, field):
    """Raise InputError, naming the field, if MXNet has no GPU of this number."""
    count = mx.context.num_gpus() if mx.runtime.Features().is_enabled('CUDA') else 0
    if not 0 <= number < count:
        problem = f'{number}: this MXNet can use {count} GPU(s), numbered from 0'
        raise InputError(problem, field=field)


def flatten(outputs):
    """Return the arrays of nested lists, in their order."""
    if not isinstance(outputs, (list, tuple)):
        return [outputs]
    return [array for output in outputs for array in flatten(output)]


def pad_rows(rows, pad_id=0, length=None, round_to=1):
    """Return rows of ids as one array, padded on the right."""
    if length is None:
        length = -(-max(map(len, rows), default=0) // round_to) * round_to
    ids = np.full((len(rows), length), pad_id, dtype=np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids


def pool(states, mode, skip=0):
    """Return the vector, (units,), of a text whose tokens have `states`, (tokens, units).

    `mode` is as sentence-transformers calls it; 'weightedmean' weights each token with its
    position, counted from 1. The first `skip` tokens are left out.
    """
    kept = states[skip:]
    if mode == 'cls':
        return kept[0].copy()
    if mode == 'lasttoken':
        return kept[-1].copy()
    if mode == 'max':
        return kept.max(axis=0)
    if mode == 'mean_sqrt_len_tokens':
        return kept.sum(axis=0) / np.sqrt(np.float32(len(kept)))
    if mode == 'weightedmean':
        weights = np.arange(skip + 1, len(states) + 1, dtype=np.float32)[:, None]
        return (kept * weights).sum(axis=0) / weights.sum()
    return kept.mean(axis=0)


def softmax(outputs):
    """Return probabilities, float64, of a model's scores."""
    outputs = outputs.astype(np.float64)
    powers = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def sigmoid(outputs):
    """Return probabilities, float64, of independent scores."""
    from scipy.special import expit

    return expit(outputs.astype(np.float64))
