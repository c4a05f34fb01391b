"""INT8: graphs of integers that give nearly what the block gives, and what is excluded."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import imported

import bert
from bert import BertForSequenceClassification
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.inference.quantization import leave_out, quantize
from model_zoo.util.choices import CALIBRATION_MODES


def make(block_class=BertForSequenceClassification, **options):
    config = tiny.bert_config(500, max_position_embeddings=32, **tiny.WIDER)
    return tiny.initialized(block_class(config, **options), 0.3, 3)


def batch(rows, length, seed=0):
    random = np.random.RandomState(seed)
    return (
        mx.nd.array(random.randint(0, 500, (rows, length)), dtype='int32'),
        mx.nd.array(random.randint(0, 2, (rows, length)), dtype='int32'),
        mx.nd.array(random.randint(1, length + 1, rows), dtype='float32'),
    )


@pytest.mark.parametrize('mode', CALIBRATION_MODES)
def test_modes(mode, tmp_path):
    block = make(num_labels=3)
    quantized = quantize(block, [batch(4, 20, seed) for seed in range(3)], mode)
    for rows, length in ((4, 20), (2, 7), (5, 32)):  # calibrated with one shape only
        inputs = batch(rows, length, 9)
        ours, theirs = block(*inputs).asnumpy(), quantized(*inputs).asnumpy()
        assert np.abs(ours - theirs).max() < 0.15 * np.abs(ours).max()
    assert (ours != theirs).any()
    quantized.export(str(tmp_path / 'graph'))
    loaded = imported(tmp_path / 'graph')
    np.testing.assert_allclose(loaded(*inputs).asnumpy(), theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize('name', ['Roberta', 'DebertaV2', 'ModernBert'])
def test_models_without_token_types(name):
    block_class = getattr(bert, f'{name}ForSequenceClassification')
    block = tiny.initialized(block_class(tiny.make_config(block_class.config_class, 500)), 0.2)
    words, types, lengths = batch(4, 20)
    quantized = quantize(block, [(words, types, lengths)])
    ours, theirs = block(words, None, lengths).asnumpy(), quantized(words, lengths).asnumpy()
    # with AVX2 alone, products of 8 bits are less exact
    assert (ours != theirs).any() and np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.97


def test_excluded_layers_stay_in_float32():
    block = make(num_labels=3)
    inputs = batch(4, 20)
    layers = 'selfatt', 'qkv', 'proj', 'ffn_1', 'ffn_2', 'pooler', 'classifier'
    whole = quantize(block, [inputs], exclude=layers)
    np.testing.assert_allclose(whole(*inputs).asnumpy(), block(*inputs).asnumpy(), atol=1e-4)


@pytest.mark.parametrize('arguments', [([batch(2, 4)], 'native'), ([],)])
def test_bad_arguments(arguments):
    with pytest.raises((InputError, UnknownNameError)):
        quantize(make(), *arguments)


LAYERS = [f'layer{number}' for number in range(12)]


@pytest.mark.parametrize('needed', [0, 1, 2, 6, 11, 12])
def test_the_fewest_are_left_out(needed):
    harms = {name: (7 * number) % 12 for number, name in enumerate(LAYERS)}
    worst = sorted(LAYERS, key=harms.get, reverse=True)
    measured, tried = [], []

    def harm(layer):
        measured.append(layer)
        return harms[layer]

    def attempt(exclude):
        tried.append(list(exclude))
        return set(exclude)

    result, exclude = leave_out(LAYERS, harm, attempt, set(worst[:needed]).issubset)
    assert exclude == worst[:needed] and result == set(exclude)
    assert len(measured) == (len(LAYERS) if needed else 0)
    assert len(tried) <= 9
