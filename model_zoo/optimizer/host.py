"""The optimizers' arithmetic in the host's memory, by NumPy.

MXNet's operators of Adam compute one number at a time there, and take three times as long.
"""

import concurrent.futures
import ctypes
import math
from typing import NamedTuple

import mxnet as mx
import numpy as np

from .. import operators
from ..environment import used_processors
from ..errors import InputError

__all__ = ['clip_grad_global_norm', 'grad_global_norm']

#: numbers of a piece: pieces half as large fit in the second cache, but threads pass Python's lock
#: twice as often (BERT base's update takes 230 ms instead of 212)
_PIECE = 2**18
#: least numbers for a thread
_LEAST = 2**20


class Step(NamedTuple):
    """The numbers of one weight's update."""

    # `w -= factor * (step * mean / (sqrt(var) + epsilon) + decay * w)`, and after that `w -=
    # late_decay * w`.

    step: float
    factor: float
    epsilon: float
    decay: float
    late_decay: float = 0.0


def are_on_host(arrays):
    """Return whether all arrays are dense, of float32, and in the host's memory."""
    return all(
        array.context.device_type != 'gpu'
        and array.dtype == np.float32
        and array.stype == 'default'
        for array in arrays
    )


def sums_of_squares(arrays):
    """Return the sum of the squares of each array; waits until they are computed."""
    mx.nd.waitall()
    return _sums_of_squares([_flat(array) for array in arrays])


def multiply(arrays, factor):
    """Multiply arrays by a number, in place."""

    def work(array, _, spare):
        np.multiply(array[0], factor, out=array[0])

    mx.nd.waitall()
    _in_threads(work, [([_flat(array)], None) for array in arrays])


def update_by_adam(updates, betas, bound=None):
    """Update weights and their moments in place.

    An update is the arrays (weight, gradient, mean, variance), the gradient's scale, and a `Step`;
    one whose scale is zero or isn't finite is skipped.
    """
    if operators.library() is not None:
        for views, (scale, step) in _usable(updates):
            operators.update_by_adam(views, scale, step, betas, bound)
        return

    def update(arrays, option, spare):
        (weight, grad, *moments), (scale, step) = arrays, option
        first, second = (array[: grad.size] for array in spare)
        _update_moments(grad, moments, scale, betas, bound, first, second)
        _direction(weight, moments, step, first, second)
        np.subtract(weight, first, out=weight)
        if step.late_decay:  # not as a product with 1 - late_decay, which has too few digits
            np.multiply(weight, step.late_decay, out=first)
            np.subtract(weight, first, out=weight)

    _in_threads(update, _usable(updates))


def update_by_lamb(updates, betas, bound=None, lower_bound=-math.inf, upper_bound=math.inf):
    """`update_by_adam` by directions of each weight's norm; the gradients become the directions."""

    def direct(arrays, option, spare):
        (weight, grad, *moments), (scale, step) = arrays, option
        first, second = (array[: grad.size] for array in spare)
        _update_moments(grad, moments, scale, betas, bound, first, second)
        _direction(weight, moments, step._replace(factor=1.0), grad, second)

    def move(arrays, factor, spare):
        weight, direction = arrays
        np.multiply(direction, factor, out=direction)
        np.subtract(weight, direction, out=weight)

    groups = _usable(updates)
    _in_threads(direct, groups)
    weights, directions = (
        map(math.sqrt, _sums_of_squares([arrays[side] for arrays, _ in groups])) for side in (0, 1)
    )
    moves = []
    for (arrays, (_, step)), weight, direction in zip(groups, weights, directions):
        weight = min(max(weight, lower_bound), upper_bound)
        ratio = weight / direction if weight and direction else 1.0
        moves.append((arrays[:2], step.factor * ratio))
    _in_threads(move, moves)


def _usable(updates):
    """Return the updates of use as (views of the arrays, (scale, step))."""
    mx.nd.waitall()
    return [
        ([_flat(array) for array in arrays], (scale, step))
        for arrays, scale, step in updates
        if scale != 0 and math.isfinite(scale)
    ]


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
    """Compute the step that is subtracted from a weight, without the late decay."""
    mean, var = moments
    np.sqrt(var, out=out)
    np.add(out, step.epsilon, out=out)
    np.divide(mean, out, out=out)
    np.multiply(out, step.factor * step.step, out=out)
    if step.decay:
        np.multiply(weight, step.factor * step.decay, out=spare)
        np.add(out, spare, out=out)


