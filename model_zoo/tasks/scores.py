"""What the evaluations of tasks share: scores, and what a trained model gets wrong."""

import collections
import dataclasses
from typing import Dict, List, Optional, Sequence

import numpy as np

from ..errors import InputError

__all__ = [
    'Examination',
    'check_finite',
    'class_scores',
    'cross_entropies',
    'mean_cross_entropy',
    'squeeze',
]


def mean_cross_entropy(labels, outputs):
    """The mean loss of classes' unnormalized scores, (samples, classes), for labels (samples,)."""
    return float(np.mean(cross_entropies(labels, outputs)))


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
    """The answers of a model to a dev set, example by example."""

    segment: str
    texts: Sequence[str]
    labels: Sequence[str]
    predictions: Sequence[str]
    losses: Sequence[float]
    baseline: Dict[str, float] = dataclasses.field(default_factory=dict)
    guess: Optional[str] = None
    classes: Optional[Sequence[str]] = None
    per_class: Optional[List[dict]] = None

    def confusion(self):
        """The confusion matrix: rows are labels, columns predictions; None without `classes`."""
        if self.classes is None:
            return None
        counts = collections.Counter(zip(self.labels, self.predictions))
        return [[counts[label, found] for found in self.classes] for label in self.classes]

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

    def to_dict(self) -> Dict[str, List]:
        """Plain JSON: guess, baseline, classes, confusion and mistakes."""
        return {
            'examples': len(self.labels),
            'guess': self.guess,
            'baseline': self.baseline,
            'classes': None if self.classes is None else list(self.classes),
            'confusion': self.confusion(),
            'mistakes': self.worst(),
            **({} if self.per_class is None else {'per_class': self.per_class}),
        }


def class_scores(classes, right, guessed):
    """Precision, recall and F1 of each class; 0 where they aren't defined.

    Parameters
    ----------
    right, guessed : numpy.ndarray, shape (samples,) or (samples, classes)
        Numbers of the classes; or 1 where a sample has the class, else 0.
    """
    from sklearn.metrics import precision_recall_fscore_support

    columns = precision_recall_fscore_support(
        right, guessed, labels=range(len(classes)), zero_division=0
    )
    return [
        {
            'label': label, 'precision': float(precision), 'recall': float(recall),
            'f1': float(f1), 'examples': int(count),
        }
        for label, precision, recall, f1, count in zip(classes, *columns)
    ]  # fmt: skip


def squeeze(text, most=MOST_CHARACTERS):
    """A text in one line, cut to a number of characters."""
    text = ' '.join(text.split()).encode('utf-8', 'replace').decode('utf-8')  # no surrogates
    return text if len(text) <= most else f'{text[: most - 1]}…'


def cross_entropies(labels, outputs):
    """The loss of each example, (samples,) float64, from unnormalized scores (samples, classes)."""
    from scipy.special import log_softmax

    outputs = outputs.astype(np.float64)
    return -log_softmax(outputs, axis=-1)[np.arange(len(labels)), labels]
