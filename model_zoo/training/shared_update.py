"""Updates that the processes of one machine share out, in memory that all have mapped."""

import logging
import math
import mmap
import os
import secrets

import mxnet as mx
import numpy as np

from ..optimizer import host
from ..optimizer.adam import DecoupledAdam

__all__ = ['SharedUpdate']

logger = logging.getLogger(__name__)

_ALIGNED = 1024  # numbers: arrays begin at whole pages
_KINDS = 3  # weights, means and variances


class SharedUpdate:
    """Weights and moments that the processes have together, each of which updates a part of them.

    Each process computes gradients of its own, sums its part of all processes' gradients, and
    updates that part of the weights. So the machine updates each weight once, as a single process
    does, nothing is sent, and weights and moments take memory once.

    Make it with `share`, and end it with `release`.
    """

    def __init__(self, parameters, trainer, workers, memory):
        self._parameters, self._trainer, self._workers = parameters, trainer, workers
        sizes = [parameter.list_data()[0].size for parameter in parameters]
        starts = np.cumsum([0, *map(_padded, sizes)]).tolist()
        rows = [
            [row[start : start + size] for start, size in zip(starts, sizes)]
            for row in np.frombuffer(memory, np.float32).reshape(workers.size + _KINDS, -1)
        ]
        self._gradients, joint = rows[: workers.size], [*zip(*rows[workers.size :])]
        self._own = [*map(_array, self._gradients[workers.rank], parameters)]
        if workers.rank == 0:
            for views, values in zip(joint, self._values()):
                for view, value in zip(views, values):
                    view[:] = value.asnumpy().ravel()
        self._set([[_array(view, p) for view in views] for views, p in zip(joint, parameters)])
        for parameter, grad in zip(parameters, self._own):
            parameter._grad = [grad]
            mx.autograd.mark_variables(parameter.list_data(), [grad], parameter.grad_req)
        trainer._optimizer.workers = workers
        workers.wait()

    @classmethod
    def share(cls, parameters, trainer, workers):
        """A shared update where it is possible, or None; all workers have to call this.

        That is in float32 on the CPUs of one machine with Linux, with our Adam or LAMB, for weights
        of one or two dimensions: MXNet arranges those of convolutions otherwise, in place.

        Parameters
        ----------
        parameters : list of mxnet.gluon.Parameter
            The trained ones. All get worker 0's values, and their gradients become zero.
        trainer : mxnet.gluon.Trainer
        workers : Workers
        """
        if not workers.share_memory or not _can_be_shared(parameters, trainer):
            return None
        numbers = sum(_padded(parameter.list_data()[0].size) for parameter in parameters)
        if not trainer._kv_initialized:
            trainer._init_kvstore()
        memory = _map_together(4 * numbers * (workers.size + _KINDS), workers)
        if memory is None:
            logger.info('no memory to share: each process updates all weights')
            return None
        return cls(parameters, trainer, workers, memory)

    def _values(self):
        """Weight, mean and variance of each parameter."""
        updater = self._trainer._updaters[0]
        for index, parameter in self._indices():
            weight = parameter.list_data()[0]
            if index not in updater.states:
                updater.states[index] = self._trainer._optimizer.create_state(index, weight)
            yield (weight, *updater.states[index])

    def _set(self, values):
        """Replace the arrays of `_values`."""
        updater = self._trainer._updaters[0]
        for (index, parameter), (weight, *moments) in zip(self._indices(), values):
            parameter._data = [weight]
            updater.states[index], updater.states_synced[index] = tuple(moments), True

    def _indices(self):
        """The parameters with their numbers in the trainer."""
        indices = {id(parameter): index for index, parameter in enumerate(self._trainer._params)}
        return [(indices[id(parameter)], parameter) for parameter in self._parameters]

    def release(self):
        """Give this process weights and moments of its own again."""
        mx.nd.waitall()
        self._set([[array.copy() for array in values] for values in self._values()])
        for parameter in self._parameters:
            parameter._init_grad()
        self._trainer._optimizer.workers = None

    def sum_gradients(self):
        """Sum this process's part of the gradients.

        Returns
        -------
        mxnet.nd.NDArray
            The norm of all gradients' sums, shape (1,), float32.
        """
        if any(p.list_grad()[0] is not own for p, own in zip(self._parameters, self._own)):
            raise RuntimeError('gradients have other arrays than at `Updater.prepare`')
        host.flatten(self._own)  # computed, and in MXNet's usual order
        self._workers.wait()
        rank, size = self._workers.rank, self._workers.size
        own_first = [*self._gradients[rank:], *self._gradients[:rank]]
        groups = [[host.part_of(view, rank, size) for view in each] for each in zip(*own_first)]
        squares = self._workers.sum([host.add_to_first(groups)])
        return mx.nd.array([math.sqrt(squares[0])])


def _can_be_shared(parameters, trainer):
    """Whether NumPy does all of the update, piece by piece."""
    optimizer = trainer._optimizer
    if not isinstance(optimizer, DecoupledAdam) or optimizer.max_grad_norm:
        return False  # others, and the norm of a single gradient, need all of it
    if {id(p) for p in trainer._params if p.grad_req != 'null'} != {id(p) for p in parameters}:
        return False
    return all(
        len(parameter.list_data()) == 1
        and len(parameter.shape) <= 2
        and host.are_on_host([*parameter.list_data(), *parameter.list_grad()])
        for parameter in parameters
    )


def _padded(size):
    return -(-size // _ALIGNED) * _ALIGNED


def _array(view, parameter):
    """A part of the shared memory as an array of MXNet."""
    return mx.nd.from_numpy(view.reshape(parameter.shape), zero_copy=True)


def _map_together(num_bytes, workers):
    """Memory of zeros that all of the machine's processes have mapped, or None.

    It has no name and ends with the last process, however that ends.
    """
    place, file, memory = np.zeros(3), None, None
    if workers.rank == 0 and hasattr(os, 'memfd_create'):
        try:
            file = os.memfd_create('model_zoo')
            os.posix_fallocate(file, 0, num_bytes)  # or who first writes to it would be killed
            memory = mmap.mmap(file, num_bytes)
            place[:] = os.getpid(), file, secrets.randbits(48)
            memory[:8] = int(place[2]).to_bytes(8, 'little')
        except OSError as error:
            logger.info('%.1f GB to share: %s', num_bytes / 1e9, error)
            place[:] = 0
    process, descriptor, token = workers.sum(place).astype(np.int64).tolist()
    if workers.rank > 0 and process:
        memory = _map(f'/proc/{process}/fd/{descriptor}', num_bytes, token)
    missing = workers.sum([memory is None])[0]
    if file is not None:
        os.close(file)
    if missing:
        return None
    if workers.rank == 0:
        memory[:8] = bytes(8)
    workers.wait()
    return memory


def _map(path, num_bytes, token):
    """Another process's memory, or None if it is something else: containers hide processes."""
    try:
        with open(path, 'r+b', buffering=0) as file:
            memory = mmap.mmap(file.fileno(), num_bytes)
    except (OSError, ValueError):
        return None
    return memory if int.from_bytes(memory[:8], 'little') == token else None
