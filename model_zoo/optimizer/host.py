"""The optimizers' arithmetic in the host's memory, by NumPy.

MXNet's operators of Adam compute one number at a time there, and take three times as long.
"""

import concurrent.futures
import ctypes
import dataclasses
import math

import mxnet as mx
import numpy as np

from ..environment import used_processors

__all__ = [
    'Step',
    'are_on_host',
    'multiply',
    'sums_of_squares',
    'update_by_adam',
    'update_by_lamb',
]

#: numbers that are computed at a time: the arrays' pieces fit in the processor's cache
_PIECE = 2**17
#: numbers that are worth a thread
_LEAST = 2**20


@dataclasses.dataclass(frozen=True)
class Step:
    """What an update of one weight does with its moments.

    ``w -= factor * (step * mean / (sqrt(var) + epsilon) + decay * w)``, and after that
    ``w -= late_decay * w``.
    """

    step: float
    factor: float
    epsilon: float
    decay: float
    late_decay: float = 0.0


def are_on_host(arrays):
    """Whether all of the arrays are dense, of float32, and in the host's memory."""
    return all(
        array.context.device_type != 'gpu'
        and array.dtype == np.float32
        and array.stype == 'default'
        for array in arrays
    )


def sums_of_squares(arrays):
    """The sum of the squares of each array, once they have been computed.

    Parameters
    ----------
    arrays : list of mxnet.nd.NDArray
        See `are_on_host`.

    Returns
    -------
    list of float
    """
    mx.nd.waitall()
    return _sums_of_squares([_flat(array) for array in arrays])


def multiply(arrays, factor):
    """Multiply arrays by a number, in place."""

    def work(piece, spare):
        (array,), _ = piece
        np.multiply(array, factor, out=array)

    mx.nd.waitall()
    _in_threads(work, _cut([[_flat(array)] for array in arrays], [None] * len(arrays)))


def update_by_adam(arrays, scales, steps, betas, bound=None):
    """Update weights and their moments in place.

    Parameters
    ----------
    arrays : list of (NDArray, NDArray, NDArray, NDArray)
        Weight, gradient, mean and variance.
    scales : list of float
        Factor of each gradient. Where it is 0 or not finite, nothing is updated.
    steps : list of Step
    betas : (float, float)
    bound : float, optional
        Largest absolute value of a gradient's element, after it was scaled.
    """

    def update(piece, spare):
        (weight, grad, *moments), (scale, step) = piece
        first, second = (each[: grad.size] for each in spare)
        _update_moments(grad, moments, scale, betas, bound, first, second)
        _direction(weight, moments, step, first, second)
        np.subtract(weight, first, out=weight)
        if step.late_decay:  # not as a product with 1 - late_decay, which has too few digits
            np.multiply(weight, step.late_decay, out=first)
            np.subtract(weight, first, out=weight)

    mx.nd.waitall()
    _in_threads(update, _pieces(arrays, zip(scales, steps)))


def update_by_lamb(arrays, scales, steps, betas, bound=None, lowest=None, largest=None):
    """`update_by_adam` by directions of each weight's norm; the gradients become the directions.

    Parameters
    ----------
    arrays, scales, steps, betas, bound
        As of `update_by_adam`. The factor multiplies the weight's norm.
    lowest, largest : float, optional
        Bounds of the weight's norm in that product.
    """

    def direct(piece, spare):
        (weight, grad, *moments), (scale, step) = piece
        first, second = (each[: grad.size] for each in spare)
        _update_moments(grad, moments, scale, betas, bound, first, second)
        _direction(weight, moments, dataclasses.replace(step, factor=1.0), grad, second)

    def move(piece, spare):
        (weight, direction), (factor,) = piece
        np.multiply(direction, factor, out=direction)
        np.subtract(weight, direction, out=weight)

    mx.nd.waitall()
    used = [number for number, scale in enumerate(scales) if _is_usable(scale)]
    arrays, scales, steps = ([each[number] for number in used] for each in (arrays, scales, steps))
    _in_threads(direct, _pieces(arrays, zip(scales, steps)))
    pairs = [[_flat(weight), _flat(grad)] for weight, grad, *_ in arrays]
    norms = [[math.sqrt(each) for each in _sums_of_squares(list(one))] for one in zip(*pairs)]
    factors = []
    for weight, direction, step in zip(*norms, steps):
        weight = weight if lowest is None else max(weight, lowest)
        weight = weight if largest is None else min(weight, largest)
        factors.append((step.factor * (weight / direction if weight and direction else 1.0),))
    _in_threads(move, _cut(pairs, factors))


