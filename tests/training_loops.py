"""A toy training: weighted rows in batches, a small block, and a loop of them."""

import mxnet as mx
import numpy as np
from arrays import assert_same
from mxnet.gluon import nn

from model_zoo.training import Job, TrainingLoop, Updater
from model_zoo.training.checkpoint import CheckpointStore, seed_all
from model_zoo.training.objective import Objective

EXAMPLES, FEATURES = 24, 5


class Rows:
    """Batches of weighted examples; every third weight is 0, so that parts have other counts.

    `factor` is a function of an epoch's and a batch's number by which the targets are multiplied.
    """

    def __init__(self, size=4, rank=0, parts=1, factor=lambda epoch, number: 1):
        rng = np.random.RandomState(3)
        self.x = rng.randn(EXAMPLES, FEATURES).astype('float32')
        self.y = (self.x @ rng.randn(FEATURES, 1) + 0.1).astype('float32')
        self.weight = (np.arange(EXAMPLES) % 7 % 3 > 0).astype('float32')
        self.size, self.rank, self.parts = size, rank, parts
        self.factor = factor

    def epoch(self, epoch, start=0):
        order = np.random.RandomState(epoch).permutation(EXAMPLES)
        for number in range(start, -(-EXAMPLES // self.size)):
            rows = order[number * self.size : (number + 1) * self.size][self.rank :: self.parts]
            y = self.y * self.factor(epoch, number)
            arrays = [mx.nd.array(each[rows]) for each in (self.x, y, self.weight)]
            yield (*arrays, self.weight[rows]) if len(rows) else None


def make_loop(
    folder=None,
    loader=None,
    num_steps=18,
    optimizer='bertadam',
    dropout=0.0,
    keep=2,
    schedule=None,
    max_grad_norm=1.0,
    loss_scale=None,
    **options,
):
    """A `TrainingLoop` with two terms, which keeps checkpoints in a folder."""
    seed_all(3)
    block = nn.HybridSequential()
    block.add(nn.Dense(8, in_units=FEATURES, activation='tanh'), nn.Dropout(dropout))
    block.add(nn.Dense(1, in_units=8))
    block.initialize(mx.init.Normal(0.3))
    block.hybridize(static_alloc=True)
    rate = {'learning_rate': 0.05}
    trainer = mx.gluon.Trainer(block.collect_params(), optimizer, rate, update_on_kvstore=False)

    def terms(batch):
        x, y, weight, _ = batch
        out = block(x)
        squares = ((out - y) ** 2).reshape((-1,))
        right = (out > 0) == (y > 0)
        weighted = (squares * weight).sum() / mx.nd.maximum(weight.sum(), 1)
        return [weighted, squares.mean(), (right.reshape((-1,)) * weight).sum(), right.sum()]

    objective = Objective(
        terms,
        lambda batch: (int(batch[3].sum()), len(batch[3])),
        names=('one', 'two'),
        accuracies=True,
        tokens=lambda batch: 10 * len(batch[3]),
    )
    store = CheckpointStore(str(folder), keep=keep) if folder else None
    updater = Updater(block, trainer, schedule, max_grad_norm, loss_scale)
    options = {'job': Job({}), 'store': store, **options}
    return TrainingLoop(updater, objective, loader or Rows(), num_steps, **options)


def trained(*args, **options):
    """As `make_loop`, after its run."""
    loop = make_loop(*args, **options)
    loop.run()
    return loop


def values(loop):
    return [each.list_data()[0].asnumpy() for each in loop.block.collect_params().values()]


def assert_close(left, right, atol=0):
    assert_same(values(left), values(right), atol)
