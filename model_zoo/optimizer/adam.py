"""The optimizers of BERT and GPT: variants of Adam with decoupled weight decay."""

import itertools
import math
import re

import gluonnlp.optimizer  # noqa: F401  registers its 'bertadam' now, not later over this one
import mxnet as mx
import numpy as np

from . import host
from .host import sum_of_squares
from .schedules import Schedule

__all__ = ['LAMB', 'NO_DECAY', 'BERTAdam', 'OpenAIAdam', 'disable_weight_decay']

#: Regular expression of the parameters without weight decay. The end of the name decides: a block's
#: prefix may contain one of these words.
NO_DECAY = r'.*(bias|beta|gamma)$'


def disable_weight_decay(block, pattern=NO_DECAY):
    """Set `wd_mult` to 0 for biases and for the scales and shifts of layer normalization.

    Parameters
    ----------
    block : mxnet.gluon.Block or mxnet.gluon.ParameterDict
    pattern : str
        Regular expression for the names of the parameters that don't decay.

    Returns
    -------
    list of str
        Their names.
    """
    parameters = block.collect_params() if hasattr(block, 'collect_params') else block
    names = [name for name in parameters if re.match(pattern, name)]
    for name in names:
        parameters[name].wd_mult = 0.0
    return names


def register(optimizer):
    """Register an optimizer under its class's name, replacing one of the same name silently."""
    mx.optimizer.Optimizer.opt_registry[optimizer.__name__.lower()] = optimizer
    return optimizer


class DecoupledAdam(mx.optimizer.Optimizer):
    """Base of the Adam variants with decoupled weight decay, on MXNet's fused AdamW operator."""

    # Subclasses have `_step(index, weight, lr, wd)`, the `host.Step` of the update of one weight,
    # with the true moments. On a GPU nothing here waits for the device; in
    # the host's memory NumPy computes.

    def __init__(
        self, learning_rate=None, beta1=0.9, beta2=0.999, epsilon=1e-6, max_grad_norm=None, **kwargs
    ):
        if learning_rate is None and kwargs.get('lr_scheduler') is None:
            learning_rate = 0.001
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.max_grad_norm = max_grad_norm
        self.aggregate_num = 64  # number of weights per call of `update`

    def create_state(self, index, weight):
        """Return the two moments, (mean, variance), both zero and shaped as `weight`."""
        return tuple(mx.nd.zeros(weight.shape, weight.context, weight.dtype) for _ in range(2))

    def update(self, index, weight, grad, state):
        """Update one weight in place, or a list of them (then all arguments are lists)."""
        self._update(index, weight, grad, state, multi_precision=False)

    def update_multi_precision(self, index, weight, grad, state):
        """Update; float16 weights follow their float32 copies if `multi_precision`."""
        first = weight[0] if isinstance(index, (list, tuple)) else weight
        self._update(index, weight, grad, state, self.multi_precision and first.dtype == np.float16)

    def _update(self, indices, weights, grads, states, multi_precision):
        if not isinstance(indices, (list, tuple)):
            indices, weights, grads, states = [indices], [weights], [grads], [states]
        self._update_count(indices)
        grads = [g if g.stype == 'default' else g.tostype('default') for g in grads]
        scales = self._scales(indices, grads)
        rates = zip(indices, weights, self._get_lrs(indices), self._get_wds(indices))
        steps = [self._operators_step(self._step(*each)) for each in rates]
        if not multi_precision:
            arrays = [(w, g, *state) for w, g, state in zip(weights, grads, states)]
            if host.are_on_host(itertools.chain(*arrays)):
                self._update_on_host(indices, [*zip(arrays, _numbers(scales), steps)])
                return
        # One call for each weight: MXNet's multi-tensor variant of the operator loses digits of the
        # moments.
        for arguments in zip(indices, weights, grads, states, scales, steps):
            self._update_weight(*arguments, multi_precision)

    def _operators_step(self, step):
        """Return a step for the operators' moments."""
        # They take the betas as float32 and compute 1 - beta from them, which for beta2 = 0.999 is
        # off by 1.3e-5. So their moments are the true ones times a constant.
        mean_factor, root_factor = _complement_error(self.beta1), _complement_error(self.beta2)
        root_factor = math.sqrt(root_factor)
        size = step.step * root_factor / mean_factor
        return step._replace(step=size, epsilon=step.epsilon * root_factor)

    def _update_on_host(self, indices, updates):
        host.update_by_adam(updates, (self.beta1, self.beta2), self.clip_gradient)

    def _options(self, step):
        """Return what MXNet's operators of Adam and LAMB both take."""
        betas = {'beta1': self.beta1, 'beta2': self.beta2, 'epsilon': step.epsilon}
        return {**betas, 'clip_gradient': self.clip_gradient or -1}

    def _update_weight(self, index, weight, grad, state, scale, step, multi_precision):
        """Update a weight with its gradient times `scale`, of shape (1,)."""
        rates = {'lr': step.step, 'eta': step.factor, 'wd': step.decay, 'out': weight}
        options = {**self._options(step), **rates}
        if multi_precision:
            master, moments = state
            mx.nd.contrib.mp_adamw_update(weight, grad, *moments, master, scale, **options)
        else:
            master = weight
            mx.nd.contrib.adamw_update(weight, grad, *state, scale, **options)
        if step.late_decay:  # not as a product with 1 - late_decay, which has too few digits
            mx.nd.sgd_update(master, master, lr=step.late_decay, wd=0, out=master)
            if multi_precision:
                mx.nd.cast(master, dtype=weight.dtype, out=weight)

    def _scales(self, indices, grads):
        """Return the factor of each gradient: arrays of shape (1,)."""
        context = grads[0].context
        scale = self.rescale_grad  # AMP and clipping by the global norm make it an array
        if not isinstance(scale, mx.nd.NDArray):
            scale = mx.nd.full((1,), scale)
        scale = scale.as_in_context(context)
        if self.max_grad_norm is None or self.max_grad_norm <= 0:
            return [scale] * len(grads)
        # a parameter that is `joined`, such as (3, 64), joins 3 of the original's in alternating
        # blocks of 64 rows; the gradient of each is clipped by its own norm
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
        """Return the factors, of shape (1,), that clip each array's norm."""
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
    """Return the scales as numbers; many are the same array."""
    arrays = {id(scale): scale for scale in scales}
    values = {key: scale.asscalar().item() for key, scale in arrays.items()}
    return [values[id(scale)] for scale in scales]


