"""Targets: labels parsed, metrics by their definitions and at their limits, predictions."""

import warnings
from types import SimpleNamespace

import mxnet as mx
import numpy as np
import pytest
import tiny
from gluonnlp.data import classification
from json_files import cases
from refusals import refuses
from sklearn import metrics

from bert import BertForSequenceClassification
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tasks.classification_data import custom_task, get_task, list_tasks
from model_zoo.tasks.targets import Classes, LabelSet, Number


def target_of(name):
    return get_task(name).target


def outputs_of(target, predictions):
    """Outputs that mean these predictions."""
    if not target.has_classes:
        return np.array(predictions, np.float32).reshape(-1, 1)
    return np.eye(len(target.labels), dtype=np.float32)[predictions]


@pytest.mark.parametrize('name', list_tasks())
def test_published_sets_are_those_of_gluonnlp(name):
    task, theirs = get_task(name), classification.get_task(name)
    assert task.labels == (theirs.class_labels and tuple(theirs.class_labels))
    assert task.num_labels == (1 if theirs.class_labels is None else len(theirs.class_labels))
    assert task.is_pair == theirs.is_pair
    assert len({len(layout.text) for layout in task.layouts}) == 1
    for alias, label in (theirs.label_alias or {}).items():
        assert task.target.parse(alias) == label
    assert set(task.submissions) == set(task.test_segments)
    assert 'train' in task.files and task.dev_segments


def test_names_in_any_case_and_aliases():
    assert get_task('mrpc') is get_task('MRPC')
    assert get_task('SST') is get_task('sst-2') is get_task('SST-2')
    assert get_task('chnsenticorp').name == 'ChnSentiCorp'
    with pytest.raises(UnknownNameError):
        get_task('MRPCC')


LABELS = [
    (target_of('ChnSentiCorp'), 'positive', '1'),
    (target_of('RTE'), ' Not-Entailment ', 'not_entailment'),
    (target_of('MNLI'), '2', 'contradiction'),  # a position among names
    (target_of('STS-B'), '4.750', 4.75),
    (Number(), '-7e3', -7000),
    (LabelSet(('food', 'room', 'staff')), ('staff', 'Food'), ('food', 'staff')),
    (LabelSet(('food', 'room')), '', ()),
    (target_of('RTE'), 'maybe', None),
    (target_of('MRPC'), '2', None),
    (Classes(('-1', '9', '10')), '1', None),
    (LabelSet(('food', 'room')), 'food,bar', None),
    *((target_of('STS-B'), bad, None) for bad in ('5.1', '-0.1', 'nan', 'inf', '', 'five')),
]


@pytest.mark.parametrize('target, text, label', LABELS)
def test_labels(target, text, label):
    if label is None:
        with pytest.raises(InputError):
            target.parse(text)
    else:
        assert target.parse(text) == label


def test_custom_tasks():
    task = custom_task(['a', 'b'], 'y', labels=['no', 'yes', 'unsure'], files={'test': 'T.tsv'})
    assert task.is_pair and task.num_labels == 3 and task.submissions['test'] == 'custom.tsv'
    assert task.target.metrics == ('accuracy', 'macro_f1')
    two = custom_task(['a'], 'y', labels=['no', 'yes']).target
    assert two.metrics == ('accuracy', 'f1', 'macro_f1')
    assert custom_task(['a'], 'y', regression=True).num_labels == 1
    (layout,) = custom_task(['0'], '2').layouts  # digits from a command line
    assert (layout.text, layout.label, layout.header) == ((0,), 2, False)
    assert custom_task([0], 'y').layouts[0].header
    with refuses(says='labels'):
        _ = custom_task(['a'], 'y').num_labels


IMPOSSIBLE = [
    *(('text_columns', {'text_columns': columns}) for columns in ([], ['a', 'b', 'c'])),
    ('text_columns', {'text_columns': ['a'], 'label_column': 'a'}),
    ('labels', {'text_columns': ['a'], 'labels': ['x', 'y'], 'regression': True}),
    ('labels', {'text_columns': ['a'], 'labels': ['x']}),
]


@pytest.mark.parametrize('field, arguments', IMPOSSIBLE)
def test_impossible_custom_tasks(field, arguments):
    with refuses(field):
        custom_task(**arguments)


def test_f1_is_of_the_positive_class():
    labels, predictions = np.array([1, 1, 0, 0, 0]), np.array([1, 0, 1, 0, 0])
    target = Classes(('0', '1'), ('accuracy', 'f1', 'macro_f1', 'matthews'))
    values = target.scores(labels, outputs_of(target, predictions))
    assert list(values) == list(target.metrics)
    assert list(values.values()) == pytest.approx([0.6, 0.5, (0.5 + 2 / 3) / 2, 1 / 6])
    swapped = Classes(('1', '0'), ('f1',), positive='1')
    assert swapped.scores(1 - labels, outputs_of(swapped, 1 - predictions))['f1'] == values['f1']


