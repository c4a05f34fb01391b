"""The task heads: equal to the originals (by a fixture), their inputs and losses."""

import inspect

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import array, assert_same, flatten, part
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
from scipy.special import log_softmax

import bert
from model_zoo.errors import InputError


def make(name, **options):
    if name in ('BertForSequenceClassification', 'BertForTokenClassification'):
        options.setdefault('num_labels', NUM_LABELS)
    return tiny.initialized(getattr(bert, name)(bert.BertConfig(**CONFIG), **options))


@pytest.fixture(scope='module')
def original(fixtures):
    with np.load(fixtures / 'bert_heads.npz') as file:
        return dict(file)


@pytest.mark.parametrize('hybridized', [False, True])
@pytest.mark.parametrize('number, name', list(enumerate(HEADS)))
def test_outputs_loss_and_gradients_of_the_original(original, tmp_path, number, name, hybridized):
    block = make_block(name, part(original, name, 'state'), tmp_path)
    block.hybridize(hybridized, static_alloc=True, static_shape=True)
    inputs = make_inputs(name, padded=name != 'BertForQuestionAnswering', seed=number)
    outputs = part(original, name, 'outputs')
    outputs = [outputs[str(i)] for i in range(len(outputs))]
    assert_outputs(name, run(block, inputs), outputs, inputs['valid'])
    loss, gradients = loss_and_gradients(block, inputs)
    assert abs(loss - original[f'{name}/loss']) < 1e-5
    assert_gradients(gradients, part(original, name, 'gradients'))


@pytest.mark.parametrize('name', HEADS)
def test_hybridized_or_not_is_the_same(name):
    block = make(name)
    batches = [
        make_inputs(name, padded, batch=batch, length=length)
        for batch, length in [(4, 9), (1, 3), (2, 12)]
        for padded in (False, True)
    ]
    results = []
    for active in (False, True):
        block.hybridize(active, static_alloc=True, static_shape=True)
        results.append([])
        for inputs in batches + batches[:2]:
            for labels in (False, True):
                outputs = flatten(run(block, inputs, labels))
                results[-1] += [output.asnumpy() for output in outputs]
    assert_same(*results, 1e-6)


@pytest.mark.parametrize('name', HEADS)
def test_loss_is_the_same_however_long_the_padding(name):
    block = make(name)
    inputs = make_inputs(name, padded=True, length=8)
    valid, longest = inputs['valid'], 5
    inputs['valid'] = valid = np.minimum(valid, longest)
    if name == 'BertForQuestionAnswering':
        inputs['labels'] = [np.minimum(labels, valid - 1) for labels in inputs['labels']]
    short = dict(inputs, words=inputs['words'][..., :longest], types=inputs['types'][..., :longest])
    if name in ('BertForPreTraining', 'BertForMaskedLM', 'BertForTokenClassification'):
        labels = inputs['labels'][0]
        labels[np.arange(8) >= valid[:, None]] = -1
        short['labels'] = [labels[:, :longest], *inputs['labels'][1:]]
    losses = [loss_and_gradients(block, each) for each in (inputs, short)]
    assert abs(losses[0][0] - losses[1][0]) < 1e-5
    assert_gradients(losses[0][1], losses[1][1])


@pytest.mark.parametrize('name', ['BertForSequenceClassification', 'BertForMultipleChoice'])
def test_label_minus_one_is_left_out(name):
    block = make(name)
    inputs = make_inputs(name, padded=True)
    inputs['labels'] = [np.array([1, -1, 0, -1])]
    loss, gradients = loss_and_gradients(block, inputs)
    rest = {key: inputs[key][[0, 2]] for key in ('words', 'types', 'valid')}
    rest_loss, rest_gradients = loss_and_gradients(block, {**rest, 'labels': [np.array([1, 0])]})
    assert abs(loss - rest_loss) < 1e-6
    assert_gradients(gradients, rest_gradients)


@pytest.mark.parametrize('name', HEADS)
def test_loss_is_zero_when_all_labels_are_left_out(name):
    block = make(name)
    inputs = make_inputs(name, padded=False)
    inputs['labels'] = [np.full_like(labels, -1) for labels in inputs['labels']]
    loss, gradients = loss_and_gradients(block, inputs)
    assert loss == 0
    assert not any(value.any() for value in gradients.values())


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
        with pytest.raises(InputError, match='labels must have shape'):
            block(*arrays, wrong)
    with pytest.raises(InputError, match='labels must be an NDArray, but is a list'):
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


@pytest.mark.parametrize('name', HEADS)
def test_attentions_come_second(name):
    block, inputs = make(name, output_attentions=True), make_inputs(name, padded=True)
    result, attentions = run(block, inputs)
    assert_same(result, run(make(name), inputs), 1e-6)
    rows = np.prod(inputs['words'].shape[:-1])
    assert [a.shape for a in attentions] == [(rows, 2, 9, 9)] * 2
    loss, _ = run(block, inputs, labels=True)
    assert loss.shape == (1,)


@pytest.mark.parametrize('name', HEADS)
@pytest.mark.parametrize('hybridized', [False, True])
def test_multihead_outputs_of_heads(name, hybridized):
    block = make(name, keep_multihead_output=True)
    block.hybridize(hybridized)
    inputs = make_inputs(name, padded=True)
    with mx.autograd.record():
        loss = run(block, inputs, labels=True)
    loss.backward()
    outputs, gradients = block.get_multihead_outputs(), block.get_multihead_gradients()
    rows = np.prod(inputs['words'].shape[:-1])
    for result in (outputs, gradients):
        assert [array.shape for array in result] == [(rows, 2, 9, 4)] * 2
        assert all(array.asnumpy().any() for array in result)


