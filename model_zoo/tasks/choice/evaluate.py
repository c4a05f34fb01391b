"""Scores of a model on dev sets, and its predictions."""

import logging
import os
import time

import numpy as np

from ...training.predict import predict
from ..evaluate import check_finite, evaluate_segments, mean_cross_entropy, softmax
from ..examination import Examination, cross_entropies

__all__ = ['ChoiceEvaluator']

logger = logging.getLogger(__name__)


class ChoiceEvaluator:
    """Accuracy, loss and predictions of a model that chooses one of several texts.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, choices), unnormalized scores.
    sets : dict
        Segment -> (examples, each with a `label` that may be None, and their `BucketedLoader`).
    write : callable
        ``write(path, examples, probabilities)`` writes a file.
    names : dict
        Segment -> name of the file of its predictions.
    """

    def __init__(self, forward, sets, write, names):
        self._forward, self._sets, self._write, self._names = forward, sets, write, names

    @property
    def sizes(self):
        """Segment -> number of examples."""
        return {segment: len(examples) for segment, (examples, _) in self._sets.items()}

    def evaluate(self, guard=None):
        """See `evaluate_segments`: accuracy and loss of the dev set, if it has labels."""
        examples, _ = self._sets.get('dev', ((), None))
        has_labels = len(examples) > 0 and all(example.label is not None for example in examples)
        return evaluate_segments(self._measure, ['dev'] if has_labels else [], 'accuracy', guard)

    def _measure(self, segment, guard):
        examples, loader = self._sets[segment]
        started = time.perf_counter()
        outputs = predict(self._forward, loader, guard)
        speed = len(examples) / (time.perf_counter() - started)
        labels = np.array([example.label for example in examples])
        accuracy = float((outputs.argmax(axis=-1) == labels).mean())
        return {'accuracy': accuracy, 'loss': mean_cross_entropy(labels, outputs)}, speed

    def examine(self):
        """The `Examination` of the dev set; None if it has no labels."""
        examples, loader = self._sets.get('dev', ((), None))
        if not examples or any(example.label is None for example in examples):
            return None
        outputs = predict(self._forward, loader)
        labels = np.array([example.label for example in examples])
        guess = int(np.bincount(labels).argmax())
        return Examination(
            'dev',
            [f'{each.context} {getattr(each, "start", "")}' for each in examples],
            [each.endings[each.label] for each in examples],
            [each.endings[n] for each, n in zip(examples, outputs.argmax(axis=-1))],
            cross_entropies(labels, outputs),
            {'accuracy': float((labels == guess).mean())},
            f'ending {guess}',
        )

    def predict(self, folder):
        """Write the predictions of all sets; returns the names of the files."""
        for segment, (examples, loader) in self._sets.items():
            outputs = predict(self._forward, loader).astype(np.float64)
            check_finite(outputs, segment)
            path = os.path.join(folder, self._names[segment])
            self._write(path, examples, softmax(outputs))
            logger.info('%s: predictions in %s', segment, path)
        return [self._names[segment] for segment in self._sets]
