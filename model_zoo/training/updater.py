"""Updates of the weights."""

import contextlib
import math

import mxnet as mx

from ..optimizer import clip_grad_global_norm, grad_global_norm
from ..optimizer.adam import DecoupledAdam

__all__ = ['Updater']


class Updater:
    """Changes the weights of a block: sums the gradients, clips them, and sets the learning rate.

    Parameters
    ----------
    block : mxnet.gluon.Block
    trainer : mxnet.gluon.Trainer
        With ``update_on_kvstore=False``, and without an lr_scheduler of its own if `schedule` is
        given.
    schedule : callable, optional
        Number of the update, from 1 -> learning rate (:mod:`model_zoo.optimizer.schedules`);
        default: the rate of `trainer`.
    max_grad_norm : float, optional
        Largest norm of all gradients together; None doesn't clip.
    loss_scale : LossScale, optional
        For float16.

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
        self.parameters = [
            p for p in block.collect_params().values() if p.grad_req != 'null' and p in trained
        ]

    @property
    def scale(self):
        """The factor of the loss: 1 but in float16."""
        return 1.0 if self.loss_scale is None else self.loss_scale.value

    @contextlib.contextmanager
    def adding_gradients(self):
        """While entered, a backward pass adds to the gradients that are there."""
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
        """Do an update with the gradients that are there.

        Parameters
        ----------
        number : int
            From 1.
        workers : Workers

        Returns
        -------
        lr : float
        norm : NDArray, shape (1,)
            Of the gradient, before it was clipped.
        skipped : bool
            Whether the update was skipped, because float16 gradients overflowed.
        """
        if self._schedule is not None:
            self.trainer.set_learning_rate(self._schedule(number))
        lr = self.trainer.learning_rate
        self.trainer.allreduce_grads()
        workers.sum_gradients(self.parameters)
        scale = self.scale
        if self._max_grad_norm is None:
            norm = grad_global_norm(self.parameters)
        elif isinstance(self.trainer._optimizer, DecoupledAdam):
            # it takes the factor as an array, which saves writing and reading all gradients
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
