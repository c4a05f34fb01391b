"""Updates of the weights."""

import contextlib
import math

import mxnet as mx

from ..optimizer import clip_grad_global_norm, grad_global_norm
from ..optimizer.adam import DecoupledAdam
from .shared_update import SharedUpdate

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
        self._trainer_scale, self._shared = trainer._scale, None
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

    def prepare(self, workers):
        """Arrange the updates of several workers; before the first backward pass.

        All workers have to call this. The gradients become zero.
        """
        self._shared = SharedUpdate.share(self.parameters, self.trainer, workers)
        if self._shared is None:
            workers.prepare(self.parameters)

    def release(self):
        """Give this process what it shares with others as its own; after the last update."""
        if self._shared is not None:
            self._shared.release()
        self._shared = None

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
        scale = self.scale
        norm = self._sum_and_clip(workers)
        if self.loss_scale is not None:
            finite = math.isfinite(norm.asscalar())
            self.loss_scale.update(finite)
            if not finite:
                return lr, norm, True
        self.trainer.update(scale)
        if self._shared is not None:
            workers.wait()  # until all have updated their part
        return lr, norm / scale, False

    def _sum_and_clip(self, workers):
        """Sum the gradients over devices and workers; returns their norm before clipping."""
        largest = None if self._max_grad_norm is None else self._max_grad_norm * self.scale
        if self._shared is not None:
            norm = self._shared.sum_gradients()
        else:
            self.trainer.allreduce_grads()
            workers.sum_gradients(self.parameters)
            if largest is not None and not isinstance(self.trainer._optimizer, DecoupledAdam):
                return clip_grad_global_norm(self.parameters, largest)
            norm = grad_global_norm(self.parameters)
        if largest is not None:
            # the optimizer takes the factor, which saves writing and reading all gradients
            self.trainer._scale = self._trainer_scale * largest / mx.nd.maximum(norm, largest)
        return norm
