"""What the evaluations of tasks share."""

import logging

import numpy as np

from ..errors import InputError
from .examination import cross_entropies

__all__ = ['check_finite', 'evaluate_segments', 'mean_cross_entropy', 'softmax']

logger = logging.getLogger(__name__)


def evaluate_segments(measure, segments, primary, guard=None):
    """Measure a model on dev sets, and log the results.

    Parameters
    ----------
    measure : callable
        ``measure(segment, guard) -> (metrics, samples a second)``: floats by name, and a float.
    segments : sequence of str
        Names of the dev sets.
    primary : str
        The metric that compares epochs; higher is better.
    guard : InterruptGuard, optional

    Returns
    -------
    (float, dict)
        The mean of the segments' primary metrics (0 if there are none), and segment -> its metrics
        and ``samples_per_second``, in the form that `Evaluation` needs.
    """
    report = {}
    for segment in segments:
        metrics, speed = measure(segment, guard)
        shown = ', '.join(f'{name} {value:.4f}' for name, value in metrics.items())
        logger.info('%s: %s (%.1f samples/s)', segment, shown, speed)
        report[segment] = {**metrics, 'samples_per_second': speed}
    scores = [metrics[primary] for metrics in report.values()]
    return float(np.mean(scores)) if scores else 0.0, report


def mean_cross_entropy(labels, outputs):
    """The mean loss of classes.

    Parameters
    ----------
    labels : numpy.ndarray, shape (samples,)
    outputs : numpy.ndarray, shape (samples, classes)
        Unnormalized scores.
    """
    return float(np.mean(cross_entropies(labels, outputs)))


def softmax(outputs):
    """Probabilities, float64, of a model's scores."""
    from scipy.special import softmax as scipy_softmax

    return scipy_softmax(outputs.astype(np.float64), axis=-1)


def check_finite(outputs, segment):
    """Raise InputError if a model's outputs on a data set aren't finite."""
    if not np.isfinite(outputs).all():
        raise InputError(f"the model's outputs on {segment} are not finite")