def test_the_loss_of_numbers_is_the_squared_difference():
    block = tiny.initialized(BertForSequenceClassification(tiny.bert_config(), num_labels=1))
    words, labels = mx.nd.array(np.random.randint(5, 40, (4, 6))), np.random.rand(4)
    inputs = words, mx.nd.zeros_like(words), mx.nd.array([6, 3, 5, 6])
    outputs = block(*inputs).asnumpy()
    expected = np.square(outputs[:, 0] - labels)
    np.testing.assert_allclose(Number().losses(labels, outputs), expected)
    batch = SimpleNamespace(inputs=inputs, labels=mx.nd.array(labels))
    loss = Number().loss(block, batch).asscalar()
    assert loss == pytest.approx(expected.mean(), rel=1e-5)


def test_scores_are_those_of_scikit_learn_on_odd_sets():
    random, names = np.random.RandomState(1), ('accuracy', 'macro_f1', 'micro_f1', 'matthews')
    for _ in range(50):
        count, size = random.randint(3, 6), random.randint(1, 12)
        # classes may be missing on both sides
        both = [random.choice(random.choice(count, random.randint(1, count)), size) for _ in '12']
        sets = [random.randint(0, 2, (size, count)) for _ in '12']
        target = Classes(tuple('abcdef'[:count]), names)
        found, several = target.measure(*both), LabelSet(target.labels).measure(*sets)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            assert found['matthews'] == pytest.approx(metrics.matthews_corrcoef(*both))
            for each, (labels, predictions) in ((found, both), (several, sets)):
                expected = metrics.f1_score(labels, predictions, average='macro')
                assert each['macro_f1'] == pytest.approx(expected)
                assert each['accuracy'] == metrics.accuracy_score(labels, predictions)
        (rows,) = target.report(both[0], outputs_of(target, both[1]))['tables'].values()
        assert np.mean([row['f1'] for row in rows]) == pytest.approx(found['macro_f1'])


DEGENERATE = cases('classification')['DEGENERATE']


@pytest.mark.parametrize('name, labels, predictions, expected', DEGENERATE)
def test_degenerate_input_has_a_value_and_no_warning(name, labels, predictions, expected):
    target = target_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        values = target.scores(np.array(labels), outputs_of(target, predictions))
        nearly = Number().scores([1, 2, 3], np.array([1, 1, 1 + 1e-15]))
    assert values == pytest.approx(expected) and list(values) == list(target.metrics)
    assert np.isfinite(list(nearly.values())).all()


@pytest.mark.parametrize('name', ['SST', 'STS-B'])
def test_outputs_that_are_not_finite(name):
    with pytest.raises(InputError):
        target_of(name).scores(np.array([0, 1]), np.array([[0, 1], [np.nan, 0]])[:, :1])


GUESSES = [
    (Classes(('x', 'y', 'z'), ('accuracy',)), [0, 2, 2, 1], 'z', {'accuracy': 0.5}),
    (Number(), [1.0, 2.0, 6.0], '3', {'r2': 0, 'pearson': 0, 'spearman': 0}),
    (
        LabelSet(('x', 'y')),
        [[1, 0], [1, 1], [1, 0]],
        'x',
        {'macro_f1': 0.5, 'micro_f1': 6 / 7, 'accuracy': 2 / 3},
    ),
]


@pytest.mark.parametrize('target, labels, guess, metrics', GUESSES)
def test_the_best_guess_without_texts(target, labels, guess, metrics):
    assert target.baseline(np.array(labels)) == (guess, pytest.approx(metrics))


PREDICTIONS = [
    (target_of('RTE'), [[0, 5]], ['entailment'], [[1 / (1 + np.exp(5)), 1 / (1 + np.exp(-5))]]),
    (Number((0, 5)), [[3.14159], [5.2], [-1]], ['3.142', '5.000', '0.000'], None),
    (LabelSet(('x', 'y')), [[1, 1], [-1, -1]], ['x,y', ''], None),
    (LabelSet(('x', 'y')), [[0, np.log(3)]], ['x,y'], [[0.5, 0.75]]),
]


@pytest.mark.parametrize('target, outputs, written, probabilities', PREDICTIONS)
def test_predictions(target, outputs, written, probabilities):
    assert list(target.written(np.array(outputs))) == written
    if probabilities is not None:
        np.testing.assert_allclose(target.probabilities(np.array(outputs)), probabilities)


WEIGHTS = [(['balanced'], [2, 0, 2 / 3]), (['a=3', 'C=0.5'], [3, 1, 0.5]), (['z=1'], None)]


@pytest.mark.parametrize('given, weights', WEIGHTS)
def test_class_weights(given, weights):
    target = Classes(('a', 'b', 'c'))
    if weights is None:
        with refuses('class_weights'):
            target.class_weights(given, ['a'])
    else:
        found = target.class_weights(given, ['a', 'c', 'c', 'c'])
        np.testing.assert_allclose(found[[0, 2]], np.array(weights)[[0, 2]])
