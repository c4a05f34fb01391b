"""GPT's Adam."""

import math

from .adam import DecoupledAdam, register
from .schedules import Schedule

__all__ = ['OpenAIAdam']


@register
class OpenAIAdam(DecoupledAdam):
    """Adam with bias correction and decoupled weight decay, as OpenAI's GPT was trained with.

    For each weight ``w`` with gradient ``g``, at its update number ``t`` = 1, 2, ...::

        g = clip(g * rescale_grad)
        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g ** 2
        w = w - lr * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * mean / (sqrt(var) + epsilon)
        w = w - lr * wd * w

    The last line is left out for vectors (biases, layer normalization) unless `vector_l2`.

    It is registered with MXNet as ``'openaiadam'``. The original is `OpenAIAdam` of
    pytorch-pretrained-bert (``optimization_openai.py``). At the first update it asks its schedule
    for step 1, while BERT's asks for step 0. A schedule of :mod:`model_zoo.optimizer.schedules`
    that was made without `first_step` is set accordingly.

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
    vector_l2 : bool
        Whether parameters of one dimension are decayed too.
    max_grad_norm : float, optional
        Clip each parameter's gradient separately to this L2 norm. None, the default, and values
        that aren't positive mean no clipping.
    **kwargs
        Arguments of :class:`mxnet.optimizer.Optimizer`, see :class:`BERTAdam`.
    """

    def __init__(
        self,
        learning_rate=None,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        vector_l2=False,
        max_grad_norm=None,
        **kwargs,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, max_grad_norm, **kwargs)
        self.vector_l2 = vector_l2
        if isinstance(self.lr_scheduler, Schedule) and self.lr_scheduler.first_step is None:
            self.lr_scheduler.first_step = 1

    def _rates(self, index, weight, lr, wd):
        count = self._index_update_count[index]
        step = lr * math.sqrt(1 - self.beta2**count) / (1 - self.beta1**count)
        decayed = weight.ndim > 1 or self.vector_l2
        return step, 1.0, 0.0, lr * wd if decayed else 0.0
