"""What importing model_zoo sets before MXNet computes, and what it leaves to the user."""

import functools
import json
import os
import re

import gluonnlp as nlp
import mxnet as mx
import numpy as np
import pytest
from json_files import cases
from script_runs import ROOT, run_python

from model_zoo import environment

has_avx2 = pytest.mark.skipif(
    not {'avx2', 'fma'} <= environment.cpu_flags(), reason='this processor has no AVX2'
)
has_amx = pytest.mark.skipif(not environment.may_use_amx(), reason='this processor has no AMX')
has_mkl = pytest.mark.skipif(environment._mkl_path() is None, reason='MKL is not installed')
imports_by_itself = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) >= '1.24.0',
    reason='with this NumPy MXNet can only be imported after model_zoo',
)
LEFT = {'OMP_NUM_THREADS', 'GOMP_SPINCOUNT', *environment.VARIABLES}
NOT_LEFT = {'OPENBLAS_CORETYPE', 'DNNL_MAX_CPU_ISA', 'OMP_WAIT_POLICY', 'ZOO_BLAS'}


def start(program, **changes):
    """A finished program with no variable set but those of `changes`."""
    kept = {key: value for key, value in os.environ.items() if key not in LEFT | NOT_LEFT}
    env = {**kept, 'PYTHONPATH': str(ROOT), **changes}
    done = run_python('-W', 'ignore', '-c', program, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    return done


def run(program, **changes):
    return start(program, **changes).stdout.strip()


FACTS = """
import json, os
before = dict(os.environ)
import {packages}
changed = {{name: value for name, value in os.environ.items() if before.get(name) != value}}
import ctypes, mxnet
path = os.path.join(os.path.dirname(mxnet.__file__), 'libopenblas.so.0')
core = ctypes.CDLL(path).openblas_get_corename
core.restype = ctypes.c_char_p
print(json.dumps([changed, core().decode().lower()]))
"""


@functools.cache
def facts(packages='model_zoo', **changes):
    """After an import: variables that it has set, OpenBLAS's kernels, and how long threads spin."""
    done = start(FACTS.format(packages=packages), OMP_DISPLAY_ENV='verbose', **changes)
    changed, core = json.loads(done.stdout.strip())
    spins = re.search("GOMP_SPINCOUNT = '([0-9]+)'", done.stderr).group(1)
    return changed, core, spins


def facts_of_a_user():
    """The facts where all variables are set."""
    more = {'OPENBLAS_CORETYPE': 'Sandybridge', 'DNNL_MAX_CPU_ISA': 'AVX2'}
    return facts(**dict.fromkeys(LEFT, '7'), **more)


@pytest.mark.parametrize(
    'packages', ['model_zoo', pytest.param('mxnet, model_zoo', marks=imports_by_itself)]
)
def test_what_child_processes_get(packages):
    found = facts(packages)[0]
    found = {name: value for name, value in found.items() if not name.startswith('KMP_')}  # MXNet's
    assert found.keys() == LEFT
    assert found['OMP_NUM_THREADS'] == str(environment.available_processors())


def test_what_the_user_has_set_stays():
    changed, _, spins = facts_of_a_user()
    assert changed == {} and spins == '7'


def test_threads_that_wait_spin_for_a_short_time():
    assert facts()[2] == environment.SPINS


@pytest.mark.parametrize(
    'given, left',
    [
        ({'ZOO_ENVIRONMENT': 'off'}, set()),
        ({'OMP_WAIT_POLICY': 'passive', 'OMP_NUM_THREADS': '2'}, set(environment.VARIABLES)),
    ],
)
def test_what_is_not_set(monkeypatch, given, left):
    kept = {name: value for name, value in os.environ.items() if name not in LEFT | NOT_LEFT}
    monkeypatch.setattr(os, 'environ', {**kept, **given})
    environment.set_variables()
    with environment.prepared():
        assert os.environ.keys() - kept.keys() == given.keys() | left


@pytest.mark.parametrize(('said', 'used'), [('3', 3), ('4,2', 4), ('', 1), ('many', 1)])
def test_threads_that_are_used(monkeypatch, said, used):
    monkeypatch.setenv('OMP_NUM_THREADS', said)
    assert environment.used_processors() == used


QUOTAS = cases('environment')['QUOTAS']


@pytest.mark.parametrize('files, expected', QUOTAS)
def test_quota_of_a_container(monkeypatch, tmp_path, files, expected):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content + '\n')
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(environment, '_CGROUPS', str(tmp_path))
    assert environment.available_processors() == expected


