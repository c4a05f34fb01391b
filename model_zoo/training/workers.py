"""The processes that train one model together."""

import contextlib

import mxnet as mx
import numpy as np

from ..errors import InputError, MissingExtraError

__all__ = ['BACKENDS', 'HorovodWorkers', 'Workers', 'make_workers']

#: values of `comm_backend`
BACKENDS = ('device', 'horovod')


class Workers:
    """A single process; also the interface of several.

    Attributes
    ----------
    rank, size : int
        Number of this process, and of all. Number 0 writes files and logs.
    local_rank : int
        Number of this process on its machine, and of its GPU.
    """

    rank, size, local_rank = 0, 1, 0

    def sum(self, values):
        """Sums of numbers over the workers; all of them have to call this.

        Parameters
        ----------
        values : numpy.ndarray
            Of the same shape in all workers.

        Returns
        -------
        numpy.ndarray, float64
        """
        return np.asarray(values, np.float64)

    def sum_gradients(self, parameters):
        """Replace the parameters' gradients by their sums over the workers."""

    @contextlib.contextmanager
    def first_alone(self):
        """A context that worker 0 runs through first, and then the others."""
        if self.rank > 0:
            self.sum(np.zeros(1))
        yield
        if self.rank == 0:
            self.sum(np.zeros(1))

    def broadcast(self, block):
        """Copy worker 0's values of the parameters of `block` to all workers."""


class HorovodWorkers(Workers):
    """The processes that ``horovodrun`` has started, each with one device.

    Raises
    ------
    MissingExtraError
        If Horovod isn't installed, or wasn't built for MXNet.
    """

    def __init__(self):
        try:
            import horovod.mxnet as hvd
        except ImportError as error:
            raise MissingExtraError(
                "horovod, built for MXNet, is needed for this and is not installed: 'make horovod' "
                "in the project's folder builds it; elsewhere HOROVOD_WITH_MXNET=1 pip install "
                "--no-build-isolation 'gluon-transformer-zoo[horovod]'"
            ) from error
        hvd.init()
        self._hvd = hvd
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()

    def sum(self, values):
        if self.size == 1:
            return super().sum(values)
        array = mx.nd.array(values, dtype='float64')
        # reading it waits for this sum only: nothing else in the device's queue depends on it
        return self._hvd.allreduce(array, op=self._hvd.Sum, name='numbers').asnumpy()

    def sum_gradients(self, parameters):
        if self.size == 1:
            return
        # numbers for names: Gluon's own count the blocks that a process has made before
        for number, parameter in enumerate(parameters):
            self._hvd.allreduce_(
                parameter.list_grad()[0],
                op=self._hvd.Sum,
                name=f'gradient{number}',
                priority=-number,
            )

    def broadcast(self, block):
        if self.size == 1:
            return
        for number, parameter in enumerate(block.collect_params().values()):
            value = parameter.data()
            self._hvd.broadcast_(value, root_rank=0, name=f'parameter{number}')
        mx.nd.waitall()


def make_workers(comm_backend=None):
    """The workers of a backend.

    Parameters
    ----------
    comm_backend : {'device', 'horovod'}, optional
        'device', the default, is a single process.

    Raises
    ------
    InputError
        If there is no such backend.
    MissingExtraError
        If Horovod isn't installed.
    """
    if comm_backend in (None, 'device'):
        return Workers()
    if comm_backend == 'horovod':
        return HorovodWorkers()
    hint = ''
    if comm_backend.startswith('dist'):
        hint = "; for several machines use horovod, which replaces MXNet's parameter servers here"
    raise InputError(f'`comm_backend` {comm_backend}: give one of {", ".join(BACKENDS)}{hint}')
