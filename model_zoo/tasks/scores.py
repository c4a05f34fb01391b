"""Scores, and what a trained model gets wrong.

Metrics are the same as in scikit-learn and SciPy, and for all of them more is better. Degenerate
input has a defined value and no warning: F1 without a true or predicted positive, and Matthews,
Pearson and Spearman where either side is constant, are 0.
"""

import collections
import dataclasses
import warnings
from collections.abc import Sequence

import numpy as np

from ..errors import InputError

__all__ = ['Examination']


def f1(labels, predictions, **options):
    """Compute F1, with options of scikit-learn's function."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels, predictions, zero_division=0, **options))


def matthews(labels, predictions):
    """Compute Matthews' correlation coefficient."""
    from sklearn.metrics import matthews_corrcoef

    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def pearson(labels, predictions):
    """Compute Pearson's correlation coefficient."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, labels, predictions)


def spearman(labels, predictions):
    """Compute Spearman's rank correlation coefficient."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, labels, predictions)


def _correlation(function, labels, predictions):
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of nearly constant input
        value = float(function(labels, predictions)[0])
    return value if np.isfinite(value) else 0.0


def check_finite(outputs, segment='the set'):
    """Raise InputError if a model's outputs on a data set aren't finite."""
    if not np.isfinite(outputs).all():
        raise InputError(
            f"the model's outputs on {segment} are not finite: its training has diverged; try a "
            'lower learning rate'
        )


MOST_CHARACTERS = 300  # of a text


@dataclasses.dataclass
class Examination:
    """The answers of a model to a dev set, example by example.

    Parameters
    ----------
    more : dict
        Further entries of the report: ``tables``, title -> list of dicts with the same keys;
        ``headline``, a dict with ``name``, ``value`` and ``baseline`` of the score to show first;
        and ``never_predicted``, names of classes.
    """

    segment: str
    texts: Sequence[str]
    labels: Sequence[str]
    predictions: Sequence[str]
    losses: Sequence[float]
    baseline: dict[str, float] = dataclasses.field(default_factory=dict)
    guess: str | None = None
    classes: Sequence[str] | None = None
    more: dict = dataclasses.field(default_factory=dict)

    def confusion(self):
        """The confusion matrix: rows are labels, columns predictions; None without `classes`."""
        if self.classes is None:
            return None
        counts = collections.Counter(zip(self.labels, self.predictions))
        return [[counts[label, predicted] for predicted in self.classes] for label in self.classes]

    def worst(self, count=10):
        """The mistakes with the highest losses."""
        wrong = [n for n, pair in enumerate(zip(self.labels, self.predictions)) if len({*pair}) > 1]
        wrong.sort(key=lambda number: -self.losses[number])
        return [
            {
                'text': squeeze(self.texts[n]),
                'label': self.labels[n],
                'prediction': self.predictions[n],
                'loss': float(self.losses[n]),
            }
            for n in wrong[:count]
        ]

    def to_dict(self) -> dict[str, list]:
        """Plain JSON: guess, baseline, classes, confusion and mistakes."""
        return {
            'examples': len(self.labels),
            'guess': self.guess,
            'baseline': self.baseline,
            'classes': None if self.classes is None else list(self.classes),
            'confusion': self.confusion(),
            'mistakes': self.worst(),
            **self.more,
        }


def usual_row(rows):
    """Return an example for a person: of the first rows, the one that is about a line long."""
    return min(rows[:50], key=lambda row: abs(len(str(row)) - 80))


def class_report(title, classes, labels, predictions, guess=None):
    """Return the scores of each class, as `more` of an `Examination`.

    `guess` is the number of the most frequent class. With it, macro F1 is the headline if that
    class has more than twice as many examples as the rarest.
    """
    rows = class_scores(classes, labels, predictions)
    report, counts = table_report(title, rows), [row['examples'] for row in rows]
    if guess is not None and max(counts) > 2 * min(counts):
        guessed = class_scores(classes, labels, np.full_like(labels, guess))
        value, baseline = macro_f1(rows), macro_f1(guessed)
        report['headline'] = {'name': 'macro F1', 'value': value, 'baseline': baseline}
    return report


def macro_f1(rows):
    """Return the mean F1 of rows of `score_row`."""
    return float(np.mean([row['f1'] for row in rows]))


def table_report(title, rows):
    """Return a table of rows of `score_row`, as `more` of an `Examination`."""
    missing = [row['label'] for row in rows if row['examples'] and not row['predicted']]
    return {'tables': {title: rows}, 'never_predicted': missing}


def class_scores(classes, labels, predictions):
    """Return precision, recall, F1 and counts of each class; 0 where they aren't defined.

    Parameters
    ----------
    labels, predictions : numpy.ndarray, shape (samples,) or (samples, classes)
        Numbers of the classes; or 1 where a sample has the class, else 0.
    """
    from sklearn.metrics import precision_recall_fscore_support

    columns = precision_recall_fscore_support(
        labels, predictions, labels=range(len(classes)), zero_division=0
    )
    has_class = predictions if predictions.ndim == 2 else np.eye(len(classes))[predictions]
    return list(map(score_row, classes, *columns, has_class.sum(axis=0)))


def score_row(label, precision, recall, f1, examples, predicted):
    """Return the scores of a class as a row of a report's table."""
    return {
        'label': label,
        'precision': float(precision),
        'recall': float(recall),
        'f1': float(f1),
        'examples': int(examples),
        'predicted': int(predicted),
    }


def squeeze(text, most=MOST_CHARACTERS):
    """A text in one line, cut to a number of characters."""
    text = ' '.join(text.split()).encode('utf-8', 'replace').decode('utf-8')  # no surrogates
    return text if len(text) <= most else f'{text[: most - 1]}…'


def cross_entropies(labels, outputs):
    """The loss of each example, (samples,) float64, from unnormalized scores (samples, classes)."""
    from scipy.special import log_softmax

    outputs = outputs.astype(np.float64)
    return -log_softmax(outputs, axis=-1)[np.arange(len(labels)), labels]
