"""Metrics, by their definitions and at their limits."""

import dataclasses
import warnings

import numpy as np
import pytest

from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tasks.classification import METRICS, compute_metrics
from model_zoo.tasks.classification_data import custom_task, get_task


def counts(labels, predictions):
    pairs = list(zip(labels, predictions))
    return (pairs.count((1, 1)), pairs.count((0, 1)), pairs.count((1, 0)), pairs.count((0, 0)))


def test_classification_against_the_definitions():
    labels, predictions = np.random.randint(0, 2, (2, 50))
    tp, fp, fn, tn = counts(labels, predictions)
    values = compute_metrics(get_task('MRPC'), labels, predictions)
    assert list(values) == ['accuracy', 'f1']
    assert values['accuracy'] == pytest.approx((tp + tn) / 50)
    assert values['f1'] == pytest.approx(2 * tp / (2 * tp + fp + fn))
    scale = np.sqrt(float((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    matthews = compute_metrics(get_task('CoLA'), labels, predictions)
    assert matthews == {'matthews': pytest.approx((tp * tn - fp * fn) / scale)}


def test_scores_are_turned_into_classes():
    scores = np.array([[0.1, 2.0, -1], [3, 0, 0], [0, 0.1, 0.2], [1, 2, 3]])
    values = compute_metrics(get_task('MNLI'), [1, 0, 2, 0], scores)
    assert values == {'accuracy': 0.75}


def test_regression_against_the_definitions():
    labels, outputs = np.random.rand(2, 30)
    values = compute_metrics(get_task('STS-B'), labels, outputs.reshape(-1, 1).astype('float32'))
    assert list(values) == ['pearson', 'spearman']
    assert values['pearson'] == pytest.approx(np.corrcoef(labels, outputs)[0, 1], abs=1e-6)
    ranks = [values.argsort().argsort() for values in (labels, outputs)]
    assert values['spearman'] == pytest.approx(np.corrcoef(*ranks)[0, 1])
    # only the order matters to Spearman
    warped = compute_metrics(get_task('STS-B'), labels, np.exp(5 * outputs))
    assert warped['spearman'] == pytest.approx(values['spearman'])
    assert warped['pearson'] != pytest.approx(values['pearson'])


@pytest.mark.parametrize(
    ('task', 'labels', 'outputs', 'expected'),
    [
        ('MRPC', [0, 0, 0], [0, 0, 0], {'accuracy': 1.0, 'f1': 0.0}),
        ('MRPC', [1, 1], [0, 0], {'accuracy': 0.0, 'f1': 0.0}),
        ('MRPC', [1, 1], [1, 1], {'accuracy': 1.0, 'f1': 1.0}),
        ('CoLA', [1, 0, 1], [1, 1, 1], {'matthews': 0.0}),
        ('CoLA', [1, 1, 1], [1, 1, 1], {'matthews': 0.0}),
        ('CoLA', [1], [1], {'matthews': 0.0}),
        ('STS-B', [1, 2, 3], [0.5, 0.5, 0.5], {'pearson': 0.0, 'spearman': 0.0}),
        ('STS-B', [2, 2, 2], [1, 2, 3], {'pearson': 0.0, 'spearman': 0.0}),
        ('STS-B', [2], [3], {'pearson': 0.0, 'spearman': 0.0}),
    ],
)
def test_degenerate_input_has_a_value_and_no_warning(task, labels, outputs, expected):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert compute_metrics(get_task(task), labels, outputs) == expected


def test_nearly_constant_predictions():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        values = compute_metrics(get_task('STS-B'), [1, 2, 3], [1, 1, 1 + 1e-15])
    assert all(np.isfinite(value) for value in values.values())


def test_primary_metric():
    primary = {name: get_task(name).primary_metric for name in ('MRPC', 'CoLA', 'STS-B', 'SST')}
    assert primary == dict(MRPC='accuracy', CoLA='matthews', **{'STS-B': 'pearson'}, SST='accuracy')


def test_errors():
    for task, labels, outputs in (
        (get_task('SST'), [], np.zeros((0, 2))),
        (get_task('SST'), [0, 1, 1], np.zeros((2, 2))),
        (get_task('SST'), [0, 1], [[0, 1], [np.nan, 0]]),
        (get_task('STS-B'), [0, 1], [np.inf, 0]),
    ):
        with pytest.raises(InputError):
            compute_metrics(task, labels, outputs)
    task = custom_task(['t'], 'y', labels=['a', 'b'], metrics=['bleu'])
    with pytest.raises(UnknownNameError):
        compute_metrics(task, [0, 1], [0, 1])


def test_every_metric_is_one_at_its_best():
    labels = np.array([0, 1, 1, 0])
    task = dataclasses.replace(get_task('SST'), metrics=tuple(METRICS))
    assert set(compute_metrics(task, labels, labels).values()) == {1.0}
