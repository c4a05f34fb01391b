"""Our operators for training on CPUs: ``operators.cc``, built on the machine that runs it.

``zoo build-operators`` builds the library once. Without it, trainings run on MXNet's operators.
Only graphs that train have the operators: none that is exported.
"""

import ctypes
import functools
import hashlib
import logging
import math
import os
import shlex
import shutil
import subprocess
import tempfile

import gluonnlp
import mxnet as mx
import numpy as np

from ..environment import blas, cpu_flags
from ..errors import InputError
from ..util.files import make_writable_dir

logger = logging.getLogger(__name__)

_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'operators.cc')
_MXNET = os.path.dirname(mx.__file__)
# -ffast-math would also change how the process treats tiny numbers; without -Bsymbolic the library
# would take names of Horovod's, which is built from the same headers, and crash
_FLAGS = shlex.split(
    '-std=c++17 -O3 -march=native -fopenmp -shared -fPIC -Wl,-Bsymbolic -w -fno-math-errno '
    '-fno-trapping-math -fno-signed-zeros -fassociative-math -freciprocal-math'
)
#: the size of a head must be a multiple of this
LANES = 16
_ADDRESS, _COUNT, _NUMBER = ctypes.c_void_p, ctypes.c_long, ctypes.c_float


def _compiler():
    """Return the compiler's command; empty if none is found."""
    found = next(filter(shutil.which, ('c++', 'g++', 'clang++')), '')
    return shlex.split(os.environ.get('CXX', found))


def library_path():
    """Return where the library of this source, compiler and processor is, if it was built.

    None without a compiler.
    """
    try:
        version = subprocess.run([*_compiler(), '-v'], capture_output=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    with open(_SOURCE, 'rb') as file:
        parts = [file.read(), version, repr((_FLAGS, sorted(cpu_flags()), mx.__version__)).encode()]
    name = hashlib.sha256(b'\0'.join(parts)).hexdigest()[:20]
    return os.path.join(gluonnlp.base.get_home_dir(), 'operators', f'{name}.so')


def build():
    """Build the library unless it exists, and return its path."""
    path = library_path()
    if path is None:
        raise InputError('a C++ compiler is missing, such as g++; the variable CXX may name one')
    if os.path.exists(path):
        return path
    folder = os.path.dirname(path)
    make_writable_dir(folder)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        result = os.path.join(made, 'operators.so')
        includes = [f'-I{os.path.join(_MXNET, name)}' for name in ('include', 'src')]
        command = [*_compiler(), *_FLAGS, *includes, _SOURCE, '-o', result]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise InputError(f'{shlex.join(command)} failed:\n{done.stderr[-2000:]}')
        os.replace(result, path)
    return path


@functools.cache
def library():
    """Load the library into MXNet; None if it wasn't built.

    The variable ``ZOO_OPERATORS`` may name another one, or be ``off``.
    """
    path = os.environ.get('ZOO_OPERATORS') or library_path()
    return _load(path) if path not in (None, 'off') and os.path.exists(path) else None


@functools.cache
def _load(path):
    """Load a library into MXNet, which refuses to do it twice."""
    try:
        mx.library.load(path, verbose=False)
        loaded = ctypes.CDLL(path)
    except (OSError, mx.MXNetError) as error:
        logger.warning('%s is left alone: %s', path, error)
        return None
    loaded.zoo_sum_of_squares.restype = ctypes.c_double
    loaded.zoo_sum_of_squares.argtypes = [_ADDRESS, _COUNT]
    loaded.zoo_adam.restype = None
    loaded.zoo_adam.argtypes = [*[_ADDRESS] * 4, _COUNT, *[_NUMBER] * 10]
    return loaded


def kernels():
    """Return what computes a training on a CPU; another one rounds differently."""
    return f'{blas()}, {"own" if library() else "MXNet"} operators'


def sum_of_squares(view):
    """Return the sum of the squares of a NumPy array."""
    return library().zoo_sum_of_squares(view.ctypes.data, view.size)


def update_by_adam(views, scale, step, betas, bound):
    """Update a weight and its moments, as NumPy's arrays; see `model_zoo.optimizer.host`."""
    rests = [float(np.float32(1) - np.float32(beta)) for beta in betas]  # as MXNet computes it
    numbers = scale, bound or math.inf, *betas, *rests, step.epsilon
    factors = step.factor * step.step, step.factor * step.decay, step.late_decay
    addresses = [view.ctypes.data for view in views]
    library().zoo_adam(*addresses, views[0].size, *numbers, *factors)


def trains():
    """Return whether operators are recorded for a training's backward pass."""
    return mx.autograd.is_recording() and mx.autograd.is_training()


def norm(F, y, residual, gamma, beta, rate, epsilon):
    """Layer normalization of y, or of ``dropout(y) + residual``."""
    arrays = [y] if residual is None else [y, residual]
    # a gradient that is added to another is no custom operator's: identity's may be
    arrays += [F.identity(gamma), F.identity(beta)]
    adds = len(arrays) - 3
    return F.zoo_norm(*arrays, adds=adds, rate=rate if adds else 0.0, epsilon=epsilon)[0]


def attention(F, qkv, mask, heads, rate):
    """Return the context (L, B, inner), and the probabilities after dropout (B * heads, L, L)."""
    arrays = [qkv] if mask is None else [qkv, F.BlockGrad(mask)]
    options = {'heads': heads, 'masked': len(arrays) - 1, 'rate': rate}
    context, signed = F.zoo_attention(*arrays, **options)
    return context, F.relu(signed) / (1 - rate)
