"""Gradient checkpointing: the same losses and gradients, with less memory."""

import json
import sys

import mxnet as mx
import numpy as np
import pytest
import tiny
import warm
from arrays import assert_equal

from bert import BertForQuestionAnswering, BertForSequenceClassification
from bert.heads import BertTask
from gpt import OpenAIGPTLMHeadModel
from gpt2 import GPT2LMHeadModel
from model_zoo.blocks.graphs import finish_backward
from model_zoo.errors import InputError
from transfo_xl import TransfoXLLMHeadModel

CASES = [
    (BertForSequenceClassification, 'float32'),
    (BertForQuestionAnswering, 'float16'),
    (GPT2LMHeadModel, 'float16'),
    (OpenAIGPTLMHeadModel, 'float32'),
]


def make(block_class=BertForSequenceClassification, mirrors=False):
    block = tiny.make(block_class, 41, 0.1)
    block.hybridize(static_alloc=True)
    if mirrors:
        block.mirror()
    return block


def inputs_of(block_class=BertForSequenceClassification, length=11):
    words = mx.nd.array(np.random.RandomState(length).randint(0, 41, (3, length)))
    if not issubclass(block_class, BertTask):
        return {'words': words, 'lm_labels': words}
    inputs = {'words': words, 'valid_length': mx.nd.array([length, 4, 7])}
    if block_class is BertForSequenceClassification:
        return {**inputs, 'labels': mx.nd.array([0, 1, 1])}
    ends = mx.nd.array([1, 2, 3])
    return {**inputs, 'start_positions': ends, 'end_positions': ends}


def gradients(block):
    parameters = block.parameters_by_name()
    return {name: parameter.grad().asnumpy() for name, parameter in parameters.items()}


def train_step(block, inputs, loss_of=lambda result: result):
    """The loss and the parameters' gradients; `loss_of` is computed outside of the block."""
    with mx.autograd.record():
        loss = loss_of(block(**inputs))
    loss.backward()
    finish_backward()
    return loss.asscalar(), gradients(block)


def assert_same(one, two):
    assert one[0] == two[0]
    assert_equal(one[1], two[1])


@pytest.mark.parametrize('block_class, dtype', CASES)
def test_same_gradients_with_dropout(block_class, dtype):
    found = []
    for mirrors in (False, True):
        block = make(block_class, mirrors)
        block.cast(dtype)
        mx.random.seed(2)
        inputs = [inputs_of(block_class, length) for length in (11, 9, 11)]
        steps = [train_step(block, each, lambda loss: loss * 4) for each in inputs]
        found.append(steps)
        assert any(gradient.any() for gradient in steps[0][1].values())
    for one, two in zip(*found):
        assert_same(one, two)


def test_training_and_evaluation():
    found = []
    for mirrors in (False, True):
        block = make(mirrors=mirrors)
        trainer = mx.gluon.Trainer(block.collect_params(), 'adam', update_on_kvstore=False)
        mx.random.seed(2)
        for _ in range(3):
            train_step(block, inputs_of())
            trainer.step(1)  # raises where a gradient isn't new
        plain = {key: x for key, x in inputs_of().items() if key != 'labels'}
        found.append(block(**plain).asnumpy())
    np.testing.assert_array_equal(*found)


def test_new_arrays_of_parameters_are_followed():
    block, other = make(mirrors=True), make()
    train_step(block, inputs_of())
    inputs = {key: x.as_in_context(mx.cpu(1)) for key, x in inputs_of().items()}
    found = []
    for each in (block, other):
        each.collect_params().reset_ctx(mx.cpu(1))
        for parameter in each.collect_params().values():
            parameter.set_data(parameter.data() * 2)
        mx.random.seed(2)
        found.append(train_step(each, inputs))
    assert_same(*found)


def test_two_passes_at_once():
    block = make(mirrors=True)
    inputs = inputs_of()
    with mx.autograd.record():
        block(**inputs)
        with pytest.raises(InputError):
            block(**inputs)
    train_step(block, inputs)
    block.mirror(False)
    with mx.autograd.record():
        loss = block(**inputs)
    loss.backward()  # is all
    assert block.bert.word_embed.weight.grad().asnumpy().any()


@pytest.mark.parametrize(
    'changes, dtype, request_',
    [
        ({}, 'float32', 'add'),
        ({'pre_lnorm': True}, 'float16', 'write'),
        ({'tie_weight': False}, 'float32', 'write'),
    ],
)
def test_transformer_xl(changes, dtype, request_):
    """Its softmax shares parameters, and is not a part of the mirrored graph."""
    sizes = {'cutoffs': [20], 'div_val': 2, 'mem_len': 6, **changes}
    text = mx.nd.array(np.random.RandomState(4).randint(0, 41, (3, 22)), dtype='int32')
    found = []
    for mirrors in (False, True):
        block = tiny.make(TransfoXLLMHeadModel, 41, 0.1, **sizes)
        block.cast(dtype)
        block.hybridize(static_alloc=True)
        if mirrors:
            block.mirror()
        for parameter in block.collect_params().values():
            parameter.grad_req = request_
        mx.random.seed(2)
        mems = None
        for start in (0, 7, 14):
            words, labels = (text[:, start + i : start + i + 7] for i in (0, 1))
            with mx.autograd.record():
                losses, mems = block(words, mems, labels=labels)
                loss = losses.sum() * (1 if dtype == 'float32' else 1024)
            loss.backward()
            finish_backward()
            mems = [each.detach() for each in mems]
        found.append((losses, gradients(block)))
    (one, expected), (two, mirrored) = found
    np.testing.assert_array_equal(one.asnumpy(), two.asnumpy())
    tolerance = 1e-6 if dtype == 'float32' else 2e-3  # sums of two graphs, rounded
    for name, value in expected.items():
        assert value.any(), name
        limit = tolerance * np.abs(value).max()
        np.testing.assert_allclose(mirrored[name], value, rtol=0, atol=limit, err_msg=name)


MEASURE = """
import json, sys
import model_zoo, mxnet as mx, bert
from model_zoo.blocks.graphs import finish_backward
block = bert.BertForSequenceClassification(bert.BertConfig(
    vocab_size=41, hidden_size=128, num_hidden_layers=8, num_attention_heads=2,
    intermediate_size=512, hidden_dropout_prob=0, attention_probs_dropout_prob=0))
block.initialize()
block.hybridize(static_alloc=True)
if sys.argv[1] == 'True':
    block.mirror()
def peak():
    line = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))
    return int(line.split()[1]) / 1024
before = peak()
for _ in range(2):
    with mx.autograd.record():
        loss = block(mx.nd.ones((16, 96)), labels=mx.nd.ones((16,)))
    loss.backward()
    finish_backward()
mx.nd.waitall()
print(json.dumps(peak() - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='reads /proc')
def test_peak_memory():
    megabytes = []
    for mirrors in (False, True):
        run = warm.run(['-c', MEASURE, mirrors])
        assert run.returncode == 0, run.stderr
        megabytes.append(json.loads(run.stdout))
    assert megabytes[1] < 0.6 * megabytes[0], megabytes