def _complement_error(beta):
    """Return 1 - beta as the operator computes it, over the true value."""
    return float(np.float32(1) - np.float32(beta)) / (1 - beta)


@register
class BERTAdam(DecoupledAdam):
    """Adam with decoupled weight decay and without bias correction, which trained BERT.

    For each weight ``w`` with gradient ``g``::

        g = clip(g * rescale_grad)
        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g ** 2
        w = w - lr * (mean / (sqrt(var) + epsilon) + wd * w)

    It is registered with MXNet as ``'bertadam'``, and replaces GluonNLP's optimizer of that name,
    with the same arguments. With ``max_grad_norm=1.0, wd=0.01`` it equals `BertAdam` of
    pytorch-pretrained-bert (``optimization.py``) with that class's defaults.

    Parameters
    ----------
    learning_rate : float, optional
        Default: `lr_scheduler`'s base_lr, or 0.001 without a scheduler.
    beta1 : float
        Decay rate of the first moment (`b1` of the original).
    beta2 : float
        Decay rate of the second moment (`b2` of the original).
    epsilon : float
        Added to the denominator (`e` of the original).
    max_grad_norm : float, optional
        Clip each parameter's gradient separately to this L2 norm, as in the original. None, the
        default, and values that aren't positive mean no clipping: the training scripts clip the
        norm of all gradients together, like Google's BERT.
    **kwargs
        Arguments of :class:`mxnet.optimizer.Optimizer`, such as

        wd : float, default 0
            Weight decay (0.01 in the original). :func:`model_zoo.optimizer.disable_weight_decay`
            exempts biases and layer normalization.
        lr_scheduler : mxnet.lr_scheduler.LRScheduler
            A :class:`~model_zoo.optimizer.Schedule`.
        clip_gradient : float
            Bound of each gradient element, applied after the clipping of the norm.
        multi_precision : bool
            Update float16 weights through float32 copies of them.

    Notes
    -----
    Gradients are multiplied by `rescale_grad` and clipped in place.

    A gradient is skipped if its scale (`rescale_grad` times the clipping factor) is zero or isn't
    finite: its weight and moments stay as they are.

    Examples
    --------
    >>> from model_zoo.optimizer import WarmupLinearSchedule
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> schedule = WarmupLinearSchedule(warmup=0.1, t_total=1000, base_lr=2e-5)
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'bertadam',
    ...                            {'wd': 0.01, 'lr_scheduler': schedule})
    """

    def _step(self, index, weight, lr, wd):
        return host.Step(1.0, lr, self.epsilon, wd)


