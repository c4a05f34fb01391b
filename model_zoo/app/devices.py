"""The devices of a command: the CPU, a GPU or several. MXNet is loaded when one is asked for."""

from ..errors import InputError


def get_ctx(gpu=None, field='gpu'):
    """Return the MXNet context for a flag such as ``--gpu``: the CPU for None, else that GPU."""
    import mxnet as mx

    from ..util.arrays import check_gpu

    if gpu is None:
        return mx.cpu()
    check_gpu(gpu, field)
    return mx.gpu(gpu)


def find_contexts(gpus, workers, gpu=None):
    """Return the devices of this process: several GPUs, one, or the CPU."""
    if not (gpus or '').strip():
        if workers.size > 1 and gpu is not None:
            gpu = workers.local_rank
        return [get_ctx(gpu)]
    try:
        numbers = [int(number) for number in gpus.split(',')]
    except ValueError:
        raise InputError(f'{gpus!r}: give numbers, such as 0 or 0,2,5', field='gpus') from None
    if workers.size > 1:
        numbers = numbers[workers.local_rank :][:1]
        if not numbers:
            raise InputError(f'{gpus}: this machine has more workers than these', field='gpus')
    return [get_ctx(number, 'gpus') for number in numbers]
