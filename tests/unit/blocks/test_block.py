"""The base of the blocks, on a made-up family of two parameters."""

import dataclasses
import os

import arrays
import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn

from model_zoo.blocks.block import ZooBlock
from model_zoo.blocks.config import Config
from model_zoo.checkpoint import Mapping, Rule, read_tensors
from model_zoo.errors import InputError
from model_zoo.util.arrays import check_range, check_shape


@dataclasses.dataclass
class TinyConfig(Config):
    units: int = 3


class Tiny(ZooBlock):
    """(x, y, z) -> (x W + b) (* y) (* each of z)"""

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

    @classmethod
    def name_maps(cls, config):
        rules = [
            Rule('dense.weight', 'd.w'),
            Rule('dense.bias', 'd.b'),
            Rule('^head.weight', '^head.w'),
            Rule('^head.bias', '^head.b'),
        ]
        return {'other': Mapping(rules, 'body.')}


class TinyTask(Tiny):
    backbone = 'body'

    def __init__(self, config, prefix=None, params=None):
        ZooBlock.__init__(self, config, prefix=prefix, params=params)
        with self.name_scope():
            self.body = Tiny(config)
            self.head = nn.Dense(2, in_units=config.units)
            self.shared = self.body.dense.weight

    def hybrid_forward(self, F, x, y=None, z=None, shared=None):
        return self.head(self.body(x, y, z))


def make(block_class=Tiny):
    block = block_class(TinyConfig())
    block.initialize(mx.init.Normal(1))
    return block


def tensors(block):
    return {
        name: parameter.data().asnumpy()
        for name, parameter in block._collect_params_with_prefix().items()
    }


def assert_equal(one, two):
    arrays.assert_equal(tensors(one), tensors(two))


# -- graphs -------------------------------------------------------------------------------------


@pytest.mark.parametrize('flags', [{}, {'static_alloc': True}, {'static_alloc': True,
                                                               'static_shape': True}])  # fmt: skip
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


def test_new_values_are_used_by_all_graphs():
    block = make()
    x = mx.nd.ones((2, 3))
    block.hybridize(static_alloc=True, static_shape=True)
    block(x), block(x, x)
    block.dense.weight.set_data(mx.nd.zeros((3, 3)))
    block.dense.bias.set_data(mx.nd.ones((3,)))
    assert (block(x).asnumpy() == 1).all() and (block(x, 2 * x).asnumpy() == 2).all()
    block.dense.bias.data()[:] = 5  # as the optimizers do
    assert (block(x).asnumpy() == 5).all()


def test_gradients_in_several_graphs():
    block = make()
    x = mx.nd.ones((2, 3))
    block.hybridize(static_alloc=True)
    for calls in [(x,)], [(x, x)], [(x,)], [(x,), (x, x)]:
        with mx.autograd.record():
            loss = sum(block(*arguments).sum() for arguments in calls)
        loss.backward()
        np.testing.assert_allclose(block.dense.weight.grad().asnumpy(), 2 * len(calls))
        np.testing.assert_allclose(block.dense.bias.grad().asnumpy(), 2 * len(calls))


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize('form', ['native', 'other'])
@pytest.mark.parametrize('block_class', [Tiny, TinyTask])
def test_save_and_load(tmp_path, form, block_class):
    path = str(tmp_path / 'file')
    block, other = make(block_class), make(block_class)
    block.save_parameters(path, format=form)
    other.load_parameters(path)
    assert_equal(block, other)
    fresh = block_class(TinyConfig())  # not initialized
    fresh.load_parameters(path, ctx=[mx.cpu(0), mx.cpu(1)])
    assert_equal(block, fresh)
    dense = (fresh.body if block_class is TinyTask else fresh).dense
    assert dense.weight.list_ctx() == [mx.cpu(0), mx.cpu(1)]


def test_shared_parameters_are_written_once(tmp_path):
    path = str(tmp_path / 'file')
    make(TinyTask).save_parameters(path)
    names, metadata = read_tensors(path)
    assert sorted(names) == ['body.dense.bias', 'body.dense.weight', 'head.bias', 'head.weight']
    assert metadata['class'] == 'TinyTask' and metadata['backbone'] == 'body'


def test_contexts_stay_where_they_are(tmp_path):
    path = str(tmp_path / 'file')
    make().save_parameters(path)
    block = Tiny(TinyConfig())
    block.initialize(ctx=mx.cpu(1))
    block.load_parameters(path)
    assert block.dense.weight.list_ctx() == [mx.cpu(1)]
    block.load_parameters(path, ctx=mx.cpu(0))
    assert block.dense.weight.list_ctx() == [mx.cpu(0)]


