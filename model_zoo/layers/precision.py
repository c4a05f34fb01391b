"""Blocks that compute in float16 or bfloat16, and their bricks.

`set_precision` sets 'float32'; 'float16', where normalizations, positions, losses and sums of
a softmax stay in float32; and 'bfloat16', for CPUs: parameters, activations and gradients are
float32, only ``FullyConnected`` computes in bfloat16. On CPUs float16 is slower than float32, since
MXNet has no matrix product of it there and casts to float32 and back. bfloat16 has float32's range,
so its loss needs no scaling.
"""

import functools
import logging
import os

import mxnet as mx
import numpy as np
from mxnet.contrib import amp
from mxnet.gluon import nn

from .. import operators
from ..environment import cpu_flags
from ..errors import InputError, UnknownNameError
from ..mxnet_private import contexts_of
from ..util.choices import PRECISIONS

__all__ = ['PRECISIONS', 'Dense', 'LayerNorm', 'MixedPrecision', 'set_precision']


#: MXNet's dtype of bfloat16, which NumPy doesn't have
BFLOAT16 = amp.amp.bfloat16

_log = logging.getLogger(__name__)


def precision_name(dtype):
    """Return the name of a data type."""
    if isinstance(dtype, str) and dtype == 'bfloat16':
        return dtype
    try:
        dtype = np.dtype(dtype)
    except (TypeError, SyntaxError):  # NumPy parses texts
        raise UnknownNameError.of('dtype', dtype, PRECISIONS) from None
    return 'bfloat16' if dtype == BFLOAT16 else dtype.name


class MixedPrecision:
    """Mixin of blocks with matrix products."""

    precision = 'float32'

    def fully_connected(
        self, F, x, weight, bias=None, takes_half=False, gives_half=False, **options
    ):
        """``FullyConnected`` in the block's precision; its ends may stay in bfloat16."""
        arrays = [x, weight] if bias is None else [x, weight, bias]
        options['no_bias'] = bias is None
        if self.precision != 'bfloat16':
            return self.product(F, F.FullyConnected, *arrays, **options)
        # amp_cast, because Cast of bfloat16 isn't vectorized: it takes 30 times as long
        casts = arrays[1:] if takes_half else arrays
        casts = [F.amp_cast(array, dtype=BFLOAT16) for array in casts]
        product = F.FullyConnected(*([x, *casts] if takes_half else casts), **options)
        return product if gives_half else F.amp_cast(product, dtype='float32')

    def product(self, F, operator, *arrays, **options):
        """Another matrix product, such as ``batch_dot``; these stay float32 in bfloat16."""
        if self.precision == 'float16' and self._on_cpu(arrays[0]):
            return self.in_float32(F, operator, *arrays, **options)
        return operator(*arrays, **options)

    def in_float32(self, F, operator, *arrays, **options):
        """Run an operator in float32, and cast the result back to float16 in that precision."""
        if self.precision != 'float16':
            return operator(*arrays, **options)
        arrays = [F.cast(array, dtype='float32') for array in arrays]
        return F.cast(operator(*arrays, **options), dtype='float16')

    def has_own_operators(self, array):
        """Return whether this is a training with `model_zoo.operators`, which were built."""
        return (
            operators.trains()
            and self.precision in ('float32', 'bfloat16')
            and self._on_cpu(array)
            and operators.library() is not None
        )

    def _on_cpu(self, array):
        """Return whether `array`, or in a graph the parameters, are on the CPU."""
        if isinstance(array, mx.nd.NDArray):
            return array.context.device_type != 'gpu'
        return not any(ctx.device_type == 'gpu' for ctx in _contexts(self))


class Dense(MixedPrecision, nn.Dense):
    """Gluon's Dense in the block's precision, on the last axis: it never flattens its input."""

    #: whether the input is of bfloat16, and whether the output stays so, in this precision
    takes_half = gives_half = False

    def hybrid_forward(self, F, x, weight, bias=None):
        options = {'num_hidden': self._units, 'flatten': False, 'name': 'fwd'}
        options.update(takes_half=self.takes_half, gives_half=self.gives_half)
        result = self.fully_connected(F, x, weight, bias, **options)
        return result if self.act is None else self.act(result)


