"""What a trained model gets wrong: the baseline, the confusion matrix, the worst mistakes."""

import collections
import dataclasses
from typing import Dict, List, Optional, Sequence

import numpy as np

__all__ = ['Examination', 'cross_entropies', 'squeeze']

MOST_CHARACTERS = 300  # of a text


@dataclasses.dataclass
class Examination:
    """The answers of a model to a dev set, example by example.

    Parameters
    ----------
    segment : str
    texts, labels, predictions : sequence of str
        What was asked, the right answer, and the model's; of each example.
    losses : sequence of float
        Of each example, 0 or more.
    baseline : dict of str to float
        The metrics of a guess that is always the same.
    guess : str, optional
        That guess.
    classes : sequence of str, optional
        All that `labels` and `predictions` may be, if they are classes.
    """

    segment: str
    texts: Sequence[str]
    labels: Sequence[str]
    predictions: Sequence[str]
    losses: Sequence[float]
    baseline: Dict[str, float] = dataclasses.field(default_factory=dict)
    guess: Optional[str] = None
    classes: Optional[Sequence[str]] = None

    def confusion(self):
        """The confusion matrix: a row a label, a column a prediction.

        Returns
        -------
        list of list of int, or None
            Without `classes` None.
        """
        if self.classes is None:
            return None
        counts = collections.Counter(zip(self.labels, self.predictions))
        return [[counts[label, found] for found in self.classes] for label in self.classes]

    def worst(self, count=10):
        """The mistakes with the highest losses.

        Returns
        -------
        list of dict
            With text, label, prediction and loss.
        """
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
        }


def squeeze(text, most=MOST_CHARACTERS):
    """A text in one line, cut to a number of characters."""
    text = ' '.join(text.split()).encode('utf-8', 'replace').decode('utf-8')  # no surrogates
    return text if len(text) <= most else f'{text[: most - 1]}…'


def cross_entropies(labels, outputs):
    """The loss of each example.

    Parameters
    ----------
    labels : numpy.ndarray, shape (samples,)
    outputs : numpy.ndarray, shape (samples, classes)
        Unnormalized scores.

    Returns
    -------
    numpy.ndarray, shape (samples,), float64
    """
    from scipy.special import log_softmax

    outputs = outputs.astype(np.float64)
    return -log_softmax(outputs, axis=-1)[np.arange(len(labels)), labels]
