"""Scores of a model on dev sets, and predictions on test sets."""

import logging
import os
import time

import numpy as np

from ...training.predict import predict
from ...util.files import atomic_write
from ..evaluate import check_finite, evaluate_segments, mean_cross_entropy, softmax
from ..examination import Examination, cross_entropies
from .metrics import compute_baseline, compute_metrics

__all__ = ['ClassifierEvaluator', 'write_class_probabilities', 'write_predictions']

logger = logging.getLogger(__name__)


class ClassifierEvaluator:
    """Scores and predictions of a classifier or regressor on the segments of a task.

    Parameters
    ----------
    task : model_zoo.tasks.classification.Task
    sets : model_zoo.tasks.classification.TaskSets
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, num_labels).
    segments : sequence of str, optional
        To evaluate; by default the task's dev sets.
    write : callable, optional
        ``write(folder, task, segment, examples, outputs) -> names of the files written``.
    """

    def __init__(self, task, sets, forward, segments=None, write=None):
        self._task, self._sets, self._forward = task, sets, forward
        self.segments = task.dev_segments if segments is None else tuple(segments)
        self._write = write or write_predictions

    def evaluate(self, guard=None):
        """See `evaluate_segments`; the metrics are the task's and the mean loss."""
        return evaluate_segments(self._measure, self.segments, self._task.primary_metric, guard)

    def _outputs(self, segment, guard=None):
        loader = self._sets.get(segment)[2]
        started = time.perf_counter()
        outputs = predict(self._forward, loader, guard)
        return outputs, loader.num_samples / (time.perf_counter() - started)

    def _measure(self, segment, guard):
        examples = self._sets.get(segment)[0]
        labels = np.array([self._task.label_id(example.label) for example in examples])
        outputs, speed = self._outputs(segment, guard)
        metrics = dict(compute_metrics(self._task, labels, outputs))
        return {**metrics, 'loss': _mean_loss(self._task, labels, outputs)}, speed

    def examine(self):
        """The `Examination` of the first dev set; None if there is none."""
        if not self.segments:
            return None
        task, segment = self._task, self.segments[0]
        examples = self._sets.get(segment)[0]
        outputs, _ = self._outputs(segment)
        labels = np.array([task.label_id(example.label) for example in examples])
        guess, baseline = compute_baseline(task, labels)
        if task.regression:
            found = outputs.astype(np.float64).reshape(-1)
            losses = (found - labels) ** 2
            names = [f'{number:.4g}' for number in (*labels, *found, guess)]
        else:
            losses, found = cross_entropies(labels, outputs), outputs.argmax(axis=-1)
            names = [task.require_labels()[number] for number in (*labels, *found, guess)]
        count = len(examples)
        return Examination(
            segment,
            [' / '.join(filter(None, (each.text_a, each.text_b))) for each in examples],
            names[:count],
            names[count:-1],
            losses,
            dict(baseline),
            names[-1],
            None if task.regression else task.require_labels(),
        )

    def predict(self, folder):
        """Write the predictions on all test sets; returns the files' names."""
        files = []
        for segment in filter(self._sets.has, self._task.test_segments):
            outputs, speed = self._outputs(segment)
            check_finite(outputs, segment)
            examples = self._sets.get(segment)[0]
            names = self._write(folder, self._task, segment, examples, outputs)
            path = os.path.join(folder, names[0])
            logger.info('%s: predictions in %s (%.1f samples/s)', segment, path, speed)
            files += names
        return files


def _mean_loss(task, labels, outputs):
    if task.regression:
        return float(np.mean((outputs.astype(np.float64).reshape(-1) - labels) ** 2))
    return mean_cross_entropy(labels, outputs)


def write_predictions(folder, task, segment, examples, outputs):
    """Write GLUE's form and, beside it, the probabilities (of a regression the raw outputs).

    Parameters
    ----------
    folder : str
    task : model_zoo.tasks.classification.Task
    segment : str
        A test set of the task.
    examples : sequence of model_zoo.tasks.classification.Example
    outputs : numpy.ndarray, shape (number of examples, num_labels)

    Returns
    -------
    list of str
        The names of the two files, such as ``MRPC.tsv`` and ``MRPC_probabilities.tsv``.
    """
    if task.regression:
        predictions, header, rows = outputs.reshape(-1), ['output'], outputs.reshape(-1, 1)
    else:
        predictions = outputs.argmax(axis=-1)
        header, rows = task.require_labels(), softmax(outputs)
    name = task.submission_file(segment)
    with atomic_write(os.path.join(folder, name)) as file:
        file.write('index\tprediction\n')
        for example, prediction in zip(examples, predictions):
            file.write(f'{example.guid}\t{task.format_prediction(prediction)}\n')
    beside = name.replace('.tsv', '_probabilities.tsv')
    with atomic_write(os.path.join(folder, beside)) as file:
        file.write('\t'.join(['index', *header]) + '\n')
        for example, row in zip(examples, rows):
            file.write('\t'.join([example.guid, *(f'{value:.6f}' for value in row)]) + '\n')
    return [name, beside]


def write_class_probabilities(folder, task, segment, examples, outputs):
    """Write the file of Google's ``run_classifier.py --do_predict``, and call `write_predictions`.

    ``test_results.tsv`` has no header, a line per sample in the file's order, and a column per
    class with its probability, or one column with a regression's number. The name begins with
    the test set: ``test_matched_results.tsv``.

    See `write_predictions`.
    """
    names = write_predictions(folder, task, segment, examples, outputs)
    rows = outputs.astype(np.float64) if task.regression else softmax(outputs)
    name = f'{segment}_results.tsv'
    with atomic_write(os.path.join(folder, name)) as file:
        for row in rows.reshape(len(rows), -1):
            file.write('\t'.join(f'{value:.9g}' for value in row) + '\n')
    return [name, *names]
