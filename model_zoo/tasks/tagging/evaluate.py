"""Scores and predictions of a model that tags words."""

import collections.abc
import logging
import os
import time
from typing import NamedTuple, Optional

import numpy as np

from ...batches import SampleLoader
from ..evaluate import check_finite, evaluate_segments, mean_cross_entropy
from ..examination import Examination, cross_entropies
from .conll import write_conll
from .metrics import has_entities, score_tags

__all__ = ['TaggingEvaluator', 'TaggingSet', 'predict_words']

logger = logging.getLogger(__name__)


def predict_words(forward, loader, guard=None):
    """Scores of the labels of all words, each from the window that decides on it.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, length, labels).
    loader : SampleLoader
        Of the samples of `TaggingFeatures`.
    guard : InterruptGuard, optional
        Asked before each batch.

    Returns
    -------
    numpy.ndarray, shape (words of all sentences, labels), float32
    """
    positions = [sample.positions for sample in loader.samples]
    bounds = np.cumsum([0, *map(len, positions)])
    result, previous = None, None

    def store(indices, scores):
        for index, rows in zip(indices, scores.astype('float32').asnumpy()):
            result[bounds[index] : bounds[index + 1]] = rows[positions[index]]

    for batch in loader.epoch(0):
        if guard is not None:
            guard.check()
        # the device works on this batch while the last one's scores are copied
        current = batch.indices, forward(batch)
        if result is None:
            result = np.zeros((bounds[-1], current[1].shape[-1]), np.float32)
        else:
            store(*previous)
        previous = current
    store(*previous)
    return result


class TaggingSet(NamedTuple):
    """A data set.

    Parameters
    ----------
    path : str
    sentences : list of Sentence
    loader : SampleLoader
    label_column : int or None
        See `read_conll`.
    """

    path: str
    sentences: list
    loader: SampleLoader
    label_column: Optional[int]


class _Words(collections.abc.Sequence):
    """Each word marked in its sentence; made when it is asked for."""

    def __init__(self, sentences, around=12):
        self._sentences, self._around = sentences, around
        self._places = [(s, w) for s, each in enumerate(sentences) for w in range(len(each.words))]

    def __len__(self):
        return len(self._places)

    def __getitem__(self, number):
        sentence, place = self._places[number]
        words = list(self._sentences[sentence].words)
        words[place] = f'[{words[place]}]'
        return ' '.join(words[max(place - self._around, 0) : place + self._around + 1])


class TaggingEvaluator:
    """Scores and predictions of a model on dev and test sets.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, length, labels).
    sets : dict of str to TaggingSet
        By the names of the segments.
    labels : list of str
        In the order of their numbers.

    Attributes
    ----------
    metric : str
        By which epochs are compared: 'f1' of entities, or 'accuracy'.
    """

    def __init__(self, forward, sets, labels):
        self._forward, self._sets, self._labels = forward, sets, labels
        self._entities = has_entities(labels)
        self.metric = 'f1' if self._entities else 'accuracy'

    @property
    def sizes(self):
        """Segment -> number of sentences."""
        return {name: len(each.sentences) for name, each in self._sets.items()}

    def evaluate(self, guard=None):
        """See `evaluate_segments`: of the dev set."""
        return evaluate_segments(self._measure, ['dev'], self.metric, guard)

    def evaluate_all(self):
        """See `evaluate_segments`: of all sets that have labels."""
        segments = [name for name, each in self._sets.items() if each.sentences[0].labels]
        return evaluate_segments(self._measure, segments, self.metric)

    def _outputs(self, segment, guard=None):
        return predict_words(self._forward, self._sets[segment].loader, guard)

    def _predicted(self, segment, outputs):
        """The labels predicted for each sentence."""
        labels = [self._labels[number] for number in outputs.argmax(axis=-1)]
        bounds = np.cumsum([0, *(len(each.words) for each in self._sets[segment].sentences)])
        return [labels[start:stop] for start, stop in zip(bounds, bounds[1:])]

    def _measure(self, segment, guard):
        sentences = self._sets[segment].sentences
        started = time.perf_counter()
        outputs = self._outputs(segment, guard)
        speed = len(sentences) / (time.perf_counter() - started)
        right = [each.labels for each in sentences]
        numbers = {label: number for number, label in enumerate(self._labels)}
        targets = np.array([numbers[label] for labels in right for label in labels])
        metrics = score_tags(right, self._predicted(segment, outputs), self._entities)
        return {**metrics, 'loss': mean_cross_entropy(targets, outputs)}, speed

    def examine(self):
        """The `Examination` of the words of the dev set; None if there is none with labels."""
        dev = self._sets.get('dev')
        if dev is None or not dev.sentences[0].labels:
            return None
        outputs = self._outputs('dev')
        right = [label for each in dev.sentences for label in each.labels]
        numbers = {label: number for number, label in enumerate(self._labels)}
        guess = max(self._labels, key=right.count)
        guesses = [[guess] * len(each.words) for each in dev.sentences]
        return Examination(
            'dev',
            _Words(dev.sentences),
            right,
            [self._labels[number] for number in outputs.argmax(axis=-1)],
            cross_entropies(np.array([numbers[label] for label in right]), outputs),
            score_tags([each.labels for each in dev.sentences], guesses, self._entities),
            guess,
            self._labels,
        )

    def predict(self, folder):
        """Write the predictions on all sets; returns the files' names."""
        names = []
        for segment, each in self._sets.items():
            outputs = self._outputs(segment)
            check_finite(outputs, segment)
            names.append(f'{segment}_predictions.txt')
            path = os.path.join(folder, names[-1])
            write_conll(path, each.path, self._predicted(segment, outputs), each.label_column)
            logger.info('%s: predictions in %s', segment, path)
        return names
