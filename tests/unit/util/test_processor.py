"""MXNet uses what the processor has, and programs that we start aren't told to."""

import ctypes
import os
import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest

from model_zoo.layers.precision import BFLOAT16
from model_zoo.util import processor

has_avx2 = pytest.mark.skipif(
    not {'avx2', 'fma'} <= processor.flags(), reason='this processor has no AVX2'
)
has_amx = pytest.mark.skipif(not processor.may_use_amx(), reason='this processor has no AMX')
VARIABLES = 'OPENBLAS_CORETYPE', 'DNNL_MAX_CPU_ISA'
PRODUCT = """
import model_zoo, mxnet as mx
from model_zoo.layers.precision import BFLOAT16
x = mx.nd.amp_cast(mx.nd.ones((64, 64)), dtype=BFLOAT16)
mx.nd.FullyConnected(x, x, no_bias=True, num_hidden=64).wait_to_read()
"""


def run(program, **more):
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    done = subprocess.run(
        [sys.executable, '-c', program], env={**environment, **more}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_programs_that_are_started_later_are_not_told():
    program = f'import os, model_zoo\nprint([name in os.environ for name in {VARIABLES}])'
    assert run(program).strip() == '[False, False]'


CORE = """
import ctypes, os
import {packages}
path = os.path.join(os.path.dirname(__import__('mxnet').__file__), 'libopenblas.so.0')
name = ctypes.CDLL(path).openblas_get_corename
name.restype = ctypes.c_char_p
print(name().decode())
"""


@has_avx2
@pytest.mark.parametrize('packages', ['model_zoo', 'mxnet, model_zoo'])
def test_openblas_uses_avx2(packages):
    found = run(CORE.format(packages=packages)).strip().lower()
    assert found not in processor._OLD_KERNELS
    said = run(CORE.format(packages=packages), OPENBLAS_CORETYPE='Sandybridge')
    assert said.strip().lower() == 'sandybridge'


@has_avx2
def test_kernels_are_exchanged_between_computations():
    """As on a processor that OpenBLAS doesn't know, whose kernels are the oldest."""
    program = """
import os
os.environ['OPENBLAS_CORETYPE'] = 'Prescott'
import mxnet as mx, numpy as np
del os.environ['OPENBLAS_CORETYPE']
random = np.random.RandomState(0)
left, right = random.normal(size=(2, 200, 200)).astype('float32')
def product():
    return mx.nd.dot(mx.nd.array(left), mx.nd.array(right))
pending = product()
import model_zoo
for found in (pending, product()):
    assert np.abs(found.asnumpy() - left @ right).max() < 1e-4
"""
    core = CORE.format(packages='mxnet')
    assert run(program + core, OMP_NUM_THREADS='2').strip() == 'Haswell'


def test_other_builds_are_left_alone(tmp_path):
    other = tmp_path / 'libopenblas.so.0'
    processor._take_newer_kernels(str(other))
    other.write_text('not a library')
    processor._take_newer_kernels(str(other))


@has_amx
def test_onednn_uses_amx():
    assert 'amx' in run(PRODUCT, DNNL_VERBOSE='1').lower()


@has_amx
def test_the_user_may_say_that_amx_is_not_used():
    lines = run(PRODUCT, DNNL_VERBOSE='1', DNNL_MAX_CPU_ISA='AVX512_CORE_BF16').splitlines()
    products = [line for line in lines if 'inner_product' in line]
    assert products and not any('amx' in line for line in products)


@has_amx
@pytest.mark.parametrize('shape', [(1, 3, 5), (7, 33, 65), (128, 768, 48)])
def test_products_in_bfloat16_are_right(shape):
    rows, inner, columns = shape
    random = np.random.RandomState(0)
    left = random.randint(-8, 9, (rows, inner)).astype('float32')  # exact in bfloat16
    right = random.randint(-8, 9, (columns, inner)).astype('float32')
    given = [mx.nd.amp_cast(mx.nd.array(each), dtype=BFLOAT16) for each in (left, right)]
    found = mx.nd.FullyConnected(*given, no_bias=True, num_hidden=columns)
    found = mx.nd.amp_cast(found, dtype='float32').asnumpy()
    expected = left @ right.T
    assert np.abs(found - expected).max() <= np.abs(expected).max() / 256


def test_flags_of_a_system_without_proc(monkeypatch):
    def fails(*args, **kwargs):
        raise FileNotFoundError('/proc/cpuinfo')

    monkeypatch.setattr('builtins.open', fails)
    assert processor.flags() == set()


def test_other_systems_have_no_amx(monkeypatch):
    monkeypatch.setattr(processor.platform, 'machine', lambda: 'aarch64')
    monkeypatch.setattr(ctypes, 'CDLL', None)  # its numbers of calls mean others
    assert not processor.may_use_amx()


def test_a_process_that_was_forked_computes():
    """libgomp and oneDNN have already worked in its parent."""
    program = """
import os
import model_zoo, mxnet as mx
def work():
    x = mx.nd.ones((300, 300))
    return float(mx.nd.FullyConnected(x, x, no_bias=True, num_hidden=300).sum().asscalar())
process = os.fork()
if process == 0:
    os._exit(0 if work() == 300 ** 3 else 1)
assert work() == 300 ** 3
print(os.waitpid(process, 0)[1])
"""
    assert run(program, OMP_NUM_THREADS='2').strip() == '0'
