"""BERT's Adam."""

from .adam import DecoupledAdam, register

__all__ = ['BERTAdam']


@register
class BERTAdam(DecoupledAdam):
    """Adam with decoupled weight decay and without bias correction, as BERT was trained with.

    For each weight ``w`` with gradient ``g``::

        g = clip(g * rescale_grad)
        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g ** 2
        w = w - lr * (mean / (sqrt(var) + epsilon) + wd * w)

    It is registered with MXNet as ``'bertadam'``. It has the arguments of GluonNLP's optimizer of
    that name and replaces it. With ``max_grad_norm=1.0, wd=0.01`` it equals `BertAdam` of
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
        Clip each parameter's gradient separately to this L2 norm, as the original does. None, the
        default, and values that aren't positive mean no clipping: the training scripts clip by the
        norm of all gradients together, as Google's BERT does.
    **kwargs
        Arguments of :class:`mxnet.optimizer.Optimizer`, such as

        wd : float, default 0
            Weight decay (0.01 in the original). :func:`model_zoo.optimizer.disable_weight_decay`
            exempts biases and layer normalization.
        lr_scheduler : mxnet.lr_scheduler.LRScheduler
            See :mod:`model_zoo.optimizer.schedules`.
        clip_gradient : float
            Bound of each gradient element, after the norm was clipped.
        multi_precision : bool
            Update float16 weights through float32 copies of them.

    Notes
    -----
    Gradients are multiplied by `rescale_grad` and clipped in place.

    A gradient whose scale (`rescale_grad` times the factor by which its norm is clipped) is zero
    or isn't finite is skipped: its weight and moments stay as they are.

    Examples
    --------
    >>> from model_zoo.optimizer import WarmupLinearSchedule
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> schedule = WarmupLinearSchedule(warmup=0.1, t_total=1000, base_lr=2e-5)
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'bertadam',
    ...                            {'wd': 0.01, 'lr_scheduler': schedule})
    """

    def __init__(
        self,
        learning_rate=None,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-6,
        max_grad_norm=None,
        **kwargs,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, max_grad_norm, **kwargs)

    def _rates(self, index, weight, lr, wd):
        return 1.0, lr, wd, 0.0
