"""The models of a server: for each its pipelines and its worker."""

import concurrent.futures
import contextlib
import logging
import os
import pathlib
import re
import time

import yaml

from ...errors import InputError, UnknownNameError, ZooError
from ..pipelines import PIPELINES
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


class NoSuchModelError(UnknownNameError):
    """A request for a model that isn't served."""


class LoadingError(ZooError):
    """A request for a model that isn't open yet."""


class Served:
    """A model that is served; `pipelines` has one for each task that it does, its own first."""

    def __init__(self, name, pipeline, settings, metrics):
        self.name, self.pipeline, self.created = name, pipeline, int(time.time())
        self.pipelines = {pipeline.task: pipeline}
        opened = pipeline.block, pipeline.tokenizer, pipeline.files
        options = pipeline.max_length, pipeline.batch_tokens, pipeline.engine
        for task in MORE_TASKS.get(pipeline.task, ()):
            with contextlib.suppress(InputError):  # its labels may be no entailment's
                self.pipelines[task] = PIPELINES[task](opened, *options)
        self.tasks, self.example = list(self.pipelines), example_of(pipeline.files)
        self.is_writer = isinstance(pipeline, TextGeneration)
        worker_class = GenerationWorker if self.is_writer else BatchWorker
        self.worker = worker_class(name, pipeline, settings, metrics)

    def of_task(self, task):
        """Return the pipeline of a task; for None, of the model's own."""
        task = task or self.pipeline.task
        if task not in self.pipelines:
            raise InputError(f'the model {self.name} is for {" and ".join(self.tasks)}, not {task}')
        return self.pipelines[task]


MOST_CHARACTERS, MOST_TEXTS = 5000, 20  # of an example's text, and of its lists


def example_of(files):
    """Return the first example of the ``widget`` in a model's card: texts and lists of texts."""
    try:
        card = pathlib.Path(os.path.dirname(files.config or ''), 'README.md').read_text('utf-8')
        example = yaml.safe_load(re.split(r'^---$', card, flags=re.MULTILINE)[1])['widget'][0]
        items = list(example.items())
    except Exception:  # no card, not this project's card, or anything at all: it is decoration
        return {}
    found = {}
    for name, value in items:
        texts = value[:MOST_TEXTS] if isinstance(value, list) else [value]
        if all(isinstance(text, str) for text in texts):
            texts = [text[:MOST_CHARACTERS] for text in texts]
            found[name] = texts if isinstance(value, list) else texts[0]
    return found


class Models:
    """All models of a server, by name; `later` has functions that open further ones."""

    def __init__(self, pipelines, settings, metrics, later):
        self._settings, self._metrics, self._later, self._served = settings, metrics, {**later}, {}
        #: name of a model that doesn't answer -> 'loading' or 'failed'
        self.waiting = dict.fromkeys(later, 'loading')
        for name, pipeline in pipelines.items():
            self._add(name, pipeline)

    def _add(self, name, pipeline):
        served = Served(name, pipeline, self._settings, self._metrics)
        self._metrics.queue.labels(name).set_function(lambda: served.worker.count)
        self._served = {**self._served, name: served}  # others may be reading the dict
        self.waiting.pop(name, None)

    def open_later(self):
        """Open the further models, one by one, while the others answer."""
        while self._later:
            name = next(iter(self._later))
            try:
                self._add(name, self._later.pop(name)())
            except Exception as error:
                self.waiting[name] = 'failed'
                _log.error('%s could not be opened: %s', name, error)

    def __iter__(self):
        return iter(self._served.values())

    def get(self, name):
        """Return a model by its name."""
        if name in self.waiting:
            why = {'loading': 'it is being opened', 'failed': "it couldn't be opened; see the log"}
            raise LoadingError(f"the model {name} doesn't answer: {why[self.waiting[name]]}")
        NoSuchModelError.check('model', name, self._served)
        return self._served[name]

    def close(self):
        """Answer what is accepted, and end the threads."""
        self._later.clear()
        # perhaps none is open yet
        with concurrent.futures.ThreadPoolExecutor(len(self._served) or 1) as threads:
            for served in self:
                threads.submit(served.worker.close)
