"""Task tables, readers, metrics, features and batches: from a task's files to what a model takes.

``get_task`` -> ``read_examples`` -> ``ClassifierFeatures`` -> ``BucketedLoader`` -> the model ->
``compute_metrics``.
"""

from .batching import Batch, BucketedLoader
from .choices import ChoiceBatch, ChoiceFeature, ChoiceLoader
from .conll import Sentence, read_conll, write_conll
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
from .sets import TaskSets
from .story_cloze import (
    Story,
    StoryClozeFeatures,
    hold_out,
    read_story_cloze,
    write_story_cloze_predictions,
)
from .swag import SwagExample, SwagFeatures, read_swag, write_swag_predictions
from .tagging import (
    TaggingBatch,
    TaggingFeature,
    TaggingFeatures,
    TaggingLoader,
    entity_scorer,
    has_entities,
    labels_of_sentences,
    score_tags,
)
from .tasks import Layout, Task, custom_task, get_task, list_tasks
from .text_batches import BlockBatch, BlockLoader, StreamBatch, StreamLoader

__all__ = [
    'METRICS',
    'Batch',
    'BlockBatch',
    'BlockLoader',
    'BucketedLoader',
    'ChoiceBatch',
    'ChoiceFeature',
    'ChoiceLoader',
    'ClassifierFeatures',
    'Example',
    'Feature',
    'Layout',
    'Sentence',
    'Story',
    'StoryClozeFeatures',
    'StreamBatch',
    'StreamLoader',
    'SwagExample',
    'SwagFeatures',
    'TaggingBatch',
    'TaggingFeature',
    'TaggingFeatures',
    'TaggingLoader',
    'Task',
    'TaskSets',
    'compute_metrics',
    'custom_task',
    'entity_scorer',
    'find_file',
    'get_task',
    'has_entities',
    'has_segment',
    'hold_out',
    'infer_labels',
    'labels_of_sentences',
    'list_tasks',
    'load_gluonnlp',
    'read_conll',
    'read_examples',
    'read_story_cloze',
    'read_swag',
    'score_tags',
    'write_conll',
    'write_story_cloze_predictions',
    'write_swag_predictions',
]
