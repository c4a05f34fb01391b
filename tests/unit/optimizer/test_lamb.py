"""LAMB against algorithm 2 of the paper in float64, and against MXNet's own on small tensors."""

import mxnet as mx
import numpy as np
import pytest
from arrays import make_parameters, set_gradient
from json_files import cases
from mxnet import gluon
from mxnet.optimizer import LAMB as Theirs

from model_zoo.optimizer import LAMB, disable_weight_decay

SHAPES = {'dense_weight': (7, 5), 'norm_gamma': (5,), 'cube_weight': (3, 4, 2), 'dense_bias': (7,)}


class Reference:
    """Algorithm 2 of You et al. 2020, with float64 and without any cleverness."""

    def __init__(self, wd, excluded=(), corrected=True, b1=0.9, b2=0.999, epsilon=1e-6):
        self.wd, self.excluded, self.corrected = wd, excluded, corrected
        self.b1, self.b2, self.epsilon = b1, b2, epsilon
        self.moments = {}
        self.count = 0

    def step(self, weights, grads, lr):
        self.count += 1
        for name, grad in grads.items():
            mean, var = self.moments.get(name, (0, 0))
            mean = self.b1 * mean + (1 - self.b1) * grad
            var = self.b2 * var + (1 - self.b2) * grad**2
            self.moments[name] = mean, var
            if self.corrected:
                mean = mean / (1 - self.b1**self.count)
                var = var / (1 - self.b2**self.count)
            update = mean / (np.sqrt(var) + self.epsilon)
            ratio = 1.0
            if name not in self.excluded:
                update = update + self.wd * weights[name]
                length, of_update = np.linalg.norm(weights[name]), np.linalg.norm(update)
                ratio = length / of_update if length > 0 and of_update > 0 else 1.0
            weights[name] = weights[name] - lr * ratio * update


@pytest.mark.parametrize('wd', [0.0, 0.01])
@pytest.mark.parametrize('corrected', [True, False])
def test_30_steps_equal_the_papers_algorithm(wd, corrected):
    random = np.random.RandomState(3)
    weights = {name: random.normal(size=shape) for name, shape in SHAPES.items()}
    weights['cube_weight'][:] = 0  # the ratio of a weight of length 0 is 1
    parameters = make_parameters(weights)
    excluded = disable_weight_decay(parameters)
    assert sorted(excluded) == ['dense_bias', 'norm_gamma']
    reference = Reference(wd, excluded, corrected)
    trainer = gluon.Trainer(
        parameters, 'lamb', {'wd': wd, 'bias_correction': corrected}, update_on_kvstore=False
    )
    assert type(trainer._optimizer) is LAMB
    for step in range(30):
        grads = {name: random.normal(size=shape) * 0.1 for name, shape in SHAPES.items()}
        lr = 0.02 / (1 + step)
        reference.step(weights, grads, lr)
        trainer.set_learning_rate(lr)
        for name, grad in grads.items():
            set_gradient(parameters[name], mx.nd.array(grad))
        trainer.step(1)
        for name, value in weights.items():
            difference = np.abs(parameters[name].data().asnumpy() - value).max()
            assert difference < 2e-6, (step, name, difference)


def run(optimizer, weights, all_grads):
    """The weights after an update by each of the gradients."""
    arrays = [mx.nd.array(weight) for weight in weights]
    update = mx.optimizer.get_updater(optimizer)
    for grads in all_grads:
        update(list(range(len(arrays))), [mx.nd.array(grad) for grad in grads], arrays)
    return [array.asnumpy() for array in arrays]


OPTIONS = cases('optimizers')['lamb']


@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_takes_the_place_of_mxnets(options):
    random = np.random.RandomState(0)
    weights = [random.normal(size=shape) for shape in SHAPES.values()]
    grads = [[random.normal(size=weight.shape) for weight in weights] for _ in range(5)]
    ours, theirs = (
        run(kind(learning_rate=1e-2, wd=0.1, **options), weights, grads) for kind in (LAMB, Theirs)
    )
    for our, their, weight in zip(ours, theirs, weights):
        np.testing.assert_allclose(our - weight, their - weight, rtol=2e-4, atol=2e-6)


def test_a_scale_on_the_device_and_clipping_by_the_norm():
    random = np.random.RandomState(2)
    weight, grad = random.normal(size=(6, 6)), random.normal(size=(6, 6))
    number = LAMB(learning_rate=0.1, rescale_grad=0.5, max_grad_norm=1.0)
    array = LAMB(learning_rate=0.1, max_grad_norm=1.0)
    array.rescale_grad = mx.nd.array([0.5])
    expected = {'w': weight.copy()}
    Reference(0).step(expected, {'w': grad / np.linalg.norm(grad)}, 0.1)
    for optimizer in (number, array):
        (after,) = run(optimizer, [weight], [[grad]])
        np.testing.assert_allclose(after, expected['w'], rtol=1e-5, atol=1e-6)
