"""BertAdam and OpenAIAdam as torch's optimizers are used; their numbers are in tests/peers."""

import logging
import pickle

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import set_gradient
from mxnet import gluon
from refusals import refuses

import mxnet_pretrained_bert as bert
from mxnet_pretrained_bert.optimization import BertAdam, OpenAIAdam, WarmupLinearSchedule

BOTH = pytest.mark.parametrize('optimizer_class', [BertAdam, OpenAIAdam])


def make_net():
    return tiny.initialized(gluon.nn.Dense(2, in_units=3), 1)


def backward(net, scale=1.0):
    with mx.autograd.record():
        loss = (net(mx.nd.array([[1, -2, 3]])) ** 2).sum() * scale
    loss.backward()
    return loss


def values(net):
    return [each.data().asnumpy() for each in net.collect_params().values()]


def same(one, two, **tolerance):
    for first, second in zip(one, two):
        np.testing.assert_allclose(first, second, **tolerance)


@BOTH
def test_gradients_are_summed_up_until_they_are_zeroed(optimizer_class):
    net = make_net()
    optimizer_class(net.collect_params(), lr=0.1)
    backward(net)
    once = net.weight.grad().asnumpy()
    backward(net)
    np.testing.assert_allclose(net.weight.grad().asnumpy(), 2 * once, rtol=1e-6)
    optimizer = optimizer_class(net.collect_params().values(), lr=0.1)
    optimizer.zero_grad()
    assert not net.weight.grad().asnumpy().any()


@BOTH
def test_step_equals_a_trainer(optimizer_class):
    """The defaults are the original's: decay, clipping, no warmup."""
    net, other = make_net(), make_net()
    name, options = 'bertadam', {'wd': 0.01, 'max_grad_norm': 1.0}
    if optimizer_class is OpenAIAdam:
        name, options = 'openaiadam', {}
    trainer = gluon.Trainer(other.collect_params(), name, {'learning_rate': 0.1, **options})
    optimizer = optimizer_class(net.collect_params(), lr=0.1)
    for _ in range(5):
        assert optimizer.step(lambda: backward(net)).shape == (1,)
        optimizer.zero_grad()
        backward(other)
        trainer.step(1)
    same(values(net), values(other), rtol=1e-6)


@BOTH
def test_state_dict_and_back(optimizer_class):
    net, other = make_net(), make_net()
    options = {'lr': 0.1, 'warmup': 0.1, 't_total': 9, 'weight_decay': 0.1}
    optimizer = optimizer_class(net.collect_params(), **options)
    for _ in range(3):
        backward(net)
        optimizer.step()
        optimizer.zero_grad()
    state = optimizer.state_dict()
    assert state['param_groups'][0]['params'] == [0, 1] and state['state'][1]['step'] == 3
    for one, two in zip(net.collect_params().values(), other.collect_params().values()):
        two.set_data(one.data())
    second = optimizer_class(other.collect_params(), lr=7)
    second.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert second.get_lr() == optimizer.get_lr()
    for _ in range(3):
        for each, block in ((optimizer, net), (second, other)):
            backward(block)
            each.step()
            each.zero_grad()
    same(values(net), values(other), rtol=1e-7)
    with refuses(says=('[2]', '[1]')):
        optimizer_class([net.weight], lr=1).load_state_dict(state)


@BOTH
def test_parameters_without_a_gradient_stay(optimizer_class):
    """A part that the loss doesn't depend on, and a frozen one, aren't decayed either."""
    config = tiny.bert_config(30, initializer_range=0.3)
    block = bert.BertForMaskedLM(bert.BertModel(config, use_pooler=True, use_decoder=True))
    block.initialize()
    block.bert.token_type_embed.weight.grad_req = 'null'
    optimizer = optimizer_class(block.parameters(), lr=0.1, weight_decay=0.1)
    names = [name for name, _ in block.named_parameters()]
    before = {name: each.data().asnumpy() for name, each in block.named_parameters()}
    words = mx.nd.array([[3, 4, 5]])
    with mx.autograd.record():
        loss = block(words, masked_lm_labels=words)
    loss.backward()
    optimizer.step()
    still = {
        name
        for name, each in block.named_parameters()
        if (each.data().asnumpy() == before[name]).all()
    }
    assert still >= {'bert.pooler.dense.weight', 'bert.embeddings.token_type_embeddings.weight'}
    assert len(still) < len(names) / 2
    assert optimizer.get_lr() == [0]  # as the original says while one has no state


def test_clips_queries_keys_and_values_apart():
    """As the original, of which they are three parameters."""
    block = bert.BertModel(tiny.bert_config(30, initializer_range=0.3))
    block.initialize()
    weight = block.encoder.layers[0].attention.qkv.weight
    optimizer = BertAdam([weight], lr=1.0, weight_decay=0, b1=0.0, b2=0.0, max_grad_norm=1.0)
    gradient = np.random.normal(size=(2, 3, 8, 16)) * np.array([0.01, 1, 100]).reshape(1, 3, 1, 1)
    set_gradient(weight, gradient.reshape(weight.shape))
    optimizer.step()
    norms = (weight.grad().asnumpy().reshape(2, 3, 128) ** 2).sum((0, 2)) ** 0.5
    own = (gradient**2).sum((0, 2, 3)) ** 0.5
    np.testing.assert_allclose(norms, [own[0], 1, 1], rtol=1e-4)


def test_schedules(caplog):
    net = make_net()
    schedule = WarmupLinearSchedule(warmup=0.5, t_total=10)
    with caplog.at_level(logging.WARNING):
        optimizer = BertAdam(net.collect_params(), lr=2.0, schedule=schedule, warmup=0.1)
    assert 'warmup and t_total are ignored' in caplog.text
    backward(net)
    optimizer.step()
    assert optimizer.get_lr() == pytest.approx([0.4, 0.4])
    constant = BertAdam(net.collect_params(), lr=2.0, schedule=None, warmup=0.1, t_total=10)
    backward(net)
    constant.step()
    assert constant.get_lr() == [2.0, 2.0]
