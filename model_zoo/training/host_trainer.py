"""A Trainer for models on GPUs that keeps the optimizer's states in the host's memory."""

import mxnet as mx

__all__ = ['HostTrainer']


class HostTrainer(mx.gluon.Trainer):
    """`mxnet.gluon.Trainer` that updates on the CPU.

    Adam keeps two numbers per weight, three in float16. Here they take no GPU memory, but each
    update copies the gradients and weights to the CPU, and the weights back.

    Parameters
    ----------
    params, optimizer, optimizer_params
        See :class:`mxnet.gluon.Trainer`; needs ``update_on_kvstore=False``.
    """

    def _update(self, ignore_stale_grad=False):
        trained = [
            (index, parameter)
            for index, parameter in enumerate(self._params)
            if parameter.grad_req != 'null'
        ]
        host = mx.cpu()
        updater = self._updaters[0]  # one for all devices, whose gradients are the same
        for index, parameter in trained:
            weight = parameter.list_data()[0].copyto(host)
            grad = parameter.list_grad()[0].copyto(host)
            # states that a checkpoint has filled were made where the weights are
            updater.states_synced[index] = False
            updater(index, grad, weight)
            for data in parameter.list_data():
                weight.copyto(data)
                data._fresh_grad = False