@register
class OpenAIAdam(DecoupledAdam):
    """Adam with bias correction and decoupled weight decay, which trained OpenAI's GPT.

    For each weight ``w`` with gradient ``g``, at its update number ``t`` = 1, 2, ...::

        g = clip(g * rescale_grad)
        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g ** 2
        w = w - lr * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * mean / (sqrt(var) + epsilon)
        w = w - lr * wd * w

    The last line is left out for vectors (biases, layer normalization) unless `vector_l2`.

    Registered with MXNet as ``'openaiadam'``; the original is `OpenAIAdam` of
    pytorch-pretrained-bert. Its first update has the learning rate of step 1, and BERTAdam's of
    step 0; a schedule without `first_step` is set accordingly.

    Parameters
    ----------
    learning_rate, beta1, beta2, epsilon, max_grad_norm, **kwargs
        See `BERTAdam`.
    vector_l2 : bool
        Whether one-dimensional parameters also decay.
    """

    def __init__(self, learning_rate=None, *, epsilon=1e-8, vector_l2=False, **kwargs):
        super().__init__(learning_rate, epsilon=epsilon, **kwargs)
        self.vector_l2 = vector_l2
        if isinstance(self.lr_scheduler, Schedule) and self.lr_scheduler.first_step is None:
            self.lr_scheduler.first_step = 1

    def _step(self, index, weight, lr, wd):
        count = self._index_update_count[index]
        step = lr * math.sqrt(1 - self.beta2**count) / (1 - self.beta1**count)
        decays = weight.ndim > 1 or self.vector_l2
        return host.Step(step, 1.0, self.epsilon, 0.0, lr * wd if decays else 0.0)


@register
class LAMB(DecoupledAdam):
    """Adam with layerwise step sizes: each tensor's step has the length learning rate x its norm.

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
    CPUs MXNet's computes too small norms for large tensors, so its step for BERT base's word
    embedding is 8 % too long.

    Parameters
    ----------
    learning_rate, beta1, beta2, epsilon, max_grad_norm, **kwargs
        See `BERTAdam`.
    lower_bound, upper_bound : float, optional
        Bounds of ``norm(w)`` where it multiplies the step (the paper's phi).
    bias_correction : bool
        Whether the moments are divided by ``1 - beta ** t``, as in the paper. Google's code for
        ALBERT doesn't.

    Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
    algorithm 2; ``lamb_optimizer.py`` of google-research/albert.
    """

    def __init__(
        self,
        learning_rate=None,
        *,
        lower_bound=None,
        upper_bound=None,
        bias_correction=True,
        **kwargs,
    ):
        super().__init__(learning_rate, **kwargs)
        bounds = {'lower_bound': lower_bound, 'upper_bound': upper_bound}
        self._bounds = {name: bound for name, bound in bounds.items() if bound is not None}
        self.bias_correction = bias_correction

    def _step(self, index, weight, lr, wd):
        mean = root = 1.0  # divisors of the first moment, and of the second moment's square root
        if self.bias_correction:
            count = self._index_update_count[index]
            mean, root = 1 - self.beta1**count, math.sqrt(1 - self.beta2**count)
        return host.Step(root / mean, lr, self.epsilon * root, wd)

    def _has_ratio(self, index):
        parameter = self.param_dict.get(index)
        if parameter is not None:
            return parameter.wd_mult != 0
        name = self.idx2name.get(index, index)
        return self.wd_mult.get(index, self.wd_mult.get(name, 1.0)) != 0

    def _update_on_host(self, indices, updates):
        groups = {True: [], False: []}  # with the ratio of norms, and without
        for index, update in zip(indices, updates):
            groups[self._has_ratio(index)].append(update)
        super()._update_on_host(indices, groups[False])
        betas = self.beta1, self.beta2
        host.update_by_lamb(groups[True], betas, self.clip_gradient, **self._bounds)

    def _update_weight(self, index, weight, grad, state, scale, step, multi_precision):
        if not self._has_ratio(index):
            super()._update_weight(index, weight, grad, state, scale, step, multi_precision)
            return
        master, moments = state if multi_precision else (weight, state)
        if multi_precision:
            grad = grad.astype('float32')
        # in place, as the Adam operator does it
        mx.nd.broadcast_mul(grad, scale.astype(grad.dtype).reshape((1,) * grad.ndim), out=grad)
        # The direction is u / step; its length matters only where the ratio is left out.
        options = {**self._options(step), 'wd': step.decay / step.step}
        arrays, uncorrected = (master, grad, *moments), {'t': 1, 'bias_correction': False}
        direction = mx.nd.lamb_update_phase1(*arrays, **uncorrected, **options)
        norms = sum_of_squares(master).sqrt(), sum_of_squares(direction).sqrt() * step.step
        lr = step.factor * step.step
        mx.nd.lamb_update_phase2(master, direction, *norms, lr=lr, out=master, **self._bounds)
        if multi_precision:
            mx.nd.cast(master, dtype=weight.dtype, out=weight)
