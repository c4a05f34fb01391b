"""Operators of our own beside MXNet's: values, gradients, dropout, threads, graphs and a resume."""

import functools
import json
import os
import shutil
import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest
import tiny

from bert import BertForSequenceClassification, BertModel
from export import export_block
from model_zoo import operators
from model_zoo.errors import InputError
from model_zoo.layers.precision import BFLOAT16
from model_zoo.optimizer import host

STATIC = {'static_alloc': True, 'static_shape': True}
CONFIG = {'hidden_size': 32, 'num_attention_heads': 2, 'intermediate_size': 64}
RATES = {'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0}
needs_compiler = pytest.mark.skipif(not shutil.which('c++'), reason='no C++ compiler')


@pytest.fixture(scope='session')
def path(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('MXNET_HOME', str(tmp_path_factory.mktemp('home')))
        return operators.build()


@pytest.fixture
def library(path, monkeypatch):
    """The library, loaded for one test."""
    monkeypatch.setenv('ZOO_OPERATORS', path)
    operators.library.cache_clear()
    loaded = operators.library()
    assert loaded is not None
    yield loaded
    operators.library.cache_clear()


def without(compute):
    """What a function returns without the library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ZOO_OPERATORS', 'off')
        operators.library.cache_clear()
        result = compute()
    operators.library.cache_clear()
    return result


def normal(*shape):
    return mx.nd.array(np.random.RandomState(1).standard_normal(shape))


def results(function, arrays, gradient):
    """The output of a function and the gradients of its inputs, as float32."""
    for each in arrays:
        each.attach_grad()
    with mx.autograd.record():
        output = function(*arrays)
    output.backward(gradient)
    return [
        mx.nd.amp_cast(x, dtype='float32').asnumpy() for x in (output, *(a.grad for a in arrays))
    ]


def assert_near(ours, theirs, tolerance):
    for one, two in zip(ours, theirs):
        np.testing.assert_allclose(one, two, rtol=0, atol=tolerance * max(np.abs(two).max(), 1))


def self_attention(qkv, mask, heads):
    scores = mx.nd.contrib.interleaved_matmul_selfatt_qk(qkv, heads=heads) + mask
    probabilities = mx.nd.softmax(scores, axis=-1)
    return mx.nd.contrib.interleaved_matmul_selfatt_valatt(qkv, probabilities, heads=heads)


@needs_compiler
@pytest.mark.parametrize(('dtype', 'tolerance'), [('float32', 1e-5), (BFLOAT16, 0.02)])
def test_operators_equal_mxnets(library, dtype, tolerance):
    x, residual, gradient = normal(7, 3, 48), normal(7, 3, 48), normal(7, 3, 48)
    gamma, beta = 1 + normal(48) / 5, normal(48)

    def ours(x, *rest):
        return operators.norm(mx.nd, mx.nd.amp_cast(x, dtype=dtype), *rest, 0.0, 1e-12)

    def theirs(x, residual, gamma, beta):
        return mx.nd.LayerNorm(x + residual, gamma, beta, eps=1e-12)

    arrays = [x, residual, gamma, beta]
    assert_near(results(ours, arrays, gradient), results(theirs, arrays, gradient), tolerance)

    def gelu(x):
        return mx.nd.amp_cast(mx.nd.zoo_gelu(mx.nd.amp_cast(x, dtype=dtype)), dtype='float32')

    x = normal(5, 1001) * 3
    one = results(gelu, [x], normal(5, 1001))
    two = results(lambda x: mx.nd.LeakyReLU(x, act_type='gelu'), [x], normal(5, 1001))
    assert_near(one, two, tolerance)

    def attention(qkv, mask):
        qkv = mx.nd.amp_cast(qkv, dtype=dtype)
        result = operators.attention(mx.nd, qkv, mask, 2, 0.0)[0]
        return mx.nd.amp_cast(result, dtype='float32')

    for length in (1, 13, 40):
        qkv, gradient = normal(length, 3, 3 * 2 * 32), normal(length, 3, 2 * 32)
        mask = -10000 * (normal(6, length, length) > 0.5)
        one = results(functools.partial(attention, mask=mask), [qkv], gradient)
        assert_near(
            one,
            results(functools.partial(self_attention, mask=mask, heads=2), [qkv], gradient),
            tolerance,
        )


def classifier(family=BertForSequenceClassification, dropout=0.0, **options):
    rates = dict.fromkeys(RATES, dropout)
    mx.random.seed(1)
    block = family(tiny.bert_config(30, **CONFIG, **rates, **options), num_labels=2)
    block.initialize(mx.init.Normal(0.2))
    return block


BATCH = mx.nd.ones((3, 9)), mx.nd.zeros((3, 9)), mx.nd.array([9, 4, 1]), mx.nd.array([0, 1, 1])


def gradients(block, seed=1, steps=1):
    """The loss, and the gradient of each parameter."""
    mx.random.seed(seed)
    for _ in range(steps):
        with mx.autograd.record():
            loss = block(*BATCH)
        loss.backward()
    parameters = block.parameters_by_name()
    return {'loss': loss.asnumpy(), **{n: p.grad().asnumpy() for n, p in parameters.items()}}


def assert_same_gradients(one, two, tolerance):
    for name, value in two.items():
        size = max(np.abs(value).max(), 1e-3)
        np.testing.assert_allclose(one[name], value, 0, tolerance * size, err_msg=name)


@needs_compiler
@pytest.mark.parametrize('hybridized', [False, True])
@pytest.mark.parametrize(('dtype', 'tolerance'), [('float32', 1e-4), ('bfloat16', 0.1)])
def test_a_model_has_the_same_gradients(library, dtype, tolerance, hybridized):
    if dtype == 'bfloat16' and not {'avx512bw'} & operators.cpu_flags():
        pytest.skip('this processor has no bfloat16')

    def compute():
        block = classifier()
        block.cast(dtype)
        if hybridized:
            block.hybridize(**STATIC)
        return gradients(block, steps=2)

    assert_same_gradients(compute(), without(compute), tolerance)


@needs_compiler
def test_gradients_are_added(library):
    def compute(request, steps):
        block = classifier()
        block.collect_params().setattr('grad_req', request)
        block.hybridize(**STATIC)
        return gradients(block, steps=steps)

    added, once = compute('add', 3), compute('write', 1)
    assert_same_gradients(
        added, {**{n: 3 * g for n, g in once.items()}, 'loss': once['loss']}, 1e-4
    )


@needs_compiler
def test_a_seed_decides(library):
    block = classifier(dropout=0.3)
    block.hybridize(**STATIC)
    first, again, other = (gradients(block, seed) for seed in (5, 5, 6))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert first['loss'] != other['loss']


@needs_compiler
@pytest.mark.parametrize('rate', [0.1, 0.5])
def test_dropout(library, rate):
    gamma, beta = mx.nd.ones(64), mx.nd.zeros(64)
    y, zeros = mx.nd.ones((4000, 64)), mx.nd.zeros((4000, 64))
    with mx.autograd.record():
        result = operators.norm(mx.nd, y, zeros, gamma, beta, rate, 1e-12)
    kept = result.asnumpy() > 0
    assert abs(kept.mean() - (1 - rate)) < 0.005
    for axis in (0, 1):  # neighbours are independent
        near = np.corrcoef(kept.ravel(), np.roll(kept, 1, axis).ravel())[0, 1]
        assert abs(near) < 0.01
    context, probabilities = operators.attention(mx.nd, mx.nd.ones((50, 8, 384)), None, 4, rate)
    values = probabilities.asnumpy() * 50 * (1 - rate)
    np.testing.assert_allclose(values[values > 0], 1, rtol=1e-5)
    assert abs((values > 0).mean() - (1 - rate)) < 0.01
    sums = probabilities.sum(axis=-1).reshape((8, 4, 50)).transpose((2, 0, 1))
    expected = np.repeat(sums.asnumpy(), 32, axis=-1)
    np.testing.assert_allclose(context.asnumpy(), expected, rtol=1e-4)


@needs_compiler
def test_attentions_may_be_trained(library):
    def compute():
        block = BertModel(tiny.bert_config(30, **CONFIG, **RATES), output_attentions=True)
        mx.random.seed(1)
        block.initialize(mx.init.Normal(0.2))
        with mx.autograd.record(train_mode=True):
            attentions = block(*BATCH[:3])[-1]
            loss = sum((each**2).sum() for each in attentions)
        loss.backward()
        return {n: p.grad().asnumpy() for n, p in block.parameters_by_name().items() if 'qkv' in n}

    assert_same_gradients(compute(), without(compute), 1e-4)


@needs_compiler
def test_exported_graphs_have_none(library, tmp_path):
    block = BertModel(tiny.bert_config(30, **CONFIG))
    block.initialize()
    block.hybridize(**STATIC)
    with mx.autograd.record():
        block(*BATCH[:3])[0].sum().backward()
        export_block(block, str(tmp_path), 'while')
    nodes = json.loads((tmp_path / 'while-symbol.json').read_text())['nodes']
    assert not [node['op'] for node in nodes if node['op'].startswith('zoo_')]


@needs_compiler
@pytest.mark.parametrize('bound', [None, 0.5])
def test_the_update_equals_numpys(library, bound):
    def compute():
        arrays = [normal(1000, 33), 2 * normal(1000, 33), normal(1000, 33), normal(1000, 33) ** 2]
        step = host.Step(0.9, 0.01, 1e-6, 0.1, 0.001)
        host.update_by_adam([(arrays, 0.7, step)], (0.9, 0.999), bound)
        return [array.asnumpy() for array in arrays] + [np.array(host.sums_of_squares(arrays))]

    for one, two in zip(compute(), without(compute)):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)


@needs_compiler
def test_a_layer_of_many_threads(path):
    """Three threads compute what one does."""
    code = (
        'import model_zoo, mxnet as mx, numpy as np\n'
        'from model_zoo.layers.precision import LayerNorm\n'
        'layer = LayerNorm(in_channels=64)\n'
        'layer.initialize()\n'
        'layer.dropout_rate = 0.1\n'
        'mx.random.seed(3)\n'
        'x = mx.nd.array(np.random.RandomState(1).standard_normal((100, 64)))\n'
        'with mx.autograd.record():\n'
        '    y = layer(x, x)\n'
        'y.backward()\n'
        'for each in (y.sum(), (y**3).sum(), layer.gamma.grad().sum()):\n'
        '    print(each.asscalar())'
    )
    found = []
    for threads in ('1', '3'):
        environment = {**os.environ, 'ZOO_OPERATORS': path, 'OMP_NUM_THREADS': threads}
        run = [sys.executable, '-c', code]
        found.append(subprocess.check_output(run, env=environment, text=True).split())
    np.testing.assert_allclose(*[np.array(each, float) for each in found], rtol=1e-4, atol=1e-2)


def test_a_compiler_is_needed(monkeypatch):
    monkeypatch.setenv('CXX', 'no-such-compiler')
    assert operators.library_path() is None
    with pytest.raises(InputError, match='CXX'):
        operators.build()


def test_it_loads_beside_horovod(path):
    pytest.importorskip('horovod.mxnet')
    program = f'import model_zoo, mxnet, horovod.mxnet; mxnet.library.load({path!r})'
    assert subprocess.run([sys.executable, '-c', program]).returncode == 0