def test_save_into_nowhere(tmp_path):
    with pytest.raises(InputError, match='cannot write'):
        make().save_parameters(str(tmp_path / 'none' / 'file'))
    with pytest.raises(InputError, match="unknown format 'x'; known: native, other"):
        make().save_parameters(str(tmp_path / 'file'), format='x')
    assert os.listdir(tmp_path) == []


def test_pretrained_folder(tmp_path):
    block = make()
    block.save_pretrained(str(tmp_path / 'a' / 'b'))
    assert sorted(os.listdir(tmp_path / 'a' / 'b')) == ['SHA256SUMS', 'config.json', 'model.params']
    loaded = Tiny.from_pretrained(str(tmp_path / 'a' / 'b'))
    assert_equal(block, loaded)
    assert loaded.config == block.config


def test_pretrained_weights_of_another_precision(tmp_path):
    block = make()
    block.cast('float16')
    block.save_pretrained(str(tmp_path))
    loaded = Tiny.from_pretrained(str(tmp_path))
    assert loaded.dense.weight.data().dtype == np.float32
    assert_equal(loaded, block)


def test_parameters_that_files_hold_in_another_shape(tmp_path, monkeypatch):
    class Half:  # half of it is padding
        def load(self, arrays, config):
            return np.pad(arrays[0], [(0, 1), (0, 0)])

        def save(self, array, config):
            return [array[:2]]

    half = {'dense.weight': Half()}
    monkeypatch.setattr('model_zoo.blocks.files.padding_of', half.get)
    block, other = make(TinyTask), make(TinyTask)
    block.save_parameters(str(tmp_path / 'file'))
    assert read_tensors(tmp_path / 'file')[0]['body.dense.weight'].shape == (2, 3)
    other.load_parameters(str(tmp_path / 'file'))
    ours, theirs = (each.body.dense.weight.data().asnumpy() for each in (block, other))
    np.testing.assert_array_equal(theirs[:2], ours[:2])
    assert not theirs[2].any()


# -- checks -------------------------------------------------------------------------------------


def test_shapes():
    check_shape('x', mx.nd.ones((2, 3)), (2, -1))
    for shape, message in [
        ((2, 2), r'x must have shape \(2, 2\), but has \(2, 3\)'),
        ((-1,), r'x must have shape \(any\), but has'),
        ((-1, -1, 3), 'any, any, 3'),
    ]:
        with pytest.raises(InputError, match=message):
            check_shape('x', mx.nd.ones((2, 3)), shape)
    for value, kind in [([[1]], 'list'), (np.ones((2, 3)), 'ndarray'), (None, 'NoneType')]:
        message = rf'x must be an NDArray, but is a {kind}: pass mx.nd.array\(x\)'
        with pytest.raises(InputError, match=message):
            check_shape('x', value, (2, 3))
    for shape in [(0, 3), (2, 0)]:
        with pytest.raises(InputError, match=r'x is empty: it has shape \('):
            check_shape('x', mx.nd.array(np.zeros(shape)), (-1, -1))


def test_ranges():
    check_range('ids', mx.nd.array([[0, 4]]), 0, 5, are_ids=True)
    for values, wrong in [([0, 5], 5), ([-1, 2], -1), ([1, np.nan], 'nan'), ([np.inf, 1], 'inf'),
                          ([1, 1234567], 1234567)]:  # fmt: skip
        with pytest.raises(InputError, match=rf'ids holds {wrong}, and its .* \[0, 5\): was the t'):
            check_range('ids', mx.nd.array(values, dtype='float64'), 0, 5, are_ids=True)
    for dtype in ('float16', 'float32', 'float64'):
        with pytest.raises(InputError, match='ids holds 1.5, and ids are whole numbers'):
            check_range('ids', mx.nd.array([[0, 4], [1.5, 1]], dtype=dtype), 0, 5, are_ids=True)
    check_range('labels', mx.nd.array([-1, 2]), -1, 3)
    with pytest.raises(InputError, match=r'labels holds -2, and its values must be in \[-1, 3\)$'):
        check_range('labels', mx.nd.array([-2, 2]), -1, 3)
    shared = mx.nd.array([-2, 2], ctx=mx.Context('cpu_shared', 0))  # as DataLoader's workers give
    with pytest.raises(InputError, match='labels holds -2'):
        check_range('labels', shared, -1, 3)
