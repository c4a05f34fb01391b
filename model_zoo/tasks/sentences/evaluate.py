"""How well the vectors of sentences tell which of them belong together."""

import logging
import os
import time

import numpy as np

from ...training.predict import predict
from ...util.files import atomic_write
from ..classification.metrics import pearson, spearman
from ..evaluate import check_finite, evaluate_segments

__all__ = ['RECALLS', 'SentenceEvaluator']

logger = logging.getLogger(__name__)

#: of pairs and triplets: whether the match is among so many nearest
RECALLS = (1, 5, 10)
BLOCK = 1024  # queries whose similarities are in memory at once


class SentenceEvaluator:
    """Scores of an encoder of sentences.

    Of scored pairs, Spearman's and Pearson's correlation of the scores with the cosines. Of pairs
    and triplets, how often the text that matches the first one is among the nearest of all second
    texts; of triplets also how often it is nearer than the third text.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, texts, units).
    sets : dict
        Segment -> (SentenceSet, and its `BucketedLoader`).
    """

    def __init__(self, forward, sets):
        self._forward, self._sets = forward, sets

    @property
    def primary(self):
        """The metric that compares epochs."""
        kind = self._sets['dev'][0].kind if 'dev' in self._sets else 'scored'
        return 'spearman' if kind == 'scored' else f'recall_at_{RECALLS[0]}'

    @property
    def sizes(self):
        """Segment -> number of its examples."""
        return {segment: len(each.examples) for segment, (each, _) in self._sets.items()}

    def evaluate(self, guard=None):
        """See `evaluate_segments`; the metrics of the dev set."""
        segments = [segment for segment in self._sets if segment == 'dev']
        return evaluate_segments(self._measure, segments, self.primary, guard)

    def _measure(self, segment, guard=None):
        vectors, seconds = self._vectors(segment, guard)
        return self._metrics(segment, vectors), vectors.shape[0] / seconds

    def _vectors(self, segment, guard=None):
        started = time.perf_counter()
        vectors = predict(self._forward, self._sets[segment][1], guard).astype(np.float32)
        seconds = time.perf_counter() - started
        check_finite(vectors, segment)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=2, keepdims=True), 1e-12), seconds

    def _metrics(self, segment, vectors):
        kind, examples = self._sets[segment][0]
        cosines = _cosines(vectors)
        if kind == 'scored':
            scores = np.array([example.score for example in examples])
            found = cosines[:, 0]
            return {'spearman': spearman(scores, found), 'pearson': pearson(scores, found)}
        metrics = _recalls(vectors, examples)
        if kind == 'triplets':
            metrics['accuracy'] = float((cosines[:, 0] > cosines[:, 1]).mean())
        return metrics

    def predict(self, folder):
        """Write the similarities of the test set, and log its metrics.

        Returns
        -------
        list of str
            The names of the files, none without a test set.
        """
        if 'test' not in self._sets:
            return []
        vectors, _ = self._vectors('test')
        metrics = self._metrics('test', vectors)
        shown = ', '.join(f'{name} {value:.4f}' for name, value in metrics.items())
        name = 'test_similarities.tsv'
        logger.info('test: %s; similarities in %s', shown, os.path.join(folder, name))
        with atomic_write(os.path.join(folder, name)) as file:
            file.write('\t'.join(['index', 'similarity', 'of_third'][: vectors.shape[1]]) + '\n')
            for number, row in enumerate(_cosines(vectors)):
                file.write('\t'.join([str(number), *(f'{value:.6f}' for value in row)]) + '\n')
        self.test = metrics
        return [name]

    #: metrics of the test set, once `predict` was called
    test = None


def _cosines(vectors):
    """Of the first text of each row with the others: (rows, texts - 1)."""
    return np.einsum('bu,btu->bt', vectors[:, 0], vectors[:, 1:])


def _recalls(vectors, examples):
    """Recalls among the texts that come second."""
    # a text that is there several times counts once
    places = {}
    for number, example in enumerate(examples):
        places.setdefault(example.texts[1], number)
    corpus = vectors[list(places.values()), 1]  # (texts, units)
    ranks = []
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        own = np.einsum('bu,bu->b', block[:, 0], block[:, 1])
        # the match itself may differ in the last bits from one product to the other
        ranks.append((block[:, 0] @ corpus.T > own[:, None] + 1e-6).sum(axis=1))
    ranks = np.concatenate(ranks)
    return {f'recall_at_{k}': float((ranks < k).mean()) for k in RECALLS}
