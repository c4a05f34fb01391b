"""Gradient checkpointing: the same losses and gradients, with less memory."""

import json
import sys

import mxnet as mx
import numpy as np
import pytest
import warm

import bert
import gpt
import gpt2
import transfo_xl
from model_zoo.blocks.graphs import BlockGraphs, finish_backward
from model_zoo.errors import InputError

BERT = {
    'vocab_size': 41, 'hidden_size': 32, 'num_hidden_layers': 3, 'num_attention_heads': 4,
    'intermediate_size': 64, 'max_position_embeddings': 24,
}  # fmt: skip
DECODER = {'vocab_size': 41, 'n_positions': 24, 'n_ctx': 24, 'n_embd': 32, 'n_layer': 3,
           'n_head': 4}  # fmt: skip


def make(name='BertForSequenceClassification', mirrors=False):
    mx.random.seed(1)
    if name.startswith('Bert'):
        block = getattr(bert, name)(bert.BertConfig(**BERT))
    elif name.startswith('GPT2'):
        block = gpt2.GPT2LMHeadModel(gpt2.GPT2Config(**DECODER))
    else:
        block = gpt.OpenAIGPTLMHeadModel(gpt.OpenAIGPTConfig(**DECODER))
    block.initialize(mx.init.Normal(0.1))
    block.hybridize(static_alloc=True)
    if mirrors:
        block.mirror()
    return block


def inputs_of(name, length=11, batch=3):
    words = mx.nd.array(np.random.RandomState(length).randint(0, 41, (batch, length)))
    if not name.startswith('Bert'):
        return {'words': words, 'lm_labels': words}
    inputs = {'words': words, 'valid_length': mx.nd.array([length, 4, 7][:batch])}
    if name == 'BertForSequenceClassification':
        return {**inputs, 'labels': mx.nd.array([0, 1, 1][:batch])}
    ends = mx.nd.array([1, 2, 3][:batch])
    return {**inputs, 'start_positions': ends, 'end_positions': ends}


def train_step(block, inputs, factor=1):
    """The loss and the parameters' gradients; `factor` is multiplied outside of the block."""
    with mx.autograd.record():
        loss = block(**inputs)
        head = loss * factor
    head.backward()
    finish_backward()
    parameters = block._collect_params_with_prefix()
    return loss.asscalar(), {name: p.grad().asnumpy() for name, p in parameters.items()}


def assert_same(one, two):
    assert one[0] == two[0]
    assert one[1].keys() == two[1].keys()
    for name in one[1]:
        np.testing.assert_array_equal(one[1][name], two[1][name], err_msg=name)


@pytest.mark.parametrize(
    'name',
    ['BertForSequenceClassification', 'BertForQuestionAnswering', 'GPT2LMHeadModel',
     'OpenAIGPTLMHeadModel'],
)  # fmt: skip
@pytest.mark.parametrize('dtype', ['float32', 'float16'])
def test_same_gradients_with_dropout(name, dtype):
    found = []
    for mirrors in (False, True):
        block = make(name, mirrors)
        block.cast(dtype)
        mx.random.seed(2)
        steps = [train_step(block, inputs_of(name, length), 4) for length in (11, 9, 11)]
        found.append(steps)
        assert any(gradient.any() for gradient in steps[0][1].values())
    for one, two in zip(*found):
        assert_same(one, two)


def test_scores_and_a_loss_of_the_callers():
    words = inputs_of('BertForSequenceClassification')['words']
    found = []
    for mirrors in (False, True):
        block = make(mirrors=mirrors)
        mx.random.seed(2)
        with mx.autograd.record():
            scores = block(words)
            loss = mx.nd.log_softmax(scores)[:, 0].sum()
        loss.backward()
        finish_backward()
        parameters = block._collect_params_with_prefix()
        gradients = {name: p.grad().asnumpy() for name, p in parameters.items()}
        found.append((loss.asscalar(), gradients))
    assert_same(*found)


def test_gradients_add_up():
    name = 'BertForSequenceClassification'
    found = []
    for mirrors in (False, True):
        block = make(name, mirrors)
        train_step(block, inputs_of(name))  # a graph with gradients that are written
        for parameter in block.collect_params().values():
            parameter.grad_req = 'add'
        mx.random.seed(2)
        for length in (11, 9):
            result = train_step(block, inputs_of(name, length))
        found.append(result)
    assert_same(*found)


