"""Whether MXNet can use a device."""

import mxnet as mx

from ..errors import InputError

__all__ = ['check_gpu']


def check_gpu(number, given):
    """Raise InputError if MXNet has no GPU of this number.

    Parameters
    ----------
    number : int
    given : str
        What asked for it, and its value: the message begins with it.
    """
    if not mx.runtime.Features().is_enabled('CUDA'):
        raise InputError(
            f'{given}: this build of MXNet ({mx.__version__}) has no GPU support; install a CUDA '
            'build such as mxnet-cu112, or leave this out to run on the CPU'
        )
    count = mx.context.num_gpus()
    if not 0 <= number < count:
        raise InputError(f'{given}: this machine has {count} GPU(s), numbered from 0')