def test_a_limit_of_onednn_hides_newer_features(monkeypatch):
    monkeypatch.setattr(environment, '_cpu_line', lambda name: 'fma avx2 avx_vnni avx512f amx_int8')
    monkeypatch.setenv('DNNL_MAX_CPU_ISA', 'AVX2')
    assert environment.cpu_flags() == {'fma', 'avx2'}
    monkeypatch.delenv('DNNL_MAX_CPU_ISA')
    assert len(environment.cpu_flags()) == 5


@has_avx2
def test_openblas_uses_avx2():
    assert facts()[1] in {'haswell', 'zen', 'excavator', 'skylakex', 'cooperlake'}
    assert facts_of_a_user()[1] == 'sandybridge'


BLAS = """
import {packages}, mxnet as mx, numpy as np
from model_zoo.environment import blas
left, right = np.random.RandomState(0).normal(size=(2, 3, 64, 48)).astype('float32')
product = mx.nd.batch_dot(mx.nd.array(left), mx.nd.array(right), transpose_b=True).asnumpy()
assert np.abs(product - left @ right.transpose(0, 2, 1)).max() < 1e-5
print(blas())
"""


@has_mkl
def test_mkl_serves():
    program = BLAS.format(packages='model_zoo')
    calls, name = run(program, ZOO_BLAS='mkl', MKL_VERBOSE='1').rsplit('\n', 1)
    assert name == 'MKL' and 'SGEMM(' in calls.upper()
    assert run(program, ZOO_BLAS='openblas', MKL_VERBOSE='1') == 'OpenBLAS'


@has_mkl
def test_mkl_leaves_scipy_alone():
    """MKL's functions of complex results are called otherwise than SciPy calls them."""
    program = """
import model_zoo, mxnet
import numpy as np, scipy.linalg.blas, scipy.sparse.linalg
x = np.array([1 + 2j, 3j])
assert scipy.linalg.blas.zdotc(x, x) == 14
matrix = scipy.sparse.diags(np.arange(1, 101) * (1 + 1j))
assert abs(scipy.sparse.linalg.eigs(matrix, 1)[0][0] - 100 * (1 + 1j)) < 1e-6
"""
    run(program, ZOO_BLAS='mkl')


def test_other_values_of_the_switch():
    program = """
import model_zoo
try:
    import mxnet
except ImportError as error:
    print(error)
"""
    assert run(program, ZOO_BLAS='atlas') == "ZOO_BLAS is 'atlas'; it may be mkl or openblas"


PRODUCT = """
import model_zoo, mxnet
from model_zoo.layers.precision import BFLOAT16
x = mxnet.nd.amp_cast(mxnet.nd.ones((64, 64)), dtype=BFLOAT16)
mxnet.nd.FullyConnected(x, x, no_bias=True, num_hidden=64).wait_to_read()
"""


@has_amx
@pytest.mark.parametrize('limit', [{}, {'DNNL_MAX_CPU_ISA': 'AVX512_CORE_BF16'}])
def test_onednn_uses_amx_unless_the_user_says_otherwise(limit):
    said = run(PRODUCT, DNNL_VERBOSE='1', **limit)
    assert 'inner_product' in said and ('amx' in said.lower()) == (not limit)


def test_a_process_that_was_forked_computes():
    """Libgomp and oneDNN have already worked in its parent."""
    program = """
import os
import model_zoo, mxnet as mx
def work():
    x = mx.nd.ones((300, 300))
    y = mx.nd.FullyConnected(x, x, no_bias=True, num_hidden=300)
    return float(mx.nd.dot(x, y).max().asscalar())
process = os.fork()
if process == 0:
    os._exit(0 if work() == 300 ** 2 else 1)
assert work() == 300 ** 2
print(os.waitpid(process, 0)[1])
"""
    assert run(program, OMP_NUM_THREADS='2') == '0'


