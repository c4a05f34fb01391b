"""Sentences and sentence pairs: the table of tasks, readers, samples, metrics.

``get_task`` -> ``read_examples`` -> ``ClassifierFeatures`` -> ``BucketedLoader`` -> the model ->
``compute_metrics``.
"""

from .custom import custom_task, infer_labels
from .distillation import Distillation, make_student, teacher_layers
from .evaluate import write_class_probabilities, write_predictions
from .features import ClassifierFeatures
from .metrics import METRICS, compute_baseline, compute_metrics
from .readers import find_file, has_segment, load_gluonnlp, read_examples
from .rows import Example
from .task import Layout, Task
from .tasks import get_task, list_tasks

__all__ = [
    'ClassifierFeatures',
    'Distillation',
    'Example',
    'Layout',
    'METRICS',
    'Task',
    'compute_baseline',
    'compute_metrics',
    'custom_task',
    'find_file',
    'get_task',
    'has_segment',
    'infer_labels',
    'list_tasks',
    'load_gluonnlp',
    'make_student',
    'read_examples',
    'teacher_layers',
    'write_class_probabilities',
    'write_predictions',
]
