"""What MXNet takes of the machine: its processors, and memory for its kernels.

MXNet takes half of the processors unless ``OMP_NUM_THREADS`` is set before it loads
(apache/mxnet#10836): on a machine without hyper-threading that halves the speed.
"""

import math
import os
import sys

__all__ = [
    'available_processors',
    'bound_kernel_memory',
    'copy_on_one_thread',
    'use_all_processors',
    'used_processors',
]

_CGROUPS = '/sys/fs/cgroup'


def available_processors():
    """Number of processors that this process may run on.

    The smaller of its affinity and a container's CPU quota, rounded up.
    """
    if hasattr(os, 'sched_getaffinity'):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = _cpu_quota(_CGROUPS)
    return count if quota is None else min(count, math.ceil(quota))


def _cpu_quota(folder):
    """Processors' worth of time that the control group mounted at `folder` grants, or None."""
    for names in (['cpu.max'], ['cpu/cpu.cfs_quota_us', 'cpu/cpu.cfs_period_us']):  # v2, v1
        words = []
        try:
            for name in names:
                with open(os.path.join(folder, name), encoding='ascii') as file:
                    words += file.read().split()
            quota, period = map(int, words)  # without a limit 'max' or -1
        except (OSError, ValueError):
            continue
        if quota > 0 and period > 0:
            return quota / period
    return None


def used_processors():
    """Number of threads in which MXNet computes."""
    first = os.environ.get('OMP_NUM_THREADS', '').split(',')[0].strip()
    return max(1, int(first)) if first.isdigit() else 1


def bound_kernel_memory():
    """Let MXNet forget kernels of shapes that were long ago, unless the user has said how many.

    By default it keeps those of every shape that it has met: 370 MB after 300 shapes of batches of
    all-MiniLM-L6-v2, and 120 MB with this number, in the same time.
    """
    os.environ.setdefault('MXNET_MKLDNN_CACHE_NUM', '128')


def copy_on_one_thread():
    """Let MXNet copy arrays to and from NumPy on one thread, unless the user has said otherwise.

    By default the caller's thread gets a team of OpenMP's threads at the first large copy. With the
    operators' team these are more threads than processors, so GNU's OpenMP lets them sleep between
    operators: BERT base at 1x32 takes 1.4 times as long from then on, a token of GPT-2 1.7 times.
    """
    os.environ.setdefault('MXNET_CPU_PARALLEL_SIZE', str(2**31 - 1))


def use_all_processors():
    """Set MXNet's number of threads, unless the user has set ``OMP_NUM_THREADS``."""
    if 'OMP_NUM_THREADS' in os.environ:
        return
    # Horovod's processes of one machine share them
    count = max(1, available_processors() // int(os.environ.get('HOROVOD_LOCAL_SIZE', 1)))
    os.environ['OMP_NUM_THREADS'] = str(count)
    if 'mxnet' in sys.modules:  # loaded already: the variable comes too late, so tell the library
        from mxnet.base import _LIB

        _LIB.MXSetNumOMPThreads(count)
