"""The processes that train one model together."""

import contextlib

import mxnet as mx
import numpy as np

from ..errors import InputError, MissingExtraError

#: size of a bucket. Small ones can be summed early, large ones at a higher rate.
BUCKET_BYTES = 2**25
_ALIGNED = 16  # elements: gradients begin at whole cache lines


def bucket_gradients(parameters, size=BUCKET_BYTES):
    """Return the gradients of parameters as a few long arrays."""
    # A backward pass computes gradients from the last layer to the first. Buckets are filled in
    # that order, so each is complete as early as possible, and can be summed while the rest is
    # computed. The parameters' own gradient arrays become views of the buckets. Make buckets
    # before the first backward pass: a hybridized block with a static shape keeps writing to the
    # arrays that it has seen first.
    return [_joined(group) for group in _groups(parameters, size)]


def _joined(group):
    """Make the gradients of a group views of one array, and return it."""
    first = group[0].list_grad()[0]
    if len(group) == 1:
        return first
    starts = np.cumsum([0, *(_padded(parameter) for parameter in group)])
    flat = mx.nd.zeros(int(starts[-1]), ctx=first.context, dtype=first.dtype)
    for parameter, start in zip(group, starts.tolist()):
        grad = parameter.list_grad()[0]
        view = flat[start : start + grad.size].reshape(grad.shape)
        parameter._grad = [view]
        mx.autograd.mark_variables(parameter.list_data(), [view], parameter.grad_req)
    return flat


def _padded(parameter):
    size = int(np.prod(parameter.shape))
    return -(-size // _ALIGNED) * _ALIGNED


def _groups(parameters, size):
    """Parameters from the last one on, in groups of one type with at most `size` bytes."""
    group, room, dtype = [], 0, None
    for parameter in reversed(parameters):
        num_bytes = _padded(parameter) * np.dtype(parameter.dtype).itemsize
        if group and (num_bytes > room or np.dtype(parameter.dtype) != dtype):
            yield group
            group = []
        if not group:
            room, dtype = size, np.dtype(parameter.dtype)
        group.append(parameter)
        room -= num_bytes
    if group:
        yield group


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

    def prepare(self, parameters):
        """Arrange the gradients of parameters for summing; before the first backward pass."""

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

    def __init__(self, compression=None, bucket_bytes=BUCKET_BYTES):
        try:
            import horovod.mxnet as hvd
        except ImportError as error:
            raise MissingExtraError(
                "horovod, built for MXNet, is needed for this and is not installed: 'make horovod' "
                "in the project's folder builds it; elsewhere HOROVOD_WITH_MXNET=1 pip install "
                "--no-build-isolation 'gluon-transformer-zoo[horovod]'"
            ) from error
        hvd.init()
        self._hvd, self._compression = hvd, compression
        self._bucket_bytes, self._buckets = bucket_bytes, None
        self.rank, self.size, self.local_rank = hvd.rank(), hvd.size(), hvd.local_rank()

    def sum(self, values):
        array = mx.nd.array(values, dtype='float64')
        # reading it waits for this sum only: nothing else in the device's queue depends on it
        return self._hvd.allreduce(array, op=self._hvd.Sum, name='numbers').asnumpy()

    def prepare(self, parameters):
        self._buckets = bucket_gradients(parameters, self._bucket_bytes)

    def sum_gradients(self, parameters):
        # each sum begins once its bucket is complete, during the rest of the backward pass
        for number, bucket in enumerate(self._buckets):
            self._sum(bucket, f'gradients{number}', -number)

    def _sum(self, array, name, priority):
        """Sum an array in place."""
        sent = array
        if self._compression and array.dtype == np.float32:
            sent = mx.nd.cast(array * _SCALE, dtype=self._compression)
        self._hvd.allreduce_(sent, op=self._hvd.Sum, name=name, priority=priority)
        if sent is not array:
            mx.nd.cast(sent, dtype=array.dtype, out=array)
            array *= 1 / _SCALE

    def broadcast(self, block):
        for number, parameter in enumerate(block.collect_params().values()):
            value = parameter.data()
            self._hvd.broadcast_(value, root_rank=0, name=f'parameter{number}')
        mx.nd.waitall()


def make_workers(comm_backend=None, allreduce_dtype=None):
    """Return the workers of a backend; a single process sends nothing."""
    if comm_backend == 'horovod':
        workers = HorovodWorkers(allreduce_dtype)
        return workers if workers.size > 1 else Workers()
    if allreduce_dtype is not None:
        raise InputError('needs `comm_backend` horovod', field='allreduce_dtype')
    return Workers()
