"""What MXNet 1.9.1 doesn't find out about the processor: AVX2 in newer ones, and Intel's AMX.

Its OpenBLAS (0.3.13) takes processors that it doesn't know for the oldest: ``dot``, ``batch_dot``
and attention then run at less than half of the speed. Its oneDNN (2.4.4) uses AMX, the unit for
products of matrices in bfloat16 and INT8, only where it is told to; and Linux ends a process that
uses the unit (SIGILL) unless it has asked before.
"""

import contextlib
import ctypes
import os
import platform
import sys

__all__ = ['flags', 'may_use_amx', 'use_all_instructions']

_OPENBLAS, _AVX2_KERNELS = 'OPENBLAS_CORETYPE', 'Haswell'
_OLD_KERNELS = {
    'atom', 'banias', 'barcelona', 'bobcat', 'bulldozer', 'core2', 'dunnington', 'nehalem',
    'opteron', 'opteron_sse3', 'penryn', 'piledriver', 'prescott', 'sandybridge', 'steamroller',
}  # fmt: skip
_ONEDNN, _UP_TO_AMX = 'DNNL_MAX_CPU_ISA', 'AVX512_CORE_AMX'
# of Linux for x86-64: asm/unistd_64.h, asm/prctl.h, asm/fpu/types.h
_ARCH_PRCTL, _GET_PERMISSIONS, _ASK_PERMISSION, _TILES = 158, 0x1022, 0x1023, 18


def use_all_instructions():
    """Let MXNet use AVX2 and AMX, unless the user has set the variables of its libraries for that.

    AMX is not used where MXNet has computed something before.
    """
    import mxnet as mx

    _take_newer_kernels(os.path.join(os.path.dirname(mx.__file__), 'libopenblas.so.0'))
    asked = _ONEDNN not in os.environ and _is_linux_on_x86() and _ask_for_amx()
    with _set_meanwhile(_ONEDNN, _UP_TO_AMX if asked else None):
        one = mx.nd.ones((1, 1), ctx=mx.cpu())  # oneDNN reads the variable when it first computes
        mx.nd.FullyConnected(one, one, no_bias=True, num_hidden=1).wait_to_read()


def flags():
    """What the processor can do, as Linux calls it; empty where that isn't known."""
    try:
        with open('/proc/cpuinfo', encoding='utf-8', errors='replace') as file:
            return {*next((line.split() for line in file if line.startswith('flags')), ())}
    except OSError:
        return set()


def may_use_amx():
    """Whether this process may use AMX."""
    granted = ctypes.c_uint64()
    if not _is_linux_on_x86() or _call(_ARCH_PRCTL, _GET_PERMISSIONS, ctypes.byref(granted)):
        return False
    return bool(granted.value >> _TILES & 1)


def _take_newer_kernels(path):
    """Have OpenBLAS choose its kernels anew, if those that it has are of older processors."""
    import mxnet as mx

    if _OPENBLAS in os.environ or not {'avx2', 'fma'} <= flags() or not os.path.isfile(path):
        return
    try:
        library = ctypes.CDLL(path)  # which MXNet has loaded
        name, end, begin = (
            getattr(library, each)
            for each in ('openblas_get_corename', 'gotoblas_dynamic_quit', 'gotoblas_dynamic_init')
        )
    except (OSError, AttributeError):  # another build
        return
    name.restype = ctypes.c_char_p
    if name().decode().lower() not in _OLD_KERNELS:
        return
    mx.nd.waitall()  # nothing computes meanwhile
    with _set_meanwhile(_OPENBLAS, _AVX2_KERNELS):
        end()
        begin()


def _ask_for_amx():
    return _call(_ARCH_PRCTL, _ASK_PERMISSION, _TILES) == 0


def _is_linux_on_x86():
    return sys.platform.startswith('linux') and platform.machine() == 'x86_64'


def _call(*arguments):
    return ctypes.CDLL(None).syscall(*arguments)


@contextlib.contextmanager
def _set_meanwhile(variable, value):
    """Set a variable of the environment; programs that are started later don't get it.

    None, and a variable that is set, change nothing.
    """
    if value is None or variable in os.environ:
        yield
        return
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]
