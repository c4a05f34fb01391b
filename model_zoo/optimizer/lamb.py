"""LAMB, the optimizer for large batches."""

import math

import mxnet as mx

from . import host
from .adam import DecoupledAdam, register
from .gradients import sum_of_squares

__all__ = ['LAMB']


@register
class LAMB(DecoupledAdam):
    """Adam with layerwise step sizes: each tensor's step is as long as learning rate x its norm.

    For each weight ``w`` with gradient ``g``, at its update number ``t`` = 1, 2, ...::

        g = clip(g * rescale_grad)
        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g ** 2
        u = mean / (1 - beta1 ** t) / (sqrt(var / (1 - beta2 ** t)) + epsilon) + wd * w
        w = w - lr * norm(w) / norm(u) * u

    The ratio of the norms is 1 if one of them is 0, and for weights that are exempt from decay
    (``wd_mult`` 0: biases and layer normalization after
    :func:`model_zoo.optimizer.disable_weight_decay`), as in Google's ``lamb_optimizer.py``.

    It is registered with MXNet as ``'lamb'`` and replaces MXNet's own, with the same arguments. On
    CPUs the norms of MXNet's are too low for large tensors, so its step for the word embedding of
    BERT base is 8 % too long.

    Parameters
    ----------
    learning_rate : float, optional
        Default: `lr_scheduler`'s base_lr, or 0.001 without a scheduler.
    beta1, beta2 : float
        Decay rates of the first and the second moment.
    epsilon : float
        Added to the denominator.
    lower_bound, upper_bound : float, optional
        Bounds of ``norm(w)`` where it multiplies the step (the paper's phi).
    bias_correction : bool
        Whether the moments are divided by ``1 - beta ** t``, as in the paper. Google's code for
        ALBERT doesn't.
    max_grad_norm : float, optional
        Clip each parameter's gradient separately to this L2 norm.
    **kwargs
        Arguments of :class:`mxnet.optimizer.Optimizer`: wd, lr_scheduler, rescale_grad,
        clip_gradient, multi_precision, ...

    References
    ----------
    You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
    algorithm 2; ``lamb_optimizer.py`` of google-research/albert.
    """

    def __init__(
        self,
        learning_rate=None,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-6,
        lower_bound=None,
        upper_bound=None,
        bias_correction=True,
        max_grad_norm=None,
        **kwargs,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, max_grad_norm, **kwargs)
        bounds = {'lower_bound': lower_bound, 'upper_bound': upper_bound}
        self._bounds = {name: bound for name, bound in bounds.items() if bound is not None}
        self.bias_correction = bias_correction

    def _corrections(self, index):
        """The divisors of the first moment and of the second one's square root."""
        if not self.bias_correction:
            return 1.0, 1.0
        count = self._index_update_count[index]
        return 1 - self.beta1**count, math.sqrt(1 - self.beta2**count)

    def _epsilon(self, index):
        return self.epsilon * self._corrections(index)[1]

    def _rates(self, index, weight, lr, wd):
        mean, root = self._corrections(index)
        return root / mean, lr, wd, 0.0

    def _has_ratio(self, index):
        parameter = self.param_dict.get(index)
        if parameter is not None:
            return parameter.wd_mult != 0
        name = self.idx2name.get(index, index)
        return self.wd_mult.get(index, self.wd_mult.get(name, 1.0)) != 0

    def _update_on_host(self, indices, arrays, scales, lrs, wds):
        groups = {True: [], False: []}  # with the ratio of norms, and without
        for each in zip(indices, arrays, scales, lrs, wds):
            groups[self._has_ratio(each[0])].append(each)
        if groups[False]:
            super()._update_on_host(*zip(*groups[False]))
        if groups[True]:
            indices, arrays, scales, lrs, wds = zip(*groups[True])
            steps = self._steps(indices, arrays, lrs, wds)
            host.update_by_lamb(
                arrays, scales, steps, (self.beta1, self.beta2), self.clip_gradient,
                *map(self._bounds.get, ('lower_bound', 'upper_bound')),
            )  # fmt: skip

    def _update_one(self, index, weight, grad, state, scale, lr, wd, multi_precision):
        if not self._has_ratio(index):
            super()._update_one(index, weight, grad, state, scale, lr, wd, multi_precision)
            return
        master, (mean, var) = state if multi_precision else (weight, state)
        if multi_precision:
            grad = grad.astype('float32')
        # in place, as the Adam operator does it
        mx.nd.broadcast_mul(grad, scale.astype(grad.dtype).reshape((1,) * grad.ndim), out=grad)
        mean_factor, root_factor = self._moment_factors()
        # The direction is u / step; its length matters only where the ratio is left out.
        step = self._rates(index, weight, lr, wd)[0] * root_factor / mean_factor
        direction = mx.nd.lamb_update_phase1(
            master,
            grad,
            mean,
            var,
            t=1,
            bias_correction=False,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self._epsilon(index) * root_factor,
            wd=wd / step,
            clip_gradient=self.clip_gradient or -1,
        )
        norms = [sum_of_squares(array).sqrt() for array in (master, direction)]
        mx.nd.lamb_update_phase2(
            master, direction, norms[0], norms[1] * step, lr=lr * step, out=master, **self._bounds
        )
        if multi_precision:
            mx.nd.cast(master, dtype=weight.dtype, out=weight)
