"""The processor's unit for products of matrices in bfloat16 and INT8: Intel's AMX.

Linux lets a process use it only after it has asked. MXNet 1.9.1's oneDNN (2.4.4) doesn't ask, and
uses AMX only where ``DNNL_MAX_CPU_ISA`` names it; one that wasn't allowed to is killed (SIGILL).
"""

import ctypes
import os
import platform
import sys

__all__ = ['has_matrix_unit', 'use_matrix_unit']

_VARIABLE, _VALUE = 'DNNL_MAX_CPU_ISA', 'AVX512_CORE_AMX'
# of Linux for x86-64: asm/unistd_64.h, asm/prctl.h, asm/fpu/types.h
_ARCH_PRCTL, _GET_PERMISSIONS, _ASK_PERMISSION, _TILES = 158, 0x1022, 0x1023, 18


def use_matrix_unit():
    """Let MXNet use AMX in this process, unless the user has set ``DNNL_MAX_CPU_ISA``.

    Without AMX nothing changes; nor does it where oneDNN has already computed something.
    """
    if _VARIABLE in os.environ or not _ask():
        return
    os.environ[_VARIABLE] = _VALUE
    try:
        _compute_something()
    finally:
        del os.environ[_VARIABLE]  # a program that this one starts hasn't asked


def has_matrix_unit():
    """Whether this process may use AMX."""
    if not _is_linux_on_x86():
        return False
    granted = ctypes.c_uint64()
    call = _call()
    done = call(_ARCH_PRCTL, _GET_PERMISSIONS, ctypes.byref(granted))
    return done == 0 and bool(granted.value >> _TILES & 1)


def _ask():
    """Ask Linux for the unit; it refuses if there is none."""
    return _is_linux_on_x86() and _call()(_ARCH_PRCTL, _ASK_PERMISSION, _TILES) == 0


def _is_linux_on_x86():
    return sys.platform.startswith('linux') and platform.machine() == 'x86_64'


def _call():
    return ctypes.CDLL(None).syscall


def _compute_something():
    """Let oneDNN read the variable, which it does when it first computes."""
    import mxnet as mx

    one = mx.nd.ones((1, 1))
    mx.nd.FullyConnected(one, one, no_bias=True, num_hidden=1).wait_to_read()
