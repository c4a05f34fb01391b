"""Updates by NumPy equal those of MXNet's operators."""

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same, make_parameters, set_gradient
from json_files import cases
from mxnet import gluon

from model_zoo import optimizer as zoo
from model_zoo.optimizer import host

SHAPES = (1100, 10, 100), (17,), (1,), (2, 5)  # the first one is for several threads
OPTIONS = cases('optimizers')['host']


def trained(name, options, steps=3):
    """Weights and moments after some steps."""
    random = np.random.RandomState(0)
    weights = {f'w{number}_weight': random.normal(size=s) for number, s in enumerate(SHAPES)}
    parameters = list(make_parameters(weights).values())
    trainer = gluon.Trainer(parameters, name, {'learning_rate': 0.01, **options}, kvstore=None)
    for _ in range(steps):
        for parameter in parameters:
            set_gradient(parameter, mx.nd.array(random.normal(size=parameter.shape)))
        trainer.step(1)
    states = trainer._updaters[0].states
    return [
        array.asnumpy()
        for number, parameter in enumerate(parameters)
        for array in (parameter.data(), *states[number])
    ]


@pytest.mark.parametrize(('name', 'options'), OPTIONS)
def test_equals_the_operators(monkeypatch, name, options):
    monkeypatch.setenv('OMP_NUM_THREADS', '3')
    found = trained(name, options)
    monkeypatch.setattr(host, 'are_on_host', lambda arrays: False)
    for mine, theirs in zip(found, trained(name, options)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize(('name', 'options'), OPTIONS[:1] + OPTIONS[4:5])
def test_threads_change_nothing(monkeypatch, name, options):
    found = []
    for threads in ('1', '5'):
        monkeypatch.setenv('OMP_NUM_THREADS', threads)
        found.append(trained(name, options))
    for other in found[1:]:
        assert_same(other, found[0], 0)


@pytest.mark.parametrize('name', ['bertadam', 'lamb'])
@pytest.mark.parametrize('scale', [0.0, np.inf, np.nan])
def test_an_update_of_no_use_is_skipped(name, scale):
    found = trained(name, {'rescale_grad': scale})
    assert all(np.isfinite(array).all() for array in found)
    moments = [array for number, array in enumerate(found) if number % 3]
    assert not any(array.any() for array in moments)


@pytest.mark.filterwarnings('error::RuntimeWarning')  # of NumPy
def test_numbers_that_are_not_finite_are_told_by_the_norm():
    parameter = gluon.Parameter('w', shape=(3,))
    parameter.initialize()
    parameter.grad()[:] = mx.nd.array([np.inf, np.nan, 1])
    assert np.isnan(zoo.clip_grad_global_norm([parameter], 1.0).asscalar())


def test_weights_that_onednn_keeps_in_its_own_layout():
    """An inference changes the layout of a layer's weight in memory."""
    layer = gluon.nn.Dense(64, in_units=96)
    layer.initialize(mx.init.Normal(0.1))
    layer.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.random.normal(shape=(32, 96))
    trainer = gluon.Trainer(layer.collect_params(), 'bertadam', {'learning_rate': 0.1})
    for _ in range(2):
        layer(x).wait_to_read()
        with mx.autograd.record():
            loss = layer(x).square().sum()
        loss.backward()
        before = layer.weight.data().copy().asnumpy()
        trainer.step(1)
        layer(x).wait_to_read()
        after = layer.weight.data().asnumpy()
        assert np.abs(after - before).mean() > 0.05
        expected = x.asnumpy() @ after.T + layer.bias.data().asnumpy()
        np.testing.assert_allclose(layer(x).asnumpy(), expected, atol=1e-4)
