"""Updates that the processes of one machine share out, by real Horovod workers."""

import mxnet as mx
import pytest
from mxnet.gluon import nn
from script_runs import train_in_workers

from model_zoo.training import Updater, Workers
from model_zoo.training import shared_update as module

# The weights after some updates, by workers that share memory and by others, and what `release`
# leaves to each. The net has weights of several pieces, and of less than one part.
PROGRAM = '''
import sys
import mxnet as mx, numpy as np
from mxnet.gluon import nn
from model_zoo.training import HorovodWorkers, Updater, Workers
from model_zoo.training import shared_update as module
from model_zoo.training.optimizer_state import load_optimizer, optimizer_tensors

plain, sharing = HorovodWorkers(share_memory=False), HorovodWorkers()
assert sharing.share_memory and not plain.share_memory and not Workers().share_memory
assert not HorovodWorkers('float16').share_memory

def make_net():
    mx.random.seed(plain.rank)  # the sharing takes worker 0's weights for all
    np.random.seed(plain.rank)
    net = nn.HybridSequential()
    net.add(
        nn.Dense(700, in_units=30, activation='tanh'), nn.LayerNorm(in_channels=700),
        nn.Dense(300, in_units=700, activation='tanh'), nn.Dense(1, in_units=300),
    )
    net.initialize(mx.init.Normal(0.1))
    net.hybridize(static_alloc=True, static_shape=True)
    net(mx.nd.ones((2, 30)))
    plain.broadcast(net)
    return net

# with a small epsilon Adam would make much of the rounding of gradients that are nearly 0
options = {'learning_rate': 0.01, 'wd': 0.01, 'epsilon': 1e-3}

def train(workers, optimizer, steps, state=None, adding=False):
    """Weights, moments and norms after updates with all workers' examples."""
    net = make_net()
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, options, update_on_kvstore=False)
    updater = Updater(net, trainer, max_grad_norm=0.5)
    first = 0
    if state is not None:
        weights, tensors, updates = state
        for parameter, value in zip(net.collect_params().values(), weights):
            parameter.set_data(value)
        load_optimizer(net, trainer, tensors, updates, 'a test')
        first = updates['num_update']
    context = updater.adding_gradients()
    if adding:
        context.__enter__()
    updater.prepare(workers)
    shares = updater._shared is not None
    assert optimizer_tensors(net, trainer)[0].keys() == (state[1].keys() if state else set())
    norms = []
    for step in range(first, steps):
        if adding:
            updater.zero_gradients()
        x = np.random.RandomState(step).randn(12, 30).astype('f4')
        rows = slice(workers.rank, None, workers.size)
        for part in np.split(x[rows], 2 if adding else 1):
            with mx.autograd.record():
                loss = ((net(mx.nd.array(part)) - mx.nd.array(part[:, :1] ** 2)) ** 2).sum()
            loss.backward()
        norms.append(updater.update(step + 1, workers)[1].asscalar())
        net(mx.nd.ones((5, 30))).wait_to_read()  # an evaluation in between
    values = lambda: [p.data().asnumpy() for p in net.collect_params().values()]
    tensors, updates = optimizer_tensors(net, trainer)
    before = values()
    updater.release()
    if shares:
        plain.sum([0.0])
        for parameter in net.collect_params().values():  # each process has its own now
            parameter.set_data(parameter.data() * workers.rank)
        mx.nd.waitall()
        plain.sum([0.0])
        for parameter, value in zip(values(), before):
            np.testing.assert_array_equal(parameter, value * workers.rank)
        assert trainer._optimizer.workers is None and updater._shared is None
    return shares, before, tensors, updates, norms

def flat(found):
    _, weights, tensors, _, norms = found
    moments = [tensors[name].ravel() for name in sorted(tensors)]
    return np.concatenate([value.ravel() for value in weights] + moments + [np.array(norms)])

for optimizer in 'bertadam', 'lamb':
    for adding in True, False:
        wanted = train(plain, optimizer, 6, adding=adding)
        found = train(sharing, optimizer, 6, adding=adding)
        assert found[0] and not wanted[0]
        np.testing.assert_allclose(flat(found), flat(wanted), rtol=2e-5, atol=2e-6)
    # bit for bit the same in all processes, and when resumed
    mine = flat(found).astype('f8')
    np.testing.assert_array_equal(plain.sum(mine), mine * plain.size)
    half = train(sharing, optimizer, 3)
    again = train(sharing, optimizer, 6, half[1:4])
    np.testing.assert_array_equal(flat(found)[:-6], flat(again)[:-3])

# where that can't be done, each process updates all weights
wanted = flat(train(plain, 'bertadam', 3))
def refuse(*_):
    raise OSError(28, 'No space left on device')
kept = module.os.posix_fallocate
module.os.posix_fallocate = refuse
found = train(sharing, 'bertadam', 3)
assert not found[0]
np.testing.assert_array_equal(flat(found), wanted)
module.os.posix_fallocate = kept
kept = module._map
module._map = lambda path, *rest: kept('/proc/self/stat', *rest)  # as a container's other process
found = train(sharing, 'bertadam', 3)
assert not found[0]
np.testing.assert_array_equal(flat(found), wanted)
module._map = kept
assert train(sharing, 'bertadam', 3)[0]
print('as wanted')
'''


@pytest.mark.parametrize('count', [2, 3])
def test_processes_update_a_part_each(tmp_path, count):
    program = tmp_path / 'shares.py'
    program.write_text(PROGRAM)
    assert train_in_workers(count, program).count('as wanted') == count


def test_what_cannot_be_shared_out():
    class Sharing(Workers):
        size, share_memory = 2, True

        def sum(self, values):
            raise AssertionError('nothing is to be mapped')

    def shares(net, optimizer='bertadam', dtype='float32', trained=slice(None), **options):
        net.initialize()
        net.cast(dtype)
        every = net.collect_params()
        trainer = mx.gluon.Trainer(every, optimizer, options, update_on_kvstore=False)
        updater = Updater(net, trainer)
        try:
            return module.SharedUpdate.share(updater.parameters[trained], trainer, Sharing())
        except AssertionError:
            return True

    assert shares(nn.Dense(3, in_units=2))
    assert shares(nn.Dense(3, in_units=2), 'lamb')
    assert not shares(nn.Dense(3, in_units=2), 'sgd')
    assert not shares(nn.Dense(3, in_units=2), max_grad_norm=1.0)
    assert not shares(nn.Dense(3, in_units=2), dtype='float16')
    assert not shares(nn.Dense(3, in_units=2), trained=slice(1))
    assert not shares(nn.Conv2D(3, 2, in_channels=2))
