"""Settings that MXNet needs before it computes: its threads, its kernels, its BLAS, and AMX.

Variables are set when ``model_zoo`` is imported, and the rest when MXNet is. Nothing that the user
has set is overridden, and ``ZOO_ENVIRONMENT=off`` keeps it from setting anything;
docs/environment.rst has the variables.
"""

import contextlib
import ctypes
import glob
import importlib.util
import logging
import math
import os
import pathlib
import platform
import site
import sys
import warnings

__all__ = ['available_processors', 'blas', 'cpu_flags', 'may_use_amx', 'used_processors']

logger = logging.getLogger(__name__)

#: variables that are set; programs that are started later get them, too
VARIABLES = {
    # MXNet's kernels are kept for this many shapes; by default for all: 370 MB after 300 shapes of
    # batches of all-MiniLM-L6-v2, and 120 MB with this number, in the same time
    'MXNET_MKLDNN_CACHE_NUM': '128',
    # Large copies to and from NumPy get no extra OpenMP threads: with the operators' threads
    # there would be more than processors, and GNU's OpenMP would let them sleep between operators
    # (BERT base at 1x32 takes 1.4 times as long, a token of GPT-2 1.7 times)
    'MXNET_CPU_PARALLEL_SIZE': str(2**31 - 1),
}
#: turns of a waiting thread before it sleeps, 0.07 ms. By default it turns for 18 ms, and keeps the
#: processor from the thread that it waits for, where other programs run, too.
SPINS = '1000'
_MKL_GNU_THREADS, _MKL_LP64, _MKL_REPRODUCIBLE = 3, 0, 2  # of mkl_service.h and mkl_types.h
# of Linux for x86-64: asm/unistd_64.h, asm/prctl.h, asm/fpu/types.h
_ARCH_PRCTL, _GET_PERMISSIONS, _ASK_PERMISSION, _TILES = 158, 0x1022, 0x1023, 18
_IS_X86 = platform.machine() == 'x86_64'
_CGROUPS = '/sys/fs/cgroup'
_SMALL = ('SSE41', 'AVX', 'AVX2')  # values of DNNL_MAX_CPU_ISA


def set_variables():
    """Set the variables that aren't set."""
    if importlib.util.find_spec('mxnet') is None:
        raise ImportError('MXNet is missing: pip install --no-deps mxnet==1.9.1')
    if _is_off():
        return
    _use_all_processors('mxnet' in sys.modules)
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
    if 'OMP_WAIT_POLICY' not in os.environ:
        os.environ.setdefault('GOMP_SPINCOUNT', SPINS)


@contextlib.contextmanager
def prepared():
    """Within the context MXNet is imported, with the library that computes its products."""
    if not _is_off() and _IS_X86:
        _load_blas()
    yield
    if not _is_off():
        _use_amx()
        logger.debug('MXNet computes products by %s, with %d threads', blas(), used_processors())


def prepare_late():
    """Do what is possible where MXNet has been imported before."""
    if not _is_off():
        problem = 'MXNet was imported before model_zoo, and is slower so: import model_zoo first'
        warnings.warn(problem, stacklevel=4)
        _use_amx()


def _is_off():
    return os.environ.get('ZOO_ENVIRONMENT') == 'off'


def available_processors():
    """Return the number of processors that this process may run on.

    The smaller of its affinity and a container's CPU quota, rounded up.
    """
    return min(len(os.sched_getaffinity(0)), math.ceil(_cpu_quota(_CGROUPS)))


def used_processors():
    """Return the number of threads in which MXNet computes."""
    first = os.environ.get('OMP_NUM_THREADS', '').split(',')[0].strip()
    return max(1, int(first)) if first.isdigit() else 1


def cpu_flags():
    """Return Linux's names of the processor's features; empty where they aren't known.

    Where ``DNNL_MAX_CPU_ISA`` keeps oneDNN to AVX2 or less, the newer features are left out.
    """
    names = _cpu_line('flags').split()
    newer = ('avx512', 'avx_', 'amx') if os.environ.get('DNNL_MAX_CPU_ISA') in _SMALL else ()
    return {name for name in names if not name.startswith(newer)}


def is_intel():
    """Whether the processor is Intel's, on which MKL was measured."""
    return _cpu_line('vendor_id') == 'GenuineIntel'


def may_use_amx():
    """Whether this process may use AMX."""
    import mxnet  # noqa: F401  with which it is asked for

    granted, call = ctypes.c_uint64(), ctypes.CDLL(None).syscall
    if not _IS_X86 or call(_ARCH_PRCTL, _GET_PERMISSIONS, ctypes.byref(granted)):
        return False
    return bool(granted.value >> _TILES & 1)


def blas():
    """Return the library of MXNet's ``dot``, ``batch_dot`` and attention: 'MKL' or 'OpenBLAS'."""
    import mxnet  # noqa: F401  before which it isn't loaded

    return 'MKL' if hasattr(ctypes.CDLL(None), 'MKL_Get_Version') else 'OpenBLAS'