def _sums_of_squares(views):
    # A sum of float32 over a large matrix loses digits: the pieces' sums are added as float64.
    if operators.library() is not None:
        return [operators.sum_of_squares(view) for view in views]

    def square(arrays, number, spare):
        return number, float(np.dot(arrays[0], arrays[0]))

    totals = [0.0] * len(views)
    for number, value in _in_threads(square, [([view], n) for n, view in enumerate(views)]):
        totals[number] += value
    return totals


def _in_threads(function, groups):
    """Call ``function(arrays, option, spare)`` with pieces of arrays; return the results in order.

    `groups` are (arrays of one size, option), and `spare` two arrays of the thread.
    """
    pieces = [
        ([array[start : start + _PIECE] for array in arrays], option)
        for arrays, option in groups
        for start in range(0, arrays[0].size, _PIECE)
    ]
    results, waiting = [None] * len(pieces), iter([*enumerate(pieces)])
    numbers = sum(arrays[0].size for arrays, _ in groups)
    count = min(used_processors(), numbers // _LEAST)

    def work(_):
        spare = np.empty((2, _PIECE), np.float32)
        with np.errstate(all='ignore'):  # the norm shows it
            for number, piece in waiting:  # each thread takes the next one
                results[number] = function(*piece, spare)

    if count <= 1:
        work(0)
    else:
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(count)))
    return results


def _flat(array):
    """Return the memory of an array as a NumPy array."""
    # MXNet must have finished: to wait for each array takes longer than a small model's step.
    address = ctypes.c_void_p()
    mx.base.check_call(mx.base._LIB.MXNDArrayGetData(array.handle, ctypes.byref(address)))
    memory = (ctypes.c_float * array.size).from_address(address.value)
    return np.frombuffer(memory, np.float32)


# Elements added up at a time. A single float32 sum over a large matrix loses digits: on normal
# values, 23 million of them, MXNet's multi_sum_sq and norm are 5 % too low, one dot 0.03 %.
_SUMMED = 2**18


def sum_of_squares(array):
    """Return the sum of the squares, float32 of shape (1,), without waiting for the device."""
    flat = array.reshape((-1,))
    if flat.dtype != np.float32:
        flat = flat.astype('float32')
    if flat.size <= _SUMMED:
        return mx.nd.dot(flat, flat)
    pieces = (flat[start : start + _SUMMED] for start in range(0, flat.size, _SUMMED))
    return mx.nd.add_n(*[mx.nd.dot(piece, piece) for piece in pieces])


def _with_gradients(parameters):
    if isinstance(parameters, (dict, mx.gluon.ParameterDict)):
        parameters = parameters.values()
    parameters = [parameter for parameter in parameters if parameter.grad_req != 'null']
    if not parameters:
        raise InputError('no parameter has a gradient: pass the trained parameters')
    return parameters


def grad_global_norm(parameters):
    """Return the common L2 norm of the gradients of `parameters`.

    Parameters
    ----------
    parameters : ParameterDict or iterable of mxnet.gluon.Parameter
        With several devices call ``trainer.allreduce_grads()`` first; then all devices hold the
        same gradients, and the first one's are read.

    Returns
    -------
    mxnet.nd.NDArray
        Shape (1,), float32. On a GPU nothing waits for it.
    """
    grads = [parameter.list_grad()[0] for parameter in _with_gradients(parameters)]
    if are_on_host(grads):
        return mx.nd.array([math.sqrt(math.fsum(sums_of_squares(grads)))])
    return mx.nd.add_n(*map(sum_of_squares, grads)).sqrt()


def clip_grad_global_norm(parameters, max_norm):
    """Scale the gradients of `parameters` in place, so that their common L2 norm is `max_norm`.

    Gradients with a norm of at most `max_norm` don't change.

    Parameters
    ----------
    parameters : ParameterDict or iterable of mxnet.gluon.Parameter
        See :func:`grad_global_norm`. The trainer needs ``update_on_kvstore=False``.
    max_norm : float
        If gradients are scaled or accumulated (``trainer.update(n)``), scale this accordingly.

    Returns
    -------
    mxnet.nd.NDArray
        The norm before clipping, shape (1,), float32. It isn't finite if a gradient isn't; the
        gradients are then unusable.
    """
    parameters = _with_gradients(parameters)
    norm = grad_global_norm(parameters)
    grads = [grad for parameter in parameters for grad in parameter.list_grad()]
    if are_on_host(grads):
        value = norm.asscalar()
        if not value <= max_norm:
            multiply(grads, float(np.float32(max_norm) / value))
        return norm
    factor = max_norm / mx.nd.maximum(norm, max_norm)
    for grad in grads:
        local = factor.as_in_context(grad.context).astype(grad.dtype)
        # in place: memory for the results would have to be found and touched each time
        mx.nd.broadcast_mul(grad, local.reshape((1,) * grad.ndim), out=grad)
    return norm
