"""float16 and bfloat16: the bricks, and whole models of all families beside float32."""

import os

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import array
from halves import HALVES

import bert
from model_zoo.checkpoint import read_tensors
from model_zoo.errors import CheckpointError, UnknownNameError
from model_zoo.layers.losses import cross_entropy, mean_squared_error, span_cross_entropy
from model_zoo.layers.precision import Dense, LayerNorm, set_precision
from model_zoo.layers.sequences import positions_of

CONFIG = tiny.bert_config(41, hidden_size=32, num_attention_heads=4, intermediate_size=512)
#: relative to the largest output or gradient of a parameter; the types have 11 and 8 bits
TOLERANCES = {'float32': 1e-5, 'float16': 0.01, 'bfloat16': 0.04}
HYBRIDIZED = [None, {'static_alloc': True, 'static_shape': True}]
NORMAL = mx.init.Normal(0.1)


def rounded(values, dtype):
    """float32 values as the type has them; bfloat16 is the first half of float32's bits."""
    values = np.asarray(values, 'float32')
    if dtype != 'bfloat16':
        return values.astype(dtype).astype('float32')
    bits = values.view('uint32')
    bits = bits + 0x7FFF + (bits >> 16 & 1)  # to the nearest, halves to even
    return (bits & 0xFFFF0000).astype('uint32').view('float32')


def difference(one, two):
    """The largest difference relative to the largest value of `two`."""
    one, two = (np.asarray(each, 'float32') for each in (one, two))
    return np.abs(one - two).max() / np.abs(two).max()


# -- the bricks ---------------------------------------------------------------------------------


@pytest.mark.parametrize('dtype', HALVES)
@pytest.mark.parametrize('hybridized', HYBRIDIZED)
def test_dense(dtype, hybridized):
    layer = Dense(5, in_units=24, flatten=False, activation='tanh')
    layer.initialize(NORMAL)
    weight = layer.weight.data().asnumpy()
    set_precision(layer, dtype)
    if hybridized is not None:
        layer.hybridize(**hybridized)
    x = np.random.standard_normal((3, 2, 24)).astype('float32')
    stored = 'float16' if dtype == 'float16' else 'float32'
    result = layer(mx.nd.array(x, dtype=stored))
    assert result.dtype == layer.weight.data().dtype == np.dtype(stored)
    product = rounded(x, dtype) @ rounded(weight, dtype).T
    expected = np.tanh(rounded(product, dtype))
    tolerance = 2**-8 if dtype == 'bfloat16' else 2**-10
    np.testing.assert_allclose(result.asnumpy(), expected, atol=tolerance)
    assert difference(result.asnumpy(), np.tanh(x @ weight.T)) > 1e-5


@pytest.mark.parametrize('hybridized', HYBRIDIZED)
def test_layer_norm_of_what_float16_cannot_square(hybridized):
    layer = LayerNorm(epsilon=1e-12, in_channels=64)
    layer.initialize()
    set_precision(layer, 'float16')
    if hybridized is not None:
        layer.hybridize(**hybridized)
    x = np.random.standard_normal((2, 64)).astype('float16') * 1000
    result = layer(mx.nd.array(x, dtype='float16'))
    assert result.dtype == np.float16
    x = x.astype('float32')
    expected = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    np.testing.assert_allclose(result.asnumpy(), expected, atol=0.003)
    same = layer(mx.nd.ones((1, 64), dtype='float16')).asnumpy()
    np.testing.assert_array_equal(same, np.zeros_like(same))  # epsilon isn't 0


@pytest.mark.parametrize('axis', [0, 1, 2])
def test_positions_are_exact_in_float16(axis):
    shape = [1, 1, 1]
    shape[axis] = 3001
    result = positions_of(mx.nd, mx.nd.zeros(tuple(shape), dtype='float16'), axis)
    np.testing.assert_array_equal(result.asnumpy(), np.arange(3001))
    assert result.dtype == np.float32


