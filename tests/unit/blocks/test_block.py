"""The base of the blocks, on a made-up family of two parameters."""

import dataclasses

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same
from mxnet.gluon import nn

from model_zoo.blocks.block import ZooBlock
from model_zoo.blocks.config import Config


@dataclasses.dataclass
class TinyConfig(Config):
    units: int = 3


class Tiny(ZooBlock):
    """(x, y, z) -> (x W + b) (* y) (* each of z)."""

    config_class = TinyConfig

    def __init__(self, config, prefix=None, params=None):
        super().__init__(config, prefix=prefix, params=params)
        self.traces = 0
        with self.name_scope():
            self.dense = nn.Dense(config.units, in_units=config.units)

    def __call__(self, x, y=None, z=None):
        return super().__call__(x, y, z)

    def hybrid_forward(self, F, x, y=None, z=None):
        self.traces += 1
        result = self.dense(x)
        if y is not None:
            result = result * y
        if z is not None:
            result = [result * part for part in z]
        return result


def make(block_class=Tiny):
    block = block_class(TinyConfig())
    block.initialize(mx.init.Normal(1))
    return block


# -- graphs -------------------------------------------------------------------------------------


@pytest.mark.parametrize('flags', [{}, {'static_alloc': True, 'static_shape': True}])
def test_one_graph_for_each_combination_of_inputs(flags):
    block = make()
    x, y, z = mx.nd.ones((2, 3)), mx.nd.ones((2, 3)), [mx.nd.full((2, 3), 2), mx.nd.ones((1, 1))]
    combinations = [(x,), (x, y), (x, None, z), (x, y, z), (x, y, z[:1])]
    z[1] = mx.nd.full((2, 3), 3)
    plain = [block(*combination) for combination in combinations]
    block.hybridize(**flags)
    block.traces = 0
    for _ in range(3):
        for combination, expected in zip(combinations, plain):
            result = block(*combination)
            assert type(result) is type(expected)
            pairs = zip(*(r if isinstance(r, list) else [r] for r in (result, expected)))
            for one, two in pairs:
                np.testing.assert_allclose(one.asnumpy(), two.asnumpy(), atol=1e-6)
    assert block.traces == len(combinations)


def test_graphs_are_dropped_when_the_block_changes():
    block = make()
    x, y = mx.nd.ones((2, 3)), mx.nd.ones((2, 3))
    block.hybridize()
    block(x), block(x, y)
    block.traces = 0
    block.hybridize()
    block(x), block(x, y)
    assert block.traces == 2
    block.cast('float64')
    x, y = x.astype('float64'), y.astype('float64')
    assert block(x).dtype == block(x, y).dtype == np.float64
    block.dense = nn.Dense(3, in_units=3, use_bias=False)
    block.dense.initialize(mx.init.One())
    block.dense.cast('float64')
    assert (block(x).asnumpy() == 3).all() and (block(x, 2 * y).asnumpy() == 6).all()


# -- files --------------------------------------------------------------------------------------


def test_contexts_stay_where_they_are(tmp_path):
    path = str(tmp_path / 'file')
    make().save_parameters(path)
    block = Tiny(TinyConfig())
    block.initialize(ctx=mx.cpu(1))
    block.load_parameters(path)
    assert block.dense.weight.list_ctx() == [mx.cpu(1)]
    block.load_parameters(path, ctx=mx.cpu(0))
    assert block.dense.weight.list_ctx() == [mx.cpu(0)]
    fresh = Tiny(TinyConfig())  # not initialized
    fresh.load_parameters(path, ctx=[mx.cpu(0), mx.cpu(1)])
    assert fresh.dense.weight.list_ctx() == [mx.cpu(0), mx.cpu(1)]
    assert_same(fresh.dense.weight.data(mx.cpu(1)), block.dense.weight.data(), 0)
