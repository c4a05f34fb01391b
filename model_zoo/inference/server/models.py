"""The models of a server: for each its pipelines and its worker; folders that change."""

import concurrent.futures
import logging
import threading
import time

from ...errors import InputError, UnknownNameError
from ...util.reading import state_of
from .. import PIPELINES
from ..text import TextGeneration
from .worker import BatchWorker, GenerationWorker

_log = logging.getLogger(__name__)

#: tasks that a model does beside its own, with the same block
MORE_TASKS = {
    'text-classification': ['zero-shot-classification'],
    'zero-shot-classification': ['text-classification'],
    'feature-extraction': ['sentence-similarity'],
    'sentence-similarity': ['feature-extraction'],
}


def pipelines_of(pipeline):
    """The pipelines of all tasks that a model does."""
    opened = pipeline.block, pipeline.tokenizer, pipeline.files
    pipelines = {pipeline.task: pipeline}
    for task in MORE_TASKS.get(pipeline.task, ()):
        added = PIPELINES[task](opened, pipeline.max_length, pipeline.batch_tokens, pipeline.engine)
        if not added.problem:
            pipelines[task] = added
    return pipelines


class Served:
    """A model that is served."""

    def __init__(self, name, pipeline, settings, metrics):
        self.name, self.pipeline = name, pipeline
        self.pipelines = pipelines_of(pipeline)
        self.created = int(time.time())
        self.is_writer = isinstance(pipeline, TextGeneration)
        if self.is_writer:
            self.worker = GenerationWorker(
                name, settings.queue_size, pipeline, settings.max_sequences,
                metrics.token_counter(name),
            )  # fmt: skip
        else:
            self.worker = BatchWorker(
                name, settings.queue_size, pipeline, metrics.batch_counter(name)
            )

    @property
    def tasks(self):
        """Names of the tasks, the model's own first."""
        return list(self.pipelines)

    def of_task(self, task):
        """The pipeline of a task; of the model's own for None."""
        task = task or self.pipeline.task
        if task not in self.pipelines:
            raise InputError(f'the model {self.name} is for {" and ".join(self.tasks)}, not {task}')
        return self.pipelines[task]


class NoSuchModelError(UnknownNameError):
    """A request for a model that isn't served."""


class Models:
    """All models of a server, by name."""

    def __init__(self, pipelines, settings, metrics):
        if not pipelines:
            raise InputError('there is no model to serve: name at least one')
        self._settings, self._metrics = settings, metrics
        self._lock = threading.Lock()
        self._served = {
            name: Served(name, pipeline, settings, metrics) for name, pipeline in pipelines.items()
        }
        metrics.watch_queues(self)

    def __iter__(self):
        return iter(list(self._served.values()))

    def get(self, name):
        """A model by its name."""
        try:
            return self._served[name]
        except KeyError:
            raise NoSuchModelError.of('model', name, self._served) from None

    def dead(self):
        """Names of the models whose thread has died."""
        return [served.name for served in self if not served.worker.is_alive]

    def replace(self, name, pipeline):
        """Serve another pipeline under a name; the old one answers what it has accepted."""
        new = Served(name, pipeline, self._settings, self._metrics)
        with self._lock:
            old, self._served[name] = self._served.get(name), new
        if old is not None:
            old.worker.close()

    def close(self):
        """Answer what is accepted, and end the threads."""
        with concurrent.futures.ThreadPoolExecutor(len(self._served)) as threads:
            for served in self:
                threads.submit(served.worker.close)


class Reloader:
    """A thread that watches the models' folders, and reloads those that have changed.

    A folder is opened when it has stayed the same for one interval. The old model answers what it
    has accepted. If a folder can't be opened, the log says so, and the old model stays.
    """

    def __init__(self, models, folders, open_pipeline, interval=1.0):
        self._models, self._folders = models, folders
        self._open, self._interval = open_pipeline, interval
        self._served = {name: state_of(folder) for name, folder in folders.items()}
        self._seen = dict(self._served)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name='reloader', daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._end.set()
        self._thread.join()

    def _watch(self):
        while not self._end.wait(self._interval):
            for name, folder in self._folders.items():
                state = state_of(folder)
                if state == self._seen[name] != self._served[name]:
                    self._served[name] = state  # a folder that can't be opened is tried once
                    self._reload(name, folder)
                self._seen[name] = state

    def _reload(self, name, folder):
        try:
            pipeline = self._open(folder)
        except Exception as error:
            _log.error('%s: the old model stays, as %s cannot be opened: %s', name, folder, error)
            _log.debug('the error in full', exc_info=True)
            return
        self._models.replace(name, pipeline)
        _log.info('%s: %s is loaded again', name, folder)
