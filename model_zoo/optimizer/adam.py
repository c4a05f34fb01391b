"""What our optimizers share: Adam with decoupled weight decay."""

import itertools
import math

import gluonnlp.optimizer  # noqa: F401  registers its own 'bertadam' now, so that ours stays
import mxnet as mx
import numpy as np

from ..errors import InputError
from . import host
from .gradients import sum_of_squares

__all__ = ['DecoupledAdam', 'register']


def register(optimizer):
    """Register an optimizer under its class's name, replacing one of the same name silently."""
    mx.optimizer.Optimizer.opt_registry[optimizer.__name__.lower()] = optimizer
    return optimizer


class DecoupledAdam(mx.optimizer.Optimizer):
    """Base of the Adam variants with decoupled weight decay, on MXNet's fused AdamW operator.

    Subclasses define the step's size in ``_rates``. On a GPU nothing here waits for the device; in
    the host's memory NumPy computes.

    Parameters
    ----------
    learning_rate : float or None
        None means the schedule's `base_lr`, or 0.001 without a schedule.
    beta1, beta2 : float
        Decay rates of the first and the second moment, in [0, 1).
    epsilon : float
        Added to the denominator.
    max_grad_norm : float or None
        Clip each parameter's gradient separately to this L2 norm. None, or a value that isn't
        positive, means no clipping. A parameter's attribute `joined`, such as (3, 64), says that it
        joins 3 parameters of the original in alternating blocks of 64 rows; the gradient of each
        is clipped separately.
    **kwargs
        Those of :class:`mxnet.optimizer.Optimizer`: wd, lr_scheduler, rescale_grad,
        clip_gradient, multi_precision, ...
    """

    def __init__(self, learning_rate, beta1, beta2, epsilon, max_grad_norm, **kwargs):
        if learning_rate is None and kwargs.get('lr_scheduler') is None:
            learning_rate = 0.001
        if learning_rate is not None and not learning_rate >= 0:
            raise InputError(f'learning_rate is {learning_rate}; it must be 0 or more')
        for name, beta in (('beta1', beta1), ('beta2', beta2)):
            if not 0 <= beta < 1:
                raise InputError(f'{name} is {beta}; it must be at least 0 and below 1')
        if not epsilon >= 0:
            raise InputError(f'epsilon is {epsilon}; it must be 0 or more')
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.max_grad_norm = max_grad_norm
        self.aggregate_num = 64  # number of weights per call of `update`

    def create_state(self, index, weight):
        """The two moments, (mean, variance), both zero and shaped as `weight`."""
        return (
            mx.nd.zeros(weight.shape, weight.context, dtype=weight.dtype),
            mx.nd.zeros(weight.shape, weight.context, dtype=weight.dtype),
        )

    def update(self, index, weight, grad, state):
        """Update one weight in place, or a list of them (then all arguments are lists)."""
        self._update(index, weight, grad, state, multi_precision=False)

    def update_multi_precision(self, index, weight, grad, state):
        """As :meth:`update`; float16 weights follow their float32 copies if `multi_precision`."""
        first = weight[0] if isinstance(index, (list, tuple)) else weight
        self._update(index, weight, grad, state, self.multi_precision and first.dtype == np.float16)

    def _rates(self, index, weight, lr, wd):
        """(step, factor, decay, late decay) of the update of one weight.

        ``w -= factor * (step * mean / (sqrt(var) + epsilon) + decay * w)``, and after that
        ``w -= late_decay * w``.
        """
        raise NotImplementedError

    def _update(self, indices, weights, grads, states, multi_precision):
        if not isinstance(indices, (list, tuple)):
            indices, weights, grads, states = [indices], [weights], [grads], [states]
        self._update_count(indices)
        grads = [g if g.stype == 'default' else g.tostype('default') for g in grads]
        scales = self._scales(indices, grads)
        lrs, wds = self._get_lrs(indices), self._get_wds(indices)
        if not multi_precision:
            arrays = [(w, g, *state) for w, g, state in zip(weights, grads, states)]
            if host.are_on_host(itertools.chain(*arrays)):
                self._update_on_host(indices, arrays, _numbers(scales), lrs, wds)
                return

        # One call for each weight: MXNet's multi-tensor variant of the operator loses digits of the
        # moments.
        for each in zip(indices, weights, grads, states, scales, lrs, wds):
            self._update_one(*each, multi_precision)

    def _steps(self, indices, arrays, lrs, wds):
        """`_step` of each weight, the first of its arrays."""
        return [
            self._step(index, each[0], lr, wd)
            for index, each, lr, wd in zip(indices, arrays, lrs, wds)
        ]

    def _step(self, index, weight, lr, wd):
        """The `host.Step` of a weight with the operators' moments."""
        mean_factor, root_factor = self._moment_factors()
        step, factor, decay, late_decay = self._rates(index, weight, lr, wd)
        return host.Step(
            step * root_factor / mean_factor, factor, self._epsilon(index) * root_factor, decay,
            late_decay,
        )  # fmt: skip

    def _update_on_host(self, indices, arrays, scales, lrs, wds):
        """Update weights with their gradients times the scales, which are numbers."""
        steps, betas = self._steps(indices, arrays, lrs, wds), (self.beta1, self.beta2)
        host.update_by_adam(arrays, scales, steps, betas, self.clip_gradient)

    def _update_one(self, index, weight, grad, state, scale, lr, wd, multi_precision):
        """Update a weight with its gradient times `scale`, of shape (1,)."""
        step = self._step(index, weight, lr, wd)
        options = {
            'beta1': self.beta1,
            'beta2': self.beta2,
            'epsilon': step.epsilon,
            'lr': step.step,
            'eta': step.factor,
            'wd': step.decay,
        }
        if self.clip_gradient:
            options['clip_gradient'] = self.clip_gradient
        if multi_precision:
            master, moments = state
            mx.nd.contrib.mp_adamw_update(
                weight, grad, *moments, master, scale, out=weight, **options
            )
        else:
            master = weight
            mx.nd.contrib.adamw_update(weight, grad, *state, scale, out=weight, **options)
        if step.late_decay:  # not as a product with 1 - late_decay, which has too few digits
            mx.nd.sgd_update(master, master, lr=step.late_decay, wd=0, out=master)
            if multi_precision:
                mx.nd.cast(master, dtype=weight.dtype, out=weight)

    def _epsilon(self, index):
        """The term added to the square root of the second moment."""
        return self.epsilon

    def _moment_factors(self):
        """Moment of the operators over the true one: (mean's, square root of the variance's).

        They take the betas as float32 and compute 1 - beta from them, which for beta2 = 0.999 is
        off by 1.3e-5. So their moments are the true ones times a constant.
        """
        return _complement_error(self.beta1), math.sqrt(_complement_error(self.beta2))

    def _scales(self, indices, grads):
        """The factor of each gradient: arrays of shape (1,)."""
        context = grads[0].context
        scale = self.rescale_grad  # AMP and clipping by the global norm make it an array
        if isinstance(scale, mx.nd.NDArray):
            scale = scale.as_in_context(context)
        else:
            scale = mx.nd.full((1,), scale, ctx=context)
        if self.max_grad_norm is None or self.max_grad_norm <= 0:
            return [scale] * len(grads)
        joined = [getattr(self.param_dict.get(index), 'joined', None) for index in indices]
        wholes = [grad for grad, parts in zip(grads, joined) if parts is None]
        factors = iter(self._clip_factors(wholes, scale))
        scales = []
        for grad, parts in zip(grads, joined):
            if parts is None:
                scales.append(next(factors) * scale)
            else:
                self._clip_parts(grad, *parts, scale)
                scales.append(scale)
        return scales

    def _clip_factors(self, arrays, scale):
        """The factors, of shape (1,), that clip each array's norm."""
        if not arrays:
            return []
        if host.are_on_host(arrays):
            norms = mx.nd.array(host.sums_of_squares(arrays)).sqrt()
        else:
            norms = mx.nd.concat(*[sum_of_squares(array) for array in arrays], dim=0).sqrt()
        norms = mx.nd.broadcast_mul(norms, scale)
        factors = mx.nd.minimum(self.max_grad_norm / (norms + 1e-6), 1)  # as clip_grad_norm_
        return [factors[i : i + 1] for i in range(len(arrays))]

    def _clip_parts(self, grad, count, size, scale):
        """Clip in place each of `count` parts of a gradient, alternating blocks of `size` rows."""
        view = grad.reshape((-1, count, size * (grad.size // grad.shape[0])))
        parts = [view.slice_axis(axis=1, begin=i, end=i + 1) for i in range(count)]
        factors = mx.nd.concat(*self._clip_factors(parts, scale), dim=0)
        factors = factors.reshape((1, -1, 1)).astype(grad.dtype)
        mx.nd.broadcast_mul(view, factors, out=view)


def _numbers(scales):
    """The scales, most of which are one array, as numbers."""
    found = {id(scale): scale for scale in scales}
    found = {key: scale.asscalar().item() for key, scale in found.items()}
    return [found[id(scale)] for scale in scales]


def _complement_error(beta):
    """1 - beta as the operator computes it, over the true one."""
    one = np.float32(1)
    return float(one - np.float32(beta)) / (1 - beta)
