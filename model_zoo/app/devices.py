"""Where a training computes, and in what precision: flags of all scripts that train."""

import mxnet as mx

from ..errors import InputError
from ..util.devices import check_gpu
from . import cli

__all__ = ['add_device_arguments', 'check_device_arguments', 'find_contexts']


def add_device_arguments(parser):
    """Add ``--gpus``, ``--dtype``, ``--loss_scale``, ``--mirror`` and ``--optimize_on_cpu``.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Or a group of its arguments.
    """
    add = parser.add_argument
    add('--gpus', help="such as 0 or 0,2,5; each takes batches of its own; '': the CPU")
    add('--dtype', default='float32', choices=['float32', 'float16', 'bfloat16'])
    add('--loss_scale', type=float, help='of float16: keep the loss scale at this number, such as '
        '128; 0, the default: it adapts itself')  # fmt: skip
    add('--mirror', action='store_true', help='less memory: layers are computed twice')
    add('--optimize_on_cpu', action='store_true', help="keep the optimizer's states off the GPU")


def check_device_arguments(args):
    """Raise InputError, naming the flag, if a value of `add_device_arguments` can't be used."""
    if args.loss_scale is not None and not 0 <= args.loss_scale < float('inf'):
        raise InputError(f'--loss_scale {args.loss_scale}: give a number from 0 up')
    args.loss_scale = args.loss_scale or None


def find_contexts(gpus, workers, gpu=None):
    """The devices of this process: several GPUs, one, or the CPU.

    Parameters
    ----------
    gpus : str or None
        Value of ``--gpus``; several workers on a machine get one each.
    workers : Workers
    gpu : int, optional
        Value of ``--gpu``; each of several workers has its own GPU instead.

    Returns
    -------
    list of mxnet.Context
    """
    if gpus and gpu is not None:
        raise InputError(f'--gpu {gpu} and --gpus {gpus} both name the GPUs: give one')
    if not (gpus or '').strip():
        if workers.size > 1 and gpu is not None:
            gpu = workers.local_rank
        return [cli.get_ctx(gpu)]
    try:
        numbers = [int(number) for number in gpus.split(',')]
    except ValueError:
        raise InputError(f'--gpus {gpus!r}: give numbers, such as 0 or 0,2,5') from None
    if len(set(numbers)) < len(numbers):
        raise InputError(f'--gpus {gpus}: give each number once')
    if workers.size > 1:
        if workers.local_rank >= len(numbers):
            raise InputError(
                f'--gpus {gpus}: there are more workers on this machine than these GPUs'
            )
        numbers = [numbers[workers.local_rank]]
    for number in numbers:
        check_gpu(number, f'--gpus {gpus}')
    return [mx.gpu(number) for number in numbers]