@pytest.mark.parametrize('name', HEADS)
def test_head_mask_of_a_head(name):
    block = make(name)
    inputs = make_inputs(name, padded=False)
    arrays = [array(inputs[key]) for key in ('words', 'types')]
    plain, ones, zeros = (
        flatten(block(*arrays, head_mask=mask))[0].asnumpy()
        for mask in (None, mx.nd.ones((2,)), mx.nd.zeros((2, 2)))
    )
    np.testing.assert_allclose(plain, ones, atol=1e-6)
    assert np.abs(plain - zeros).max() > 1e-4


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
            with pytest.raises(InputError, match='num_labels'):
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


def test_models_that_lack_a_part():
    model = bert.BertModel(bert.BertConfig(**CONFIG), use_pooler=False)
    needs = {
        'BertForSequenceClassification': 'use_pooler=True',
        'BertForMaskedLM': 'use_decoder=True',
        'BertForPreTraining': 'use_pooler=True, use_decoder=True, use_classifier=True',
    }
    for name, message in needs.items():
        with pytest.raises(InputError, match=message):
            getattr(bert, name)(model)
    with pytest.raises(InputError, match='output_attentions: set this where the BertModel is made'):
        bert.BertForTokenClassification(model, output_attentions=True)


@pytest.mark.parametrize('name', HEADS)
def test_wrong_labels(name):
    block = make(name)
    inputs = make_inputs(name, padded=True)
    with pytest.raises(InputError, match='must have shape'):
        run(block, {**inputs, 'labels': [labels[:2] for labels in inputs['labels']]}, labels=True)
    if name != 'BertForQuestionAnswering':  # positions outside are left out there
        wrong = [labels.copy() for labels in inputs['labels']]
        wrong[0].flat[1] = 1000
        with pytest.raises(InputError, match=r'holds 1000, and its values must be in \[-1, '):
            run(block, {**inputs, 'labels': wrong}, labels=True)


@pytest.mark.parametrize('name', HEADS)
def test_inputs_that_are_no_arrays(name):
    block = make(name)
    inputs = make_inputs(name, padded=True)
    arrays = [array(inputs[key]) for key in ('words', 'types', 'valid')]
    has_positions = 'masked_positions' in inspect.signature(block.__call__).parameters
    arrays += [None] if has_positions else []
    labels = [array(each) for each in inputs['labels']]
    for wrong in (np.array, np.ndarray.tolist):
        with pytest.raises(InputError, match=r'NDArray, but is a \w+: pass mx.nd.array\('):
            block(*arrays, wrong(inputs['labels'][0]), *labels[1:])
        with pytest.raises(InputError, match='words must be an NDArray'):
            block(wrong(inputs['words']), *arrays[1:], *labels)
        with pytest.raises(InputError, match='token_types must be an NDArray'):
            block(arrays[0], wrong(inputs['types']), *arrays[2:], *labels)


@pytest.mark.parametrize('name', ['BertForPreTraining', 'BertForQuestionAnswering'])
def test_one_label_of_two(name):
    block = make(name)
    inputs = make_inputs(name, padded=True)
    with pytest.raises(InputError, match='give both'):
        run(block, {**inputs, 'labels': inputs['labels'][:1]}, labels=True)


@pytest.mark.parametrize('name', HEADS)
def test_wrong_inputs(name):
    block = make(name)
    inputs = make_inputs(name, padded=True)
    words, types = inputs['words'], inputs['types']
    for changes, message in [
        ({'words': words[0]}, 'words must have shape'),
        ({'types': types[:1]}, 'token_types must have shape'),
        ({'valid': inputs['valid'][:1]}, 'valid_length must have shape'),
        ({'valid': inputs['valid'] + 9}, 'valid_length holds'),
        ({'words': words + 30}, 'words holds'),
        ({'types': types + 2}, 'token_types holds'),
    ]:
        with pytest.raises(InputError, match=message):
            run(block, {**inputs, **changes})


@pytest.mark.parametrize('name', HEADS)
def test_dropout_is_on_in_training_only(name):
    block = make(name)
    inputs = make_inputs(name, padded=True)
    first, second = (flatten(run(block, inputs))[0].asnumpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    with mx.autograd.record():
        first, second = (flatten(run(block, inputs))[0].asnumpy() for _ in range(2))
    assert np.abs(first - second).max() > 1e-4


@pytest.mark.parametrize('name', HEADS)
def test_symbols(name):
    """A head can be part of a user's own hybrid block."""
    block = make(name)
    symbol = mx.sym.Group(flatten(block(*[mx.sym.var(f'data{i}') for i in range(3)])))
    own = {parameter.name for parameter in block.collect_params().values()}
    assert set(symbol.list_arguments()) - own == {'data0', 'data1', 'data2'}


@pytest.mark.parametrize('name', HEADS)
def test_documented(name):
    head = getattr(bert, name)
    names = list(inspect.signature(head.__call__).parameters)[1:]
    missing = [word for word in names if word not in head.__doc__]
    assert not missing


def test_number_of_choices():
    block = make('BertForMultipleChoice', num_choices=3)
    inputs = make_inputs('BertForMultipleChoice', padded=True)
    assert run(block, inputs).shape == (4, 3)
    with pytest.raises(InputError, match='words has 2 choices, and num_choices is 3'):
        block(array(inputs['words'][:, :2]))
