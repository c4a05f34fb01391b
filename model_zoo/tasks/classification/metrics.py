"""Metrics of the tasks, by scikit-learn and SciPy; in all of them more is better.

Degenerate input has a defined value and gives no warning: F1 without a true or predicted positive,
and Matthews, Pearson and Spearman where either side is constant (or has one sample), are 0.
"""

import warnings
from collections import OrderedDict

import numpy as np

from ...errors import InputError, UnknownNameError

__all__ = ['METRICS', 'compute_baseline', 'compute_metrics']


def accuracy(labels, predictions):
    """Share of the predictions that equal their labels."""
    return float(np.mean(labels == predictions))


def f1(labels, predictions, positive=1):
    """F1 of the class with the id `positive`, '1' of GLUE's MRPC and QQP."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels == positive, predictions == positive, zero_division=0))


def matthews(labels, predictions):
    """Matthews' correlation coefficient, over any number of classes."""
    from sklearn.metrics import matthews_corrcoef

    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def pearson(labels, predictions):
    """Pearson's correlation coefficient."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, labels, predictions)


def spearman(labels, predictions):
    """Spearman's rank correlation coefficient."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, labels, predictions)


def _correlation(function, labels, predictions):
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of nearly constant input
        value = float(function(labels, predictions)[0])
    return value if np.isfinite(value) else 0.0


#: name of a metric -> its function
METRICS = {metric.__name__: metric for metric in (accuracy, f1, matthews, pearson, spearman)}


def compute_metrics(task, labels, outputs):
    """The task's metrics.

    Parameters
    ----------
    task : Task
    labels : array-like, shape (num_samples,)
        Ids of the classes, or the numbers of a regression.
    outputs : array-like, shape (num_samples,) or (num_samples, num_labels)
        The model's outputs: logits or probabilities of the classes, or their predicted ids; for
        regression the numbers, also as (num_samples, 1).

    Returns
    -------
    OrderedDict of str to float
        In the order of ``task.metrics``; ``task.primary_metric`` is the first.

    Raises
    ------
    InputError
        If there are no samples, the numbers of labels and outputs differ, or an output is not
        finite (a training that has diverged).
    UnknownNameError
        If there is no such metric.
    """
    labels, outputs = np.asarray(labels), np.asarray(outputs)
    if task.regression:
        labels, outputs = labels.astype(np.float64), outputs.astype(np.float64)
        labels, predictions = labels.reshape(-1), outputs.reshape(-1)
    else:
        labels = labels.reshape(-1).astype(np.int64)
        predictions = outputs.argmax(axis=-1) if outputs.ndim == 2 else outputs.astype(np.int64)
    if len(labels) == 0:
        raise InputError(f'no samples to evaluate {task.name} on')
    if labels.shape != predictions.shape:
        raise InputError(f'{len(labels)} labels for outputs of shape {outputs.shape}')
    if not np.isfinite(outputs).all():
        raise InputError(
            "the model's outputs are not finite: training has diverged; try a lower learning rate"
        )
    values = OrderedDict()
    for name in task.metrics:
        if name not in METRICS:
            raise UnknownNameError.of('metric', name, METRICS)
        options = {'positive': task.positive_id} if name == 'f1' else {}
        values[name] = METRICS[name](labels, predictions, **options)
    return values


def compute_baseline(task, labels):
    """The task's metrics for always giving the most frequent label, or the mean number.

    Parameters
    ----------
    task : Task
    labels : array-like, shape (num_samples,)
        As of `compute_metrics`.

    Returns
    -------
    (int or float, OrderedDict of str to float)
        The guess, an id or a number, and its metrics.
    """
    labels = np.asarray(labels)
    guess = float(np.mean(labels)) if task.regression else int(np.bincount(labels).argmax())
    return guess, compute_metrics(task, labels, np.full_like(labels, guess))
