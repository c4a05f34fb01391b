"""Updates of the weights."""

import contextlib
import dataclasses
import inspect
import logging
import math
import re

import mxnet as mx

from ..errors import InputError, UnknownNameError
from ..optimizer import clip_grad_global_norm, disable_weight_decay, grad_global_norm
from ..optimizer.adam import DecoupledAdam

logger = logging.getLogger(__name__)

_HOPELESS = 100  # overflows in a row that are too many for a fixed scale


@dataclasses.dataclass
class LossScale:
    """A factor of the loss. Updates with overflowed gradients are skipped.

    A dynamic scale is halved when a gradient overflows, and doubled after `window` updates without
    an overflow: the rule of Micikevicius et al., "Mixed Precision Training", section 3.2, and of
    MXNet's ``contrib.amp`` (its scaler can't be saved and restored).

    Parameters
    ----------
    value : float
        A power of 2, so that dividing by it is exact.
    good : int
        Updates since the last overflow or doubling.
    skipped : int
        Updates left out so far.
    window : int
    largest : float
    dynamic : bool
        Else the value stays as it is, as with the ``--loss_scale`` of pytorch-pretrained-BERT.
    overflows : int
        Overflows since the last update without one.
    """

    value: float = 2.0**16
    good: int = 0
    skipped: int = 0
    window: int = 2000
    largest: float = 2.0**24
    dynamic: bool = True
    overflows: int = 0

    def update(self, finite):
        """Adapt the scale to an update with finite gradients, or without."""
        if not finite:
            self.good, self.skipped, self.overflows = 0, self.skipped + 1, self.overflows + 1
            if self.dynamic:
                self.value /= 2
            return
        self.good, self.overflows = self.good + 1, 0
        if self.dynamic and self.good == self.window:
            self.value, self.good = min(2 * self.value, self.largest), 0

    @property
    def exhausted(self):
        """Whether gradients overflow for another reason than the scale."""
        return self.value < 1 if self.dynamic else self.overflows >= _HOPELESS


def freeze_parameters(block, layers):
    """Keep the embeddings and the first layers of a block's encoder out of the training.

    Parameters
    ----------
    block : ZooBlock
    layers : int
        The poolers and heads are trained even if this is the number of all layers.
    """
    total = block.config.num_layers
    if layers > total:
        raise InputError(f'{layers}: the model has {total} layers', field='freeze')
    for name, parameter in block.parameters_by_name().items():
        layer = re.match(r'encoder\.layers\.(\d+)\.', name)
        is_embedding = name.startswith(('word_embed.', 'token_type_embed.', 'encoder.'))
        if is_embedding if layer is None else int(layer[1]) < layers:
            parameter.grad_req = 'null'


class HostTrainer(mx.gluon.Trainer):
    """`mxnet.gluon.Trainer` that updates on the CPU.

    Adam keeps two numbers per weight, three in float16. Here they take no GPU memory, but each
    update copies the gradients and weights to the CPU, and the weights back.
    """

    def _update(self, ignore_stale_grad=False):
        updater = self._updaters[0]  # one for all devices, whose gradients are the same
        for index, parameter in enumerate(self._params):
            if parameter.grad_req == 'null':
                continue
            arrays = parameter.list_data()[0], parameter.list_grad()[0]
            weight, grad = (array.copyto(mx.cpu()) for array in arrays)
            # states that a checkpoint has filled were made where the weights are
            updater.states_synced[index] = False
            updater(index, grad, weight)
            for data in parameter.list_data():
                weight.copyto(data)
                data._fresh_grad = False


