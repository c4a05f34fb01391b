"""Gradients summed over real Horovod workers."""

import pytest
from script_runs import train_in_workers

PROGRAM = """
import sys
import model_zoo
import mxnet as mx, numpy as np
from model_zoo.training.workers import HorovodWorkers

workers = HorovodWorkers({'-': None}.get(sys.argv[1], sys.argv[1]))
shapes = {'words': (5000, 4), 'middle': (40, 3), 'bias': (7,)}
parameters = [mx.gluon.Parameter(name, shape=shape) for name, shape in shapes.items()]
for parameter in parameters:
    parameter.initialize()

def gradient(name, shape, rank, step):
    return np.random.RandomState([rank, step, len(name)]).randint(-9, 9, shape).astype('f4')

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
def test_workers_sum_gradients(tmp_path, compression):
    """In float16, too, which holds small integers."""
    program = tmp_path / 'sums.py'
    program.write_text(PROGRAM)
    assert train_in_workers(2, program, compression).count('as wanted') == 2