def test_numpy_is_left_alone(tmp_path):
    """Only MXNet and GluonNLP see what NumPy has removed, while they load, too."""
    code = """
import builtins, sys, numpy, scipy, sklearn
before, usual = dict(vars(numpy)), builtins.__import__
class Look:
    def find_spec(self, name, path=None, target=None):
        assert builtins.__import__ is usual, name
sys.meta_path.insert(0, Look())
import model_zoo, mxnet, scipy.stats, sklearn.metrics
assert sys.modules['numpy'] is numpy
new = {name: value for name, value in vars(numpy).items() if before.get(name) is not value}
assert all(hasattr(value, '__path__') for value in new.values()), new  # modules loaded since
copies = {id(value) for name in ('base', 'ndarray.ndarray') for value in
          vars(sys.modules[f'mxnet.{name}']).values() if getattr(value, '__name__', '') == 'numpy'}
for name, module in [*sys.modules.items()]:
    if not name.startswith(('mxnet', 'gluonnlp')):
        assert not any(id(value) in copies - {id(numpy)} for value in vars(module).values()), name
assert mxnet.np.bool is numpy.bool_ and mxnet.np.NaN is numpy.nan
"""
    done = run_python('-c', code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


OPERATORS = [
    lambda x, two, half: x.reshape((two, 6)),
    lambda x, two, half: mx.nd.zeros((two, 3)) + half,
    lambda x, two, half: mx.nd.slice(x, begin=(two,), end=(two * 3,)),
    lambda x, two, half: x.reshape((2, 6)).sum(axis=(two - 1,)),
    lambda x, two, half: x[two:] * half + two / (x[two] + half),
    lambda x, two, half: mx.nd.clip(x, half, two) > half,
    lambda x, two, half: mx.sym.reshape(mx.sym.var('x'), shape=(two, -1)).eval(x=x)[0],
]


@pytest.mark.parametrize('make', OPERATORS)
def test_operators_take_scalars_of_numpy(make):
    """NumPy 2 writes a shape as '(np.int64(2), 3)', which MXNet's library doesn't read."""
    x = mx.nd.arange(12)
    expected = make(x, 2, 0.5)
    for integer, real in ((np.int64, np.float64), (np.int32, np.float32)):
        result = make(x, integer(2), real(0.5))
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.asnumpy(), expected.asnumpy())


@pytest.mark.parametrize('name', ['Loss', 'MAE'])
def test_metrics_sum_in_float64(name):
    metric, values = mx.metric.create(name), mx.nd.array([1e-3])
    metric.update([mx.nd.array([1e8])], [mx.nd.array([1e8 if name == 'Loss' else 0])])
    metric.update([values * 0], [values])
    assert json.loads(json.dumps(metric.get()))[1] == pytest.approx(5e7 + 5e-4, abs=1e-6)


def test_a_parameter_takes_scalars_of_numpy():
    block = mx.gluon.nn.Dense(np.int64(3), in_units=np.int64(4))
    block.initialize()
    block.hybridize()
    assert block(mx.nd.ones((2, 4))).shape == (2, 3)


def test_integers_wrap_as_before_numpy_2():
    assert mx.nd.array([-1, 300], dtype='uint8').asnumpy().tolist() == [255, 44]
    numpy = mx.test_utils.np  # which MXNet's own tests use
    found = numpy.array(-1, 'uint8'), *numpy.full(1, -1, 'uint8'), *numpy.arange(-1, 0, 1, 'uint8')
    assert found == (255, 255, 255)
    pad = nlp.data.batchify.Pad(pad_val=-1, dtype='uint8')
    assert pad([[1, 2], [3]]).asnumpy().tolist() == [[1, 2], [3, 255]]
    # computed with NumPy 1.23
    hashes = nlp.vocab.create_subword_function('NGramHashes', num_subwords=1000)
    found = [list(map(int, each)) for each in hashes(['äö', 'né'])]
    assert found == [[417, 197, 587], [143, 91, 737]]


def test_arrays_go_into_numpy():
    array = mx.nd.arange(3)
    assert np.asarray(array).dtype == 'float32'
    np.testing.assert_array_equal(np.asarray(array), array.asnumpy())
    assert np.array([array, array], dtype='int8').dtype == 'int8'
    assert np.all(array == array) and not np.all(array == 1)
    assert np.stack([array, array]).shape == (2, 3)
    if np.lib.NumpyVersion(np.__version__) >= '2.0.0':
        with pytest.raises(ValueError):
            np.array(array, copy=False)


def test_a_missing_mxnet(tmp_path):
    code = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == 'mxnet' else find(name, *rest)
import model_zoo
"""
    done = run_python('-c', code, cwd=tmp_path)
    assert 'pip install --no-deps mxnet==1.9.1' in done.stderr.splitlines()[-1]