class Updater:
    """Changes the weights of a block: sums the gradients, clips them, and sets the learning rate.

    Parameters
    ----------
    trainer : mxnet.gluon.Trainer
        With ``update_on_kvstore=False``, and without its own lr_scheduler if `schedule` is given.
    schedule : callable, optional
        Number of the update, from 1 -> learning rate (:class:`~model_zoo.optimizer.Schedule`);
        default: the rate of `trainer`.

    Attributes
    ----------
    parameters : list of mxnet.gluon.Parameter
        The trained ones.
    """

    def __init__(self, block, trainer, schedule=None, max_grad_norm=1.0, loss_scale=None):
        self.block, self.trainer, self.loss_scale = block, trainer, loss_scale
        self._schedule, self._max_grad_norm = schedule, max_grad_norm
        self._trainer_scale = trainer._scale
        # In the block's order, not the trainer's: that sorts by name, and Gluon's names count on
        # from earlier blocks, so that the order and the norm's rounding would depend on them.
        trained = set(trainer._params)
        known = block.collect_params().values()
        self.parameters = [p for p in known if p.grad_req != 'null' and p in trained]

    @property
    def scale(self):
        """The factor of the loss: 1 but in float16."""
        return 1.0 if self.loss_scale is None else self.loss_scale.value

    @contextlib.contextmanager
    def adding_gradients(self):
        """While entered, a backward pass adds to the gradients."""
        for parameter in self.parameters:
            parameter.grad_req = 'add'
        try:
            yield
        finally:
            for parameter in self.parameters:
                parameter.grad_req = 'write'

    def zero_gradients(self):
        """Set all gradients to zero."""
        for parameter in self.parameters:
            parameter.zero_grad()
            for data in parameter.list_data():
                data._fresh_grad = True  # for the trainer: it has been set, if not by backward()

    def update(self, number, workers):
        """Do an update with the current gradients."""
        if self._schedule is not None:
            self.trainer.set_learning_rate(self._schedule(number))
        lr = self.trainer.learning_rate
        self.trainer.allreduce_grads()
        workers.sum_gradients(self.parameters)
        scale = self.scale
        if self._max_grad_norm is None:
            norm = grad_global_norm(self.parameters)
        elif isinstance(self.trainer._optimizer, DecoupledAdam):
            # this optimizer takes the factor as an array, so that gradients stay as they are
            largest = self._max_grad_norm * scale
            norm = grad_global_norm(self.parameters)
            self.trainer._scale = self._trainer_scale * largest / mx.nd.maximum(norm, largest)
        else:
            norm = clip_grad_global_norm(self.parameters, self._max_grad_norm * scale)
        if self.loss_scale is not None:
            finite = math.isfinite(norm.asscalar())
            self.loss_scale.update(finite)
            if not finite:
                return lr, norm, True
        self.trainer.update(scale)
        return lr, norm / scale, False


def make_updater(settings, model, schedule, max_grad_norm=1.0, decay_all=False, options=None):
    """Return the `Updater` that the settings describe, with options of the optimizer."""
    registry = mx.optimizer.Optimizer.opt_registry
    UnknownNameError.check('optimizer', settings.optimizer.lower(), registry)
    optimizer = registry[settings.optimizer.lower()]
    options = {'wd': settings.wd, **(options or {})}
    is_ours = issubclass(optimizer, DecoupledAdam)
    if is_ours or 'epsilon' in inspect.signature(optimizer.__init__).parameters:
        options['epsilon'] = settings.epsilon
    if 'max_grad_norm' in options and not is_ours:
        raise InputError('must be bertadam or openaiadam with `clip_each`', field='optimizer')
    if settings.dtype == 'float16':
        options['multi_precision'] = True  # the weights follow copies in float32
    if not decay_all:
        disable_weight_decay(model)
    trainer = HostTrainer if settings.optimize_on_cpu else mx.gluon.Trainer
    trainer = trainer(model.collect_params(), settings.optimizer, options, update_on_kvstore=False)
    loss_scale = None
    if settings.dtype == 'float16':
        fixed = settings.loss_scale
        loss_scale = LossScale(fixed, dynamic=False) if fixed else LossScale()
    elif settings.loss_scale:
        logger.warning('`loss_scale` has an effect with `dtype` float16 only')
    return Updater(model, trainer, schedule, max_grad_norm, loss_scale)
