"""The processes that train one model together."""

import contextlib

import mxnet as mx
import numpy as np

from ..errors import InputError, MissingExtraError

# factor of gradients that are sent in float16, so that fewer are too small for it
_SCALE = 128.0


class Workers:
    """A single process; also the interface of several."""

    rank, size, local_rank = 0, 1, 0

    def sum(self, values):
        """Sums of numbers over the workers; all of them have to call this."""
        return np.asarray(values, np.float64)

    def wait(self):
        """Wait until all workers have called this."""
        self.sum(np.zeros(1))

    def sum_gradients(self, parameters):
        """Replace the parameters' gradients by their sums over the workers."""

    @contextlib.contextmanager
    def first_alone(self):
        """A context that worker 0 runs through first, and then the others."""
        if self.rank > 0:
            self.wait()
        yield
        if self.rank == 0:
            self.wait()

    def broadcast(self, block):
        """Copy worker 0's values of the parameters of `block` to all workers."""


class HorovodWorkers(Workers):
    """The processes that ``horovodrun`` has started, each with one device.

    Parameters
    ----------
    compression : {None, 'float16'}
        Format in which gradients are sent. float16 takes half of the bytes; its numbers have 11
        binary digits, and values below 5e-10 are lost.
    """

    def __init__(self, compression=None):
        try:
            import horovod.mxnet as hvd
        except ImportError as error:
            cure = "'make horovod' in a clone of the project builds it"
            raise MissingExtraError(f'horovod, built for MXNet, is missing: {cure}') from error
        hvd.init()
        self._hvd, self._compression = hvd, compression
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()

    def sum(self, values):
        array = mx.nd.array(values, dtype='float64')
        # reading it waits for this sum only: nothing else in the device's queue depends on it
        return self._hvd.allreduce(array, op=self._hvd.Sum, name='numbers').asnumpy()

    def sum_gradients(self, parameters):
        # the backward pass computes the last ones first; each sum begins during the rest of it
        for number in reversed(range(len(parameters))):
            grad = sent = parameters[number].list_grad()[0]
            if self._compression and grad.dtype == np.float32:
                sent = mx.nd.cast(grad * _SCALE, dtype=self._compression)
            self._hvd.allreduce_(sent, op=self._hvd.Sum, name=f'gradient{number}', priority=number)
            if sent is not grad:
                mx.nd.cast(sent, dtype=grad.dtype, out=grad)
                grad *= 1 / _SCALE

    def broadcast(self, block):
        for number, parameter in enumerate(block.collect_params().values()):
            self._hvd.broadcast_(parameter.data(), root_rank=0, name=f'parameter{number}')
        mx.nd.waitall()


def make_workers(comm_backend=None, allreduce_dtype=None):
    """Return the workers of a backend; a single process sends nothing."""
    if comm_backend == 'horovod':
        workers = HorovodWorkers(allreduce_dtype)
        return workers if workers.size > 1 else Workers()
    if allreduce_dtype is not None:
        raise InputError('needs `comm_backend` horovod', field='allreduce_dtype')
    return Workers()
