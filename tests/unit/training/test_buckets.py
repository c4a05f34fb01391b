"""Gradients in buckets, and their sums over real Horovod workers."""

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same
from mxnet.gluon import nn
from script_runs import train_in_workers

from model_zoo.training.workers import bucket_gradients


def make_net(units=3):
    net = nn.HybridSequential()
    net.add(nn.Dense(5, in_units=units), nn.Dense(40, in_units=5), nn.Dense(1, in_units=40))
    net.initialize(mx.init.Normal(0.5))
    net.hybridize(static_alloc=True, static_shape=True)
    return net, list(net.collect_params().values())


def gradients(net, parameters, seed):
    x = mx.nd.array(np.random.RandomState(seed).randn(7, 3))
    with mx.autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    return [parameter.grad().asnumpy() for parameter in parameters]


def test_a_backward_pass_writes_into_the_buckets():
    net, parameters = make_net()
    buckets = bucket_gradients(parameters, 4 * 64)
    # the last layer's first; 200 weights are too many for a bucket of others
    assert [array.size for array in buckets] == [16 + 48, 40, 200, 16 + 16]
    for seed in (1, 2):
        found = gradients(net, parameters, seed)
        other, others = make_net()
        for parameter, its in zip(parameters, others):
            its.set_data(parameter.data())
        assert_same(found, gradients(other, others, seed), 0)
        for array in buckets:
            array *= 2
        for parameter, ours in zip(parameters, found):
            np.testing.assert_array_equal(parameter.grad().asnumpy(), 2 * ours)
            assert parameter.data()._fresh_grad  # or the trainer would refuse it


PROGRAM = """
import sys
import mxnet as mx, numpy as np
from model_zoo.training.workers import HorovodWorkers

compression = {'-': None}.get(sys.argv[1], sys.argv[1])
workers = HorovodWorkers(compression, bucket_bytes=512)
shapes = {'words': (5000, 4), 'tied': (900, 2), 'middle': (40, 3), 'bias': (7,), 'out': (30, 3)}
parameters = [mx.gluon.Parameter(name, shape=shape) for name, shape in shapes.items()]
for parameter in parameters:
    parameter.initialize()

def gradient(name, shape, rank, step):
    return np.random.RandomState([rank, step, len(name)]).randint(-9, 9, shape).astype('f4')

workers.prepare(parameters)
for step in range(3):
    for parameter, (name, shape) in zip(parameters, shapes.items()):
        parameter.grad()[:] = gradient(name, shape, workers.rank, step)
    workers.sum_gradients(parameters)
    for parameter, (name, shape) in zip(parameters, shapes.items()):
        wanted = sum(gradient(name, shape, rank, step) for rank in range(workers.size))
        np.testing.assert_array_equal(parameter.grad().asnumpy(), wanted, err_msg=(name, step))
print('as wanted')
"""


@pytest.mark.parametrize('compression', ['-', 'float16'])
def test_workers_sum_gradients_of_all_kinds(tmp_path, compression):
    """In buckets, and in float16, which holds small integers."""
    program = tmp_path / 'sums.py'
    program.write_text(PROGRAM)
    assert train_in_workers(2, program, compression).count('as wanted') == 2