def _use_all_processors(is_late):
    """Set MXNet's threads: by itself it takes half of the processors (apache/mxnet#10836)."""
    if 'OMP_NUM_THREADS' in os.environ:
        return
    # Horovod's processes of one machine share them
    count = max(1, available_processors() // int(os.environ.get('HOROVOD_LOCAL_SIZE', 1)))
    os.environ['OMP_NUM_THREADS'] = str(count)
    if is_late:  # MXNet has read the variable, so set the library directly
        from mxnet.base import _LIB

        _LIB.MXSetNumOMPThreads(count)


def _cpu_quota(folder):
    """Return the processors' worth of time that the control group at `folder` grants."""
    for names in (['cpu.max'], ['cpu/cpu.cfs_quota_us', 'cpu/cpu.cfs_period_us']):  # v2, v1
        try:
            texts = [pathlib.Path(folder, name).read_text(encoding='ascii') for name in names]
            quota, period = map(int, ' '.join(texts).split())  # without a limit 'max' or -1
        except (OSError, ValueError):
            continue
        if quota > 0 and period > 0:
            return quota / period
    return sys.maxsize


def _load_blas():
    """Load, before MXNet does, MKL or OpenBLAS with the kernels of this processor."""
    wanted, path = os.environ.get('ZOO_BLAS', ''), _mkl_path()
    if wanted not in ('', 'mkl', 'openblas'):
        raise ImportError(f'ZOO_BLAS is {wanted!r}; it may be mkl or openblas')
    if wanted == 'mkl' and path is None:
        command = "pip install 'gluon-transformer-zoo[mkl]'"
        raise ImportError(f'ZOO_BLAS is mkl, which is missing: {command}')
    if path is not None and wanted != 'openblas':
        from importlib.metadata import version

        from packaging.version import Version

        # names in older wheels' BLAS would be taken for MKL's
        is_apart = Version(version('scipy')) >= Version('1.15')
        if wanted == 'mkl' or (is_intel() and is_apart):
            _load_mkl(path)
    folder = os.path.dirname(importlib.util.find_spec('mxnet').origin)
    kernels = os.environ.get('OPENBLAS_CORETYPE')
    # OpenBLAS doesn't find them by itself in newer processors
    if kernels is None and {'avx2', 'fma'} <= cpu_flags():
        kernels = 'Haswell' if is_intel() else 'Zen'
    with set_meanwhile('OPENBLAS_CORETYPE', kernels), contextlib.suppress(OSError):
        ctypes.CDLL(os.path.join(folder, 'libopenblas.so.0'))  # other builds have none


def _mkl_path():
    """Return MKL's library, where pip has put it, or None."""
    folders = [sys.prefix, site.getuserbase()]
    paths = [path for folder in folders for path in glob.glob(f'{folder}/lib/libmkl_rt.so*')]
    return max(paths, default=None)


def _load_mkl(path):
    """Load MKL so that its functions are found before OpenBLAS's functions of the same names."""
    try:
        library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    except OSError as error:
        logger.info('MKL is left alone: %s', error)
        return
    for variable, function, value in (
        ('MKL_THREADING_LAYER', library.MKL_Set_Threading_Layer, _MKL_GNU_THREADS),
        ('MKL_INTERFACE_LAYER', library.MKL_Set_Interface_Layer, _MKL_LP64),
        ('MKL_CBWR', library.MKL_CBWR_Set, _MKL_REPRODUCIBLE),
    ):
        if variable not in os.environ:
            function(value)


def _use_amx():
    """Enable AMX in oneDNN (2.4.4); Linux must first be asked for AMX (otherwise SIGILL)."""
    import mxnet as mx

    variable, call = 'DNNL_MAX_CPU_ISA', ctypes.CDLL(None).syscall
    limit = os.environ.get(variable)
    if limit is None and _IS_X86 and call(_ARCH_PRCTL, _ASK_PERMISSION, _TILES) == 0:
        limit = 'AVX512_CORE_AMX'
    with set_meanwhile(variable, limit):
        array = mx.nd.ones((1, 1), ctx=mx.cpu())  # oneDNN reads the variable when it first computes
        mx.nd.FullyConnected(array, array, no_bias=True, num_hidden=1).wait_to_read()


def _cpu_line(name):
    """Return a line of Linux's description of the processor; empty if it is missing."""
    with open('/proc/cpuinfo', encoding='utf-8', errors='replace') as file:
        line = next((line for line in file if line.startswith(name)), '')
    return line.partition(':')[2].strip()


@contextlib.contextmanager
def set_meanwhile(variable, value):
    """Set a variable within the context, unless the value is None; later programs don't get it."""
    changes = {} if value is None else {variable: value}
    before = {name: os.environ.pop(name) for name in changes if name in os.environ}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del os.environ[name]
        os.environ.update(before)
