"""Let MXNet use every processor that this process may.

MXNet takes half of the processors unless ``OMP_NUM_THREADS`` is set before it loads
(apache/mxnet#10836): on a machine without hyper-threading that halves the speed.
"""

import os
import sys

__all__ = ['available_processors', 'use_all_processors']


def available_processors():
    """Number of processors that this process may run on."""
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_all_processors():
    """Set MXNet's number of threads, unless the user has set ``OMP_NUM_THREADS``."""
    if 'OMP_NUM_THREADS' in os.environ:
        return
    count = available_processors()
    os.environ['OMP_NUM_THREADS'] = str(count)
    if 'mxnet' in sys.modules:  # loaded already: the variable comes too late, so tell the library
        from mxnet.base import _LIB

        _LIB.MXSetNumOMPThreads(count)
