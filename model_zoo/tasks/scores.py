"""Scores, and what a trained model gets wrong.

Metrics are scikit-learn's with its defaults, and SciPy's; for all of them more is better. So macro
F1 is the mean over the classes that have a row or a prediction in the set. Degenerate input has a
defined value and no warning: F1 without a true or predicted positive, and Matthews, Pearson and
Spearman where either side is constant, are 0.
"""

import collections
import warnings

import numpy as np

from ..errors import InputError

__all__ = ['error_analysis']

MOST_CHARACTERS, MOST_MISTAKES = 300, 10


def accuracy(labels, predictions):
    """Compute the share of the rows whose prediction is right."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions))


def f1(labels, predictions, /, **options):
    """Compute F1, with options of scikit-learn's function."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels, predictions, zero_division=0, **options))


def matthews(labels, predictions):
    """Compute Matthews' correlation coefficient."""
    from sklearn.metrics import matthews_corrcoef

    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def correlations(labels, predictions):
    """Compute Pearson's and Spearman's correlation coefficients, a dict."""
    from scipy.stats import pearsonr, spearmanr

    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return {'pearson': 0.0, 'spearman': 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of nearly constant input
        found = {'pearson': pearsonr(labels, predictions)[0]}
        found['spearman'] = spearmanr(labels, predictions)[0]
    return {name: float(value) if np.isfinite(value) else 0.0 for name, value in found.items()}


def r_squared(labels, predictions):
    """Compute the share of the labels' variance that the predictions explain."""
    from sklearn.metrics import r2_score

    return float(r2_score(labels, predictions)) if len(labels) > 1 else 0.0


def cross_entropies(labels, outputs):
    """Compute the loss of each example, float64, from unnormalized scores (samples, classes)."""
    from scipy.special import log_softmax

    outputs = outputs.astype(np.float64)
    return -log_softmax(outputs, axis=-1)[np.arange(len(labels)), labels]


def check_finite(outputs, segment='the set'):
    """Raise InputError if a model's outputs on a data set aren't finite."""
    if not np.isfinite(outputs).all():
        problem = f"the model's outputs on {segment} are not finite: its training has diverged"
        raise InputError(f'{problem}; try a lower learning rate')


def error_analysis(
    texts, labels, predictions, losses, baseline=None, guess=None, classes=None, **more
):
    """Return what a model gets wrong on a set, as plain JSON.

    Parameters
    ----------
    texts, labels, predictions : sequence of str
        Of each example.
    losses : sequence of float
        The mistakes with the highest losses are listed.
    baseline : dict of str to float
        Scores of the best guess without the texts, which is called `guess`.
    classes : sequence of str, optional
        Rows and columns of the confusion matrix, which has the labels in its rows.
    **more
        Further entries: ``tables``, title -> list of dicts with the same keys; and
        ``never_predicted``, names of classes.
    """
    pairs = list(zip(labels, predictions))
    wrong = [number for number, (label, predicted) in enumerate(pairs) if label != predicted]
    wrong.sort(key=lambda number: -losses[number])
    counts, keys = collections.Counter(pairs), ('text', 'label', 'prediction', 'loss')
    first = wrong[:MOST_MISTAKES]
    mistakes = [(squeeze(texts[number]), *pairs[number], float(losses[number])) for number in first]
    return {
        'examples': len(labels),
        'guess': guess,
        'baseline': baseline or {},
        'classes': classes and list(classes),
        'confusion': classes and [[counts[label, each] for each in classes] for label in classes],
        'mistakes': [dict(zip(keys, mistake)) for mistake in mistakes],
        **more,
    }


def class_report(title, classes, labels, predictions):
    """Return the scores of each class, as entries of `error_analysis`; 0 where undefined.

    As in scikit-learn's ``classification_report``, a class without a row or a prediction is left
    out.

    Parameters
    ----------
    labels, predictions : numpy.ndarray, shape (samples,) or (samples, classes)
        Numbers of the classes; or 1 where a sample has the class, else 0.
    """
    from sklearn.metrics import precision_recall_fscore_support
    from sklearn.utils.multiclass import unique_labels

    numbers = unique_labels(labels, predictions)
    known = {'labels': numbers, 'zero_division': 0}
    *scores, counts = precision_recall_fscore_support(labels, predictions, **known)
    has_class = predictions if predictions.ndim == 2 else np.eye(len(classes))[predictions]
    names, predicted = [classes[number] for number in numbers], has_class.sum(axis=0)[numbers]
    return table_report(title, names, *scores, counts, predicted)


def table_report(title, labels, precision, recall, f1, examples, predicted):
    """Return a table with a row for each class, as entries of `error_analysis`."""
    names = 'precision', 'recall', 'f1', 'examples', 'predicted'
    types = float, float, float, int, int
    columns = (map(kind, c) for kind, c in zip(types, (precision, recall, f1, examples, predicted)))
    rows = [{'label': each[0], **dict(zip(names, each[1:]))} for each in zip(labels, *columns)]
    missing = [row['label'] for row in rows if row['examples'] and not row['predicted']]
    return {'tables': {title: rows}, 'never_predicted': missing}


def squeeze(text):
    """Return a text in one line of at most `MOST_CHARACTERS`."""
    text = ' '.join(text.split()).encode('utf-8', 'replace').decode('utf-8')  # no surrogates
    return text if len(text) <= MOST_CHARACTERS else f'{text[: MOST_CHARACTERS - 1]}…'
