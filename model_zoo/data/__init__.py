"""Task tables, readers, metrics, features and batches: from a task's files to what a model takes.

``get_task`` -> ``read_examples`` -> ``ClassifierFeatures`` -> ``BucketedLoader`` -> the model ->
``compute_metrics``.
"""

from .batching import Batch, BucketedLoader
from .features import ClassifierFeatures, Feature
from .metrics import METRICS, compute_metrics
from .readers import (
    Example,
    find_file,
    has_segment,
    infer_labels,
    load_gluonnlp,
    read_examples,
)
from .tasks import Layout, Task, custom_task, get_task, list_tasks

__all__ = [
    'METRICS',
    'Batch',
    'BucketedLoader',
    'ClassifierFeatures',
    'Example',
    'Feature',
    'Layout',
    'Task',
    'compute_metrics',
    'custom_task',
    'find_file',
    'get_task',
    'has_segment',
    'infer_labels',
    'list_tasks',
    'load_gluonnlp',
    'read_examples',
]
