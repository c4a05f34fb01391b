"""Gradients that lie next to each other in memory, so that workers sum many of them at once."""

import mxnet as mx
import numpy as np

__all__ = ['BUCKET_BYTES', 'GradientBuckets']

#: size of a bucket. Small ones can be summed early, large ones at a higher rate.
BUCKET_BYTES = 2**25
_ALIGNED = 16  # elements: gradients begin at whole cache lines


class GradientBuckets:
    """The gradients of parameters as a few long arrays.

    A backward pass computes gradients from the last layer to the first. Buckets are filled in that
    order, so each is complete as early as possible, and can be summed while the rest is computed.
    The parameters' own gradient arrays become views of the buckets. Make buckets before the first
    backward pass: a hybridized block with a static shape goes on writing to the arrays that it has
    seen first.

    Parameters
    ----------
    parameters : list of mxnet.gluon.Parameter
        Of one device each, in the order in which the block uses them. Their gradients become zero.
    size : int
        Bytes of a bucket. A larger gradient is a bucket by itself, and stays where it is.

    Attributes
    ----------
    arrays : list of mxnet.nd.NDArray
        The buckets, in the order in which they become complete.
    """

    def __init__(self, parameters, size=BUCKET_BYTES):
        self._parameters, self._views = [], []
        self.arrays = []
        for group in _groups(parameters, size):
            if len(group) == 1:
                self._add(group[0].list_grad()[0], group)
            else:
                self._join(group)

    def _add(self, array, group, views=None):
        self.arrays.append(array)
        self._parameters += group
        self._views += views or [array]

    def _join(self, group):
        """Make the gradients of a group views of one array."""
        first = group[0].list_grad()[0]
        starts = np.cumsum([0, *(_padded(parameter) for parameter in group)])
        flat = mx.nd.zeros(int(starts[-1]), ctx=first.context, dtype=first.dtype)
        views = []
        for parameter, start in zip(group, starts.tolist()):
            grad = parameter.list_grad()[0]
            view = flat[start : start + grad.size].reshape(grad.shape)
            parameter._grad = [view]
            mx.autograd.mark_variables(parameter.list_data(), [view], parameter.grad_req)
            views.append(view)
        self._add(flat, group, views)

    def fit(self, parameters):
        """Whether these are the parameters, and their gradients are still where they were."""
        return len(parameters) == len(self._parameters) and all(
            own is parameter and own.list_grad()[0] is view
            for own, parameter, view in zip(self._parameters, reversed(parameters), self._views)
        )


def _padded(parameter):
    size = int(np.prod(parameter.shape))
    return -(-size // _ALIGNED) * _ALIGNED


def _groups(parameters, size):
    """Parameters from the last one on, in groups of one type with at most `size` bytes."""
    group, room, kind = [], 0, None
    for parameter in reversed(parameters):
        own = _padded(parameter) * np.dtype(parameter.dtype).itemsize
        if group and (own > room or np.dtype(parameter.dtype) != kind):
            yield group
            group = []
        if not group:
            room, kind = size, np.dtype(parameter.dtype)
        group.append(parameter)
        room -= own
    if group:
        yield group
