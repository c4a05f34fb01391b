"""The examples of a task as samples and batches."""

import logging
import time

from ...batches import BucketedLoader
from .readers import has_segment, read_examples

__all__ = ['TaskSets']

logger = logging.getLogger(__name__)


class TaskSets:
    """The segments of a task; each is read when it is first needed.

    Parameters
    ----------
    task : Task
    data_dir : str or None
        See `read_examples`.
    make_features : callable
        Sequence of Example -> sequence of Sample, such as a `ClassifierFeatures`.
    batch_size, dev_batch_size : int
        Of the training set, and of all others.
    workers : model_zoo.training.workers.Workers, optional
        They share the batches of the training set.
    batch_tokens : int, optional
        Of the training set, instead of `batch_size`: see `BucketedLoader`.
    **loader_options
        For `BucketedLoader`: ``pad_val``, ``seed``, ``round_to``, ``ctx``.
    """

    def __init__(
        self,
        task,
        data_dir,
        make_features,
        batch_size,
        dev_batch_size,
        workers=None,
        batch_tokens=None,
        **loader_options,
    ):
        self._task, self._data_dir = task, data_dir
        self._make_features = make_features
        self._batch_size, self._dev_batch_size = batch_size, dev_batch_size
        self._batch_tokens = batch_tokens
        self._loader_options, self._workers = loader_options, workers
        self._made = {}

    def has(self, segment):
        """Whether there are data for the segment."""
        return has_segment(self._task, self._data_dir, segment)

    def get(self, segment):
        """The examples of a segment, their samples, and batches of these.

        Returns
        -------
        (list of Example, list of Sample, BucketedLoader)
            The training set's loader shuffles.
        """
        if segment not in self._made:
            started = time.perf_counter()
            examples = read_examples(self._task, self._data_dir, segment)
            features = self._make_features(examples)
            train = segment == 'train'
            loader = BucketedLoader(
                features,
                self._batch_size if train else self._dev_batch_size,
                shuffle=train,
                workers=self._workers if train else None,
                batch_tokens=self._batch_tokens if train else None,
                **self._loader_options,
            )
            seconds = time.perf_counter() - started
            logger.info('%s: %d examples, read in %.1f s', segment, len(examples), seconds)
            self._made[segment] = examples, features, loader
        return self._made[segment]
