"""The files of predictions on test sets."""

import os

import numpy as np

from ...util.files import atomic_write
from ..evaluate import softmax

__all__ = ['write_class_probabilities', 'write_predictions']


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
