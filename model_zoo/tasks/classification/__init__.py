"""Sentences and sentence pairs: the table of tasks, readers, samples, metrics.

``get_task`` -> ``read_examples`` -> ``ClassifierFeatures`` -> ``BucketedLoader`` -> the model ->
``compute_metrics``.
"""

from .evaluate import ClassifierEvaluator, write_class_probabilities, write_predictions
from .features import ClassifierFeatures
from .metrics import METRICS, compute_metrics
from .readers import Example, find_file, has_segment, infer_labels, load_gluonnlp, read_examples
from .sets import TaskSets
from .tasks import Layout, Task, custom_task, get_task, list_tasks

__all__ = [
    'ClassifierEvaluator',
    'ClassifierFeatures',
    'Example',
    'Layout',
    'METRICS',
    'Task',
    'TaskSets',
    'compute_metrics',
    'custom_task',
    'find_file',
    'get_task',
    'has_segment',
    'infer_labels',
    'list_tasks',
    'load_gluonnlp',
    'read_examples',
    'write_class_probabilities',
    'write_predictions',
]
