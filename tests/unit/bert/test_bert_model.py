"""BertModel: its options and inputs, heads masked, kept and pruned, and the originals' vectors."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import array, assert_same, stored, text_inputs
from refusals import refuses

import bert
import model_zoo.optimizer  # noqa: F401  registers bertadam and lamb
from model_zoo.checkpoint import read_tensors
from model_zoo.layers.cells import padded_units

CONFIG = {**tiny.BERT, 'vocab_size': 40, 'num_hidden_layers': 3, 'num_attention_heads': 4}
CONFIG.update(intermediate_size=512, initializer_range=0.3)  # the feed-forward layers are padded


def make(seed=1, **options):
    model = tiny.initialized(bert.BertModel(bert.BertConfig(**CONFIG), **options), seed=seed)
    for layer in model.encoder.layers:
        layer.attention.qkv.bias.set_data(mx.nd.random.normal(shape=(48,)))
    return model


# -- options and outputs ------------------------------------------------------------------------


def test_optional_inputs():
    with refuses(says='use_classifier'):  # that needs the pooler
        make(use_classifier=True, use_pooler=False)
    assert isinstance(make(use_pooler=False)(array([[1, 2]])), mx.nd.NDArray)
    with refuses(says='masked_positions'):  # that need the decoder
        make()(array([[1, 2]]), None, None, array([[0]]))
    words, types, _, positions = text_inputs()
    model = make(use_decoder=True)
    zeros, full = mx.nd.zeros_like(words), mx.nd.full((3,), 9)
    assert_same(model(words), model(words, zeros, full))
    assert_same(model(words, types), model(words, types, full))
    everywhere = mx.nd.array(np.tile(np.arange(9), (3, 1)))
    assert_same(model(words, types), model(words, types, None, everywhere))
    scores = model(words, types)[-1].asnumpy()
    chosen = model(words, types, None, positions)[-1].asnumpy()
    index = positions.asnumpy()[:, :, None]
    np.testing.assert_allclose(chosen, np.take_along_axis(scores, index, 1), atol=1e-5)


# -- head mask, kept outputs, pruning -----------------------------------------------------------


def test_prune_what_is_not_there():
    model = make()
    places = (3, [0], 'layer 3'), (0, [4], 'head 4'), (0, [-1], 'head -1'), (1, range(4), 'layer 1')
    for layer, heads, place in places:
        with refuses(says=place):
            model.prune_heads({layer: [*heads]})
    with refuses(says='pruned_heads'):
        model.prune_heads([0])
    assert model.config.pruned_heads == {}
    with refuses(says='layer 1'):
        model.prune_heads({0: [0], 1: [0, 1, 2, 3]})
    assert [cell.attention.num_heads for cell in model.encoder.layers] == [4, 4, 4]
    model.prune_heads({})
    model(*text_inputs()[:3])


# -- the padding of the feed-forward layers -----------------------------------------------------


def padding_of(model):
    for cell in model.encoder.layers:
        yield cell.ffn.ffn_1.weight, 0
        yield cell.ffn.ffn_1.bias, 0
        yield cell.ffn.ffn_2.weight, 1


def assert_padding_is_zero(model):
    for parameter, axis in padding_of(model):
        assert parameter.shape[axis] == padded_units(512) > 512
        values = np.moveaxis(parameter.data().asnumpy(), axis, 0)
        assert not values[512:].any() and (values[:512].any() or 'bias' in parameter.name)


@pytest.mark.parametrize(
    'activation, optimizer', [('gelu', 'bertadam'), ('swish', 'lamb'), ('mish', 'sgd')]
)
def test_padding_stays_zero_in_training(activation, optimizer):
    config = bert.BertConfig(**{**CONFIG, 'hidden_act': activation})
    model = bert.BertModel(config)
    model.initialize()
    assert_padding_is_zero(model)
    model.initialize(mx.init.Xavier(), force_reinit=True)
    assert_padding_is_zero(model)
    options = {'learning_rate': 1e-2, 'wd': 0.1}
    trainer = mx.gluon.Trainer(model.collect_params(), optimizer, options)
    words, types, valid, _ = text_inputs()
    weight = model.encoder.layers[0].ffn.ffn_1.weight
    before = weight.data().asnumpy()
    for _ in range(5):
        with mx.autograd.record():
            loss = sum((output**2).mean() for output in model(words, types, valid))
        loss.backward()
        trainer.step(1)
    assert np.abs(before - weight.data().asnumpy()).max() > 1e-5
    assert_padding_is_zero(model)


def test_padding_is_not_in_files(tmp_path):
    model = make()
    words, types, valid, _ = text_inputs()
    for name in ('native', 'gluonnlp', 'huggingface'):
        path = str(tmp_path / f'{name}.params')
        model.save_parameters(path, format=name)
        tensors, metadata = read_tensors(path)
        assert (name == 'native') == bool(metadata)
        assert not any(padded_units(512) in value.shape for value in tensors.values())
        assert sum(512 in value.shape for value in tensors.values()) == 9
        loaded = make(seed=2)
        loaded.load_parameters(path)
        assert_padding_is_zero(loaded)
        assert_same(loaded(words, types, valid), model(words, types, valid), 1e-6)


# -- all-MiniLM-L6-v2 ---------------------------------------------------------------------------


@pytest.fixture(scope='module')
def minilm(minilm_dir):
    return bert.BertModel.from_pretrained(str(minilm_dir), output_all_encodings=True)


@pytest.mark.weights
def test_minilm_equals_the_original(minilm, fixtures):
    """All layers and the pooled output, by what pytorch-pretrained-bert gave on 64 sentences."""
    minilm.hybridize(static_alloc=True, static_shape=True)
    expected = stored(fixtures / 'bert_minilm.npz')
    words, valid = expected['words'], expected['valid']
    order = np.argsort(valid)
    layers = np.zeros((6, *words.shape), 'float32')
    for rows in order.reshape(4, 16):
        longest = valid[rows].max()
        states, pooled = minilm(array(words[rows, :longest]), None, array(valid[rows]))
        for layer, state in enumerate(states):
            layers[layer, rows, :longest] = state.asnumpy() @ expected['direction']
        np.testing.assert_allclose(pooled.asnumpy(), expected['pooled'][rows], atol=1e-5)
    kept = np.arange(words.shape[1]) < valid[:, None]
    np.testing.assert_allclose(layers[:, kept], expected['layers'], atol=1e-5)


# -- attention masks -----------------------------------------------------------------------------


def test_a_mask_of_leading_tokens_is_a_valid_length():
    block = make()
    block.hybridize(static_alloc=True, static_shape=True)
    words = mx.nd.array([[5, 6, 7, 8, 9], [9, 8, 7, 6, 5]])
    types, mask = mx.nd.zeros_like(words), mx.nd.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    one = block(words, types, mx.nd.array([5, 3]))[0].asnumpy()
    two = block(words, types, mask)[0].asnumpy()
    np.testing.assert_allclose(two[0], one[0], atol=1e-6)
    np.testing.assert_allclose(two[1, :3], one[1, :3], atol=1e-6)
    again = block(words, types, mx.nd.array([5, 3]))[0].asnumpy()  # graphs are kept apart
    np.testing.assert_array_equal(again, one)


def test_nobody_looks_where_a_mask_is_zero():
    block = make()
    block.hybridize()
    words, mask = mx.nd.array([[5, 6, 7, 8, 9]]), mx.nd.array([[0, 1, 0, 1, 1]])
    others = mx.nd.array([[1, 6, 2, 8, 9]])
    types = mx.nd.zeros_like(words)
    one, two = (block(each, types, mask)[0].asnumpy()[0, [1, 3, 4]] for each in (words, others))
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert np.abs(one - block(words, types)[0].asnumpy()[0, [1, 3, 4]]).max() > 1e-4