def _update_moments(grad, moments, scale, betas, bound, first, second):
    """Update both moments; `first` and `second` are overwritten."""
    if scale != 1:
        grad = np.multiply(grad, scale, out=first)
    if bound:
        grad = np.clip(grad, -bound, bound, out=first)
    for moment, beta, power in zip(moments, betas, (1, 2)):
        rest = float(np.float32(1) - np.float32(beta))  # as the operators compute it
        np.multiply(grad, rest ** (1 / power), out=second)
        if power == 2:
            np.multiply(second, second, out=second)
        np.multiply(moment, beta, out=moment)
        np.add(moment, second, out=moment)


def _direction(weight, moments, step, out, spare):
    """What is subtracted from a weight, but for the late decay."""
    mean, var = moments
    np.sqrt(var, out=spare)
    np.add(spare, step.epsilon, out=spare)
    np.divide(mean, spare, out=out)
    np.multiply(out, step.factor * step.step, out=out)
    if step.decay:
        np.multiply(weight, step.factor * step.decay, out=spare)
        np.add(out, spare, out=out)


def _sums_of_squares(views):
    # A sum of float32 over a large matrix loses digits: those of the pieces are added as float64.
    def square(piece, spare):
        (array,), _ = piece
        return float(np.dot(array, array))

    pieces = _cut([[view] for view in views], range(len(views)))
    totals = [0.0] * len(views)
    for (_, number), value in zip(pieces, _in_threads(square, pieces)):
        totals[number] += value
    return totals


def _is_usable(scale):
    return scale != 0 and math.isfinite(scale)


def _pieces(arrays, options):
    """The pieces of the arrays that are updated."""
    chosen = [
        ([_flat(array) for array in each], option)
        for each, option in zip(arrays, options)
        if _is_usable(option[0])
    ]
    return _cut(*zip(*chosen)) if chosen else []


def _cut(groups, options):
    return [
        ([view[start : start + _PIECE] for view in views], option)
        for views, option in zip(groups, options)
        for start in range(0, views[0].size, _PIECE)
    ]


def _in_threads(function, pieces):
    """Call a function with each piece, and two arrays of its thread's own; returns the results."""
    results = [None] * len(pieces)
    waiting = iter([*enumerate(pieces)])  # of a list: each thread takes the next one
    numbers = sum(arrays[0].size for arrays, _ in pieces)
    count = min(used_processors(), numbers // _LEAST)

    def work(_):
        spare = np.empty((2, _PIECE), np.float32)
        with np.errstate(all='ignore'):  # who reads the norm learns what is wrong
            for number, piece in waiting:
                results[number] = function(piece, spare)

    if count <= 1:
        work(0)
    else:
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(count)))
    return results


def _flat(array):
    """The memory of an array as one of NumPy.

    MXNet must have finished: to wait for each array takes longer than a small model's step.
    """
    if not array.size:
        return np.empty(0, np.float32)
    address = ctypes.c_void_p()
    mx.base.check_call(mx.base._LIB.MXNDArrayGetData(array.handle, ctypes.byref(address)))
    memory = (ctypes.c_float * array.size).from_address(address.value)
    return np.frombuffer(memory, np.float32)
