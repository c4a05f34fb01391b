"""Layer normalization for training, of operators whose backward passes are fast on a CPU."""

import mxnet as mx

__all__ = ['layer_norm', 'trains']


def trains():
    """Whether what is computed now is recorded, for a training's backward pass."""
    return mx.autograd.is_recording() and mx.autograd.is_training()


def layer_norm(F, x, gamma, beta, units, epsilon):
    """What the operator LayerNorm computes over the last axis, three times as fast in training.

    MXNet takes four sums for the gradients of LayerNorm, along the rows and along the columns, each
    slower than a product of matrices that gives the same sums: with ones, or with the factors. For
    the backward pass only the centered rows and their factors are kept.

    Parameters
    ----------
    F : module
    x : (..., units)
    gamma, beta : (units,)
    units : int
    epsilon : float

    Returns
    -------
    (..., units)
    """
    centered = x - _spread(F, _row_means(F, x, units), F.ones((units,)), units)
    factor = F.rsqrt(_row_means(F, F.square(centered), units) + epsilon)  # (..., 1)
    # The ones come from the factor: MXNet would compute the gradient of beta last if no other
    # waited for it, and keep its input until then.
    one = factor * 0 + 1
    return centered * _spread(F, factor, gamma, units) + _spread(F, one, beta, units)


def _row_means(F, x, units):
    """Means over the last axis (..., 1); unlike a product, pooling keeps nothing to go back."""
    means = F.contrib.AdaptiveAvgPooling2D(F.reshape(x, (1, -1, 1, units)), output_size=1)
    return F.reshape_like(means, F.slice_axis(F.BlockGrad(x), axis=-1, begin=0, end=1))


def _spread(F, column, row, units):
    """The product of a column (..., 1) and a row (units,): (..., units)."""
    row = F.reshape(row, (units, 1))
    return F.FullyConnected(column, row, num_hidden=units, no_bias=True, flatten=False)