class LayerNorm(MixedPrecision, nn.LayerNorm):
    """Gluon's LayerNorm, whose squares and epsilon don't leave float32.

    In float16 the squares overflow where a vector's elements differ by more than 256, and 1e-12
    is 0.

    A graph that trains on a CPU has other operators with the same results, whose backward pass is
    faster; a graph for inference, and each exported one, has the operator LayerNorm.

    Where it `has_own_operators`, a second input is a residual, to which the first one is added
    after a dropout of the rate `dropout_rate`.
    """

    dropout_rate = 0.0

    def hybrid_forward(self, F, data, residual=None, *, gamma, beta):
        is_usual = self._axis == -1 and self._center and self._scale
        if is_usual and self.has_own_operators(data):
            rest = self.dropout_rate, self._epsilon
            return operators.norm(F, data, residual, gamma, beta, *rest)
        if operators.trains() and is_usual and self.precision != 'float16' and self._on_cpu(data):
            return layer_norm(F, data, gamma, beta, self.gamma.shape[0], self._epsilon)
        options = {'axis': self._axis, 'eps': self._epsilon}
        return self.in_float32(F, F.LayerNorm, data, gamma, beta, **options)


class ScaleNorm(LayerNorm):
    """`LayerNorm` without a shift."""

    def __init__(self, **options):
        super().__init__(**options)
        self.params._params.pop(self._reg_params.pop('beta').name)

    def hybrid_forward(self, F, data, gamma):
        return super().hybrid_forward(F, data, gamma=gamma, beta=F.zeros_like(gamma))


def set_precision(block, dtype):
    """Cast a block, and set the precision of all its parts."""
    name = precision_name(dtype)
    if name == 'bfloat16':
        _check_bfloat16(block)
    elif name == 'float16':
        _prepare_float16(block)
    mx.gluon.HybridBlock.cast(block, 'float32' if name == 'bfloat16' else name)

    def set_name(part):
        if isinstance(part, MixedPrecision):
            part.precision = name

    block.apply(set_name)


def _contexts(block):
    return contexts_of(*block.collect_params().values())


@functools.cache
def _warn_once(message):
    _log.warning(message)


def _prepare_float16(block):
    # read by the operators whenever they run; without it a softmax sums in float16
    os.environ.setdefault('MXNET_SAFE_ACCUMULATION', '1')
    if not any(ctx.device_type == 'gpu' for ctx in _contexts(block)):
        _warn_once(
            'MXNet has no matrix products of float16 on the CPU: they are computed in float32, '
            'which is slower than a model of float32; float16 is for GPUs, bfloat16 for CPUs'
        )


def _check_bfloat16(block):
    """Raise InputError unless the machine can compute in bfloat16; warn if it is slow at it."""
    if any(ctx.device_type == 'gpu' for ctx in _contexts(block)):
        raise InputError('bfloat16 is for CPUs: use float16 on a GPU')
    array = mx.nd.ones((1, 1)).astype(BFLOAT16)
    try:
        mx.nd.FullyConnected(array, array, no_bias=True, num_hidden=1).wait_to_read()
    except mx.MXNetError as error:
        raise InputError('bfloat16 needs a CPU with AVX-512: use float32') from error
    known = cpu_flags()
    if known and not {'avx512_bf16', 'amx_bf16'} & known:
        _warn_once('this CPU has no instructions for bfloat16: float32 is faster')


def layer_norm(F, x, gamma, beta, units, epsilon):
    """LayerNorm over the last axis, by operators that are three times as fast in training."""
    # MXNet takes four sums for the gradients of LayerNorm, along the rows and along the columns,
    # each slower than a product of matrices that gives the same sums: with ones, or with the
    # factors. For the backward pass only the centered rows and their factors are kept.
    centered = x - _spread(F, _row_means(F, x, units), F.ones((units,)), units)
    factor = F.rsqrt(_row_means(F, F.square(centered), units) + epsilon)  # (..., 1)
    # The ones come from the factor: otherwise MXNet would compute the gradient of beta last, and
    # keep its input until then.
    ones = factor * 0 + 1
    return centered * _spread(F, factor, gamma, units) + _spread(F, ones, beta, units)


def _row_means(F, x, units):
    """Return means over the last axis (..., 1); pooling keeps nothing for the backward pass."""
    means = F.contrib.AdaptiveAvgPooling2D(F.reshape(x, (1, -1, 1, units)), output_size=1)
    return F.reshape_like(means, F.slice_axis(F.BlockGrad(x), axis=-1, begin=0, end=1))


def _spread(F, column, row, units):
    """Return the product of a column (..., 1) and a row (units,): (..., units)."""
    row = F.reshape(row, (units, 1))
    return F.FullyConnected(column, row, num_hidden=units, no_bias=True, flatten=False)
