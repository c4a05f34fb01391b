"""The task heads: equal to the originals (by a fixture), their inputs and losses."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import array, assert_same, flatten, part, stored
from bert_compare import (
    CONFIG,
    HEADS,
    NUM_LABELS,
    assert_gradients,
    assert_outputs,
    loss_and_gradients,
    make_block,
    make_inputs,
    run,
)
from refusals import refuses
from scipy.special import log_softmax

import bert


def make(name, **options):
    if name in ('BertForSequenceClassification', 'BertForTokenClassification'):
        options.setdefault('num_labels', NUM_LABELS)
    return tiny.initialized(getattr(bert, name)(bert.BertConfig(**CONFIG), **options))


@pytest.fixture(scope='module')
def original(fixtures):
    return stored(fixtures / 'bert_heads.npz')


@pytest.mark.parametrize('number, name', list(enumerate(HEADS)))
def test_outputs_loss_and_gradients_of_the_original(original, tmp_path, number, name):
    block = make_block(name, part(original, name, 'state'), tmp_path)
    block.hybridize(static_alloc=True, static_shape=True)
    inputs = make_inputs(name, padded=name != 'BertForQuestionAnswering', seed=number)
    outputs = part(original, name, 'outputs')
    outputs = [outputs[str(i)] for i in range(len(outputs))]
    assert_outputs(name, run(block, inputs), outputs, inputs['valid'])
    loss, gradients = loss_and_gradients(block, inputs)
    assert abs(loss - original[f'{name}/loss']) < 1e-5
    assert_gradients(gradients, part(original, name, 'gradients'))


def test_regression():
    block = make('BertForSequenceClassification', num_labels=1)
    inputs = make_inputs('BertForSequenceClassification', padded=True)
    scores = run(block, inputs)
    assert scores.shape == (4, 1)
    labels = np.array([0.5, -1, 3, 2.25], 'float32')
    expected = ((scores.asnumpy()[:, 0] - labels) ** 2).mean()
    arrays = [array(inputs[key]) for key in ('words', 'types', 'valid')]
    for shape in [(4,), (4, 1)]:
        loss = block(*arrays, mx.nd.array(labels.reshape(shape)))
        assert loss.shape == (1,) and abs(loss.asscalar() - expected) < 1e-6
    whole = np.array([0, -1, 3, 2])
    expected = ((scores.asnumpy()[:, 0] - whole) ** 2).mean()
    assert abs(block(*arrays, array(whole)).asscalar() - expected) < 1e-6
    for wrong in (mx.nd.ones((3,)), mx.nd.ones((4, 2)), mx.nd.ones((1, 4))):
        with refuses(says='labels'):
            block(*arrays, wrong)
    with refuses(says='labels'):
        block(*arrays, [1, 2, 3, 4])


@pytest.mark.parametrize('name', ['BertForMaskedLM', 'BertForPreTraining'])
def test_masked_positions(name):
    block = make(name)
    inputs = make_inputs(name, padded=True)
    arrays = [array(inputs[key]) for key in ('words', 'types', 'valid')]
    positions = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 0]])
    everywhere = flatten(block(*arrays))[0].asnumpy()
    chosen = flatten(block(*arrays, array(positions)))[0].asnumpy()
    expected = np.take_along_axis(everywhere, positions[:, :, None], axis=1)
    np.testing.assert_allclose(chosen, expected, atol=1e-6)
    # the loss at the positions equals that with labels everywhere
    words = np.array([[5, -1, 6], [7, 8, -1], [-1, 9, 10], [11, -1, 12]])
    labels = [array(words)] + ([array([0, 1, 1, 0])] if name == 'BertForPreTraining' else [])
    loss = block(*arrays, array(positions), *labels).asscalar()
    logs = log_softmax(chosen, axis=-1)
    picked = np.take_along_axis(logs, words[:, :, None].clip(0), axis=2)[..., 0]
    wanted = -picked[words >= 0].mean()
    if name == 'BertForPreTraining':
        scores = block(*arrays)[1].asnumpy()
        wanted -= log_softmax(scores, axis=-1)[range(4), [0, 1, 1, 0]].mean()
    assert abs(loss - wanted) < 1e-5


def test_heads_of_a_shared_model_are_saved_each_with_its_own_labels(tmp_path):
    config = bert.BertConfig(**CONFIG)
    model = bert.BertModel(config)
    heads = [
        bert.BertForSequenceClassification(model, num_labels=3),
        bert.BertForTokenClassification(model, num_labels=5),
    ]
    for head in heads:
        head.initialize()
        assert head.bert is model
    assert [block.config.num_labels for block in (*heads, model)] == [3, 5, 2]
    for head in (bert.BertForSequenceClassification, bert.BertForTokenClassification):
        for number in (0, -1, 1.5, '2'):
            with refuses(says='num_labels'):
                head(model, num_labels=number)
    heads[0].config.extras['labels'] = ['a']
    assert heads[1].config.extras == {}
    heads[1].prune_heads({1: [0]})
    model.prune_heads({0: [1]})
    inputs = make_inputs('BertForTokenClassification', padded=True)
    assert [run(head, inputs).shape for head in heads] == [(4, 3), (4, 9, 5)]
    for number, head in enumerate(heads):
        head.save_pretrained(str(tmp_path / str(number)))
        loaded = type(head).from_pretrained(str(tmp_path / str(number)))
        assert loaded.config.pruned_heads == head.config.pruned_heads == {0: [1], 1: [0]}
        assert_same(run(loaded, inputs), run(head, inputs), 1e-6)
    assert config == bert.BertConfig(**CONFIG), 'other blocks may be made with it'