def test_training_and_evaluation():
    name = 'BertForSequenceClassification'
    found = []
    for mirrors in (False, True):
        block = make(name, mirrors)
        trainer = mx.gluon.Trainer(block.collect_params(), 'adam', update_on_kvstore=False)
        mx.random.seed(2)
        for _ in range(3):
            train_step(block, inputs_of(name))
            trainer.step(1)  # raises where a gradient isn't new
        plain = {key: x for key, x in inputs_of(name).items() if key != 'labels'}
        found.append(block(**plain).asnumpy())
    np.testing.assert_array_equal(*found)


def test_new_arrays_of_parameters_are_followed():
    name = 'BertForSequenceClassification'
    block, other = make(name, True), make(name)
    train_step(block, inputs_of(name))
    for each in (block, other):
        each.collect_params().reset_ctx(mx.cpu(1))
        for parameter in each.collect_params().values():
            parameter.set_data(parameter.data() * 2)
    inputs = {key: x.as_in_context(mx.cpu(1)) for key, x in inputs_of(name).items()}
    found = []
    for each in (block, other):
        mx.random.seed(2)
        with mx.autograd.record():
            loss = each(**inputs)
        loss.backward()
        finish_backward()
        parameters = each._collect_params_with_prefix()
        found.append((loss.asscalar(), {n: p.grad().asnumpy() for n, p in parameters.items()}))
    assert_same(*found)


def test_it_can_be_turned_off():
    block = make(mirrors=True)
    block.mirror(False)
    with mx.autograd.record():
        loss = block(**inputs_of('BertForSequenceClassification'))
    loss.backward()  # is all
    assert block.bert.word_embed.weight.grad().asnumpy().any()


def test_two_passes_at_once():
    block = make(mirrors=True)
    inputs = inputs_of('BertForSequenceClassification')
    with mx.autograd.record():
        block(**inputs)
        with pytest.raises(InputError, match='finish_backward'):
            block(**inputs)
    train_step(block, inputs)


def test_blocks_without_cells():
    with pytest.raises(InputError, match='BlockGraphs has no layers that can be mirrored'):
        BlockGraphs().mirror()


@pytest.mark.parametrize('changes', [{}, {'pre_lnorm': True}, {'tie_weight': False}])
@pytest.mark.parametrize('dtype', ['float32', 'float16'])
@pytest.mark.parametrize('request_', ['write', 'add'])
def test_transformer_xl(changes, dtype, request_):
    """Its softmax shares parameters, and is not a part of the mirrored graph."""
    fields = {'vocab_size': 41, 'cutoffs': [20], 'd_model': 32, 'd_embed': 32, 'n_head': 4,
              'd_head': 8, 'd_inner': 64, 'div_val': 2, 'n_layer': 2, 'mem_len': 6}  # fmt: skip
    text = mx.nd.array(np.random.RandomState(4).randint(0, 41, (3, 22)), dtype='int32')
    found = []
    for mirrors in (False, True):
        mx.random.seed(1)
        config = transfo_xl.TransfoXLConfig(**{**fields, **changes})
        block = transfo_xl.TransfoXLLMHeadModel(config)
        block.initialize(mx.init.Normal(0.1))
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
        parameters = block._collect_params_with_prefix()
        found.append((losses, {name: p.grad().asnumpy() for name, p in parameters.items()}))
    (one, expected), (two, gradients) = found
    np.testing.assert_array_equal(one.asnumpy(), two.asnumpy())
    tolerance = 1e-6 if dtype == 'float32' else 2e-3  # sums of two graphs, rounded
    for name, value in expected.items():
        assert value.any(), name
        limit = tolerance * np.abs(value).max()
        np.testing.assert_allclose(gradients[name], value, rtol=0, atol=limit, err_msg=name)


MEASURE = """
import json, sys
import model_zoo, mxnet as mx, bert
from model_zoo.blocks.graphs import finish_backward
block = bert.BertForSequenceClassification(bert.BertConfig(
    vocab_size=41, hidden_size=128, num_hidden_layers=12, num_attention_heads=2,
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


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='reads /proc')
def test_peak_memory():
    megabytes = []
    for mirrors in (False, True):
        run = warm.run(['-c', MEASURE, mirrors])
        assert run.returncode == 0, run.stderr
        megabytes.append(json.loads(run.stdout))
    assert megabytes[1] < 0.6 * megabytes[0], megabytes