def test_losses_are_float32():
    scores = np.random.standard_normal((4, 9)).astype('float16') * 8
    half, full = mx.nd.array(scores, dtype='float16'), mx.nd.array(scores.astype('float32'))
    calls = [(cross_entropy, array([1, 8, -1, 0])), (span_cross_entropy, array([1, 8, -1, 0]))]
    for loss, labels in calls:
        result = loss(mx.nd, half, labels)
        assert result.dtype == np.float32
        assert result.asscalar() == loss(mx.nd, full, labels).asscalar()
    far = mean_squared_error(mx.nd, mx.nd.full((2, 1), 1000, dtype='float16'), array([0, 0]))
    assert far.asscalar() == 1e6  # float16 ends at 65504


# -- models -------------------------------------------------------------------------------------


def bert_inputs():
    random = np.random.RandomState(3)
    words, types = random.randint(0, 41, (3, 11)), random.randint(0, 2, (3, 11))
    return [array(each) for each in (words, types, [11, 4, 7])]


def make_bert(name, dtype='float32', **options):
    block = tiny.initialized(getattr(bert, name)(CONFIG, **options), 0.1)
    block.cast(dtype)
    return block


def test_safe_sums_are_asked_for(monkeypatch):
    monkeypatch.delenv('MXNET_SAFE_ACCUMULATION', raising=False)
    make_bert('BertModel', 'float16')
    assert os.environ['MXNET_SAFE_ACCUMULATION'] == '1'
    monkeypatch.setenv('MXNET_SAFE_ACCUMULATION', '0')
    make_bert('BertModel', 'float16')
    assert os.environ['MXNET_SAFE_ACCUMULATION'] == '0'  # the user's choice


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize('dtype', HALVES)
def test_files(tmp_path, dtype):
    path = str(tmp_path / 'model.params')
    block = make_bert('BertForSequenceClassification', dtype)
    inputs = bert_inputs()
    expected = block(*inputs).asnumpy()
    block.save_parameters(path)
    stored = np.dtype('float16' if dtype == 'float16' else 'float32')
    assert {value.dtype for value in read_tensors(path)[0].values()} == {stored}

    same = make_bert('BertForSequenceClassification', dtype)
    for parameter in same.collect_params().values():
        parameter.set_data(mx.nd.zeros(parameter.shape))
    same.load_parameters(path)
    np.testing.assert_array_equal(same(*inputs).asnumpy(), expected)

    full = make_bert('BertForSequenceClassification')
    if dtype == 'float16':
        with pytest.raises(CheckpointError):
            full.load_parameters(path)
    full.load_parameters(path, cast_dtype=True)
    assert full.precision == 'float32'
    assert difference(full(*inputs).asnumpy(), expected) < TOLERANCES[dtype]
    full.save_parameters(path)
    same.load_parameters(path, cast_dtype=True)  # from float32
    np.testing.assert_array_equal(same(*inputs).asnumpy(), expected)


def test_a_block_can_take_a_files_precision(tmp_path):
    path = str(tmp_path / 'model.params')
    block = make_bert('BertForSequenceClassification', 'float16')
    block.save_parameters(path)
    other = make_bert('BertForSequenceClassification')
    other.load_parameters(path, cast_dtype=True, dtype_source='saved')
    assert other.precision == other.bert.precision == 'float16'
    one, two = (each(*bert_inputs()).asnumpy() for each in (block, other))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize('dtype', HALVES)
def test_from_pretrained(tmp_path, dtype):
    block = make_bert('BertForSequenceClassification', dtype)
    block.save_pretrained(str(tmp_path))
    for wanted in ('float32', dtype):
        loaded = bert.BertForSequenceClassification.from_pretrained(str(tmp_path), dtype=wanted)
        assert loaded.precision == wanted
        far = difference(loaded(*bert_inputs()).asnumpy(), block(*bert_inputs()).asnumpy())
        assert far < TOLERANCES[dtype] and (far == 0) == (wanted == dtype)
    with pytest.raises(UnknownNameError):
        block.cast('float8')
