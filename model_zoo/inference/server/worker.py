"""The thread of a model: it makes batches of several requests' rows, or writes their texts."""

import abc
import collections
import concurrent.futures
import contextlib
import logging
import threading
import time
from typing import NamedTuple

import numpy as np

from ...batches.sampling import longest_first
from ...errors import ZooError
from ...generation import StreamedText
from ...generation.generate import steps
from ...generation.request import Request
from ..pipeline_base import BATCH_ROWS

_log = logging.getLogger(__name__)

#: The fixed time of a batch, in tokens.
BATCH_COST = 128


class OverloadedError(ZooError):
    """A model's queue is full."""


class FailedError(ZooError):
    """A model has failed, and the log says why."""


class ClosedError(ZooError):
    """The server is shutting down."""


class Worker(abc.ABC):
    """One thread that runs one model, for requests that wait in a bounded queue."""

    def __init__(self, name, pipeline, settings, metrics):
        self.name, self._pipeline, self._metrics = name, pipeline, metrics
        self._queue_size, self._max_sequences = settings.queue_size, settings.max_sequences
        self._condition, self._is_closing = threading.Condition(), False
        self._new, self._jobs = collections.deque(), set()  # not begun; accepted and unanswered
        self._waiting, self._groups = [], []  # what `_step` has begun
        self._thread = threading.Thread(target=self._main, name=f'model {name}', daemon=True)
        self._thread.start()

    @property
    def count(self):
        """Number of requests that are accepted and unanswered."""
        return len(self._jobs)

    def check(self):
        """Raise what `run` would raise now."""
        if self._is_closing:
            raise ClosedError('the server is shutting down')
        if self.count >= self._queue_size:
            raise OverloadedError(f'the queue of the model {self.name} is full: try again later')

    def run(self, job):
        """Put a job into the queue; returns its future."""
        with self._condition:
            self.check()
            self._jobs.add(job)
            self._new.append(job)
            job.accepted = time.monotonic()
            self._condition.notify()
        job.future.add_done_callback(lambda _: self._jobs.discard(job))
        return job.future

    def close(self):
        """Answer what is accepted, then end the thread."""
        with self._condition:
            self._is_closing = True
            self._condition.notify()
        self._thread.join()

    def _main(self):
        while True:
            with self._condition:
                while not (self._new or self._waiting or self._groups or self._is_closing):
                    self._condition.wait()
                new = list(self._new)
                self._new.clear()
                if not new and not self._waiting and not self._groups:
                    return
            try:
                self._step([job for job in new if not job.future.cancelled()])
            except BaseException as error:
                with self._condition:
                    taken = self._jobs.difference(self._new)
                self._fail(taken, error)  # `_step` drops them

    @abc.abstractmethod
    def _step(self, jobs):
        """Take new jobs, run the model once, and answer the jobs that this completes."""

    def _begun(self, jobs):
        """Note that the model runs jobs, some of which it may have begun before."""
        for job in jobs:
            if job.accepted is not None:
                self._metrics.waits.labels(self.name).observe(time.monotonic() - job.accepted)
                job.accepted = None

    def _fail(self, jobs, error):
        """Answer jobs with an error. An unexpected one is logged once."""
        if not isinstance(error, ZooError):
            _log.error('the model %s has failed', self.name, exc_info=error)
            error = FailedError(f'the server failed: {type(error).__name__}')
        for job in jobs:
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # nobody waits
                job.future.set_exception(error)


def _answer(job, result):
    with contextlib.suppress(concurrent.futures.InvalidStateError):  # nobody waits
        job.future.set_result(result)


class _RowsJob:
    """The rows of a request, and their outputs as they come."""

    def __init__(self, rows):
        self.future = concurrent.futures.Future()
        self.rows, self.outputs, self.left = rows, [None] * len(rows), len(rows)


class BatchWorker(Worker):
    """Runs the rows of a pipeline's calls; one batch can have rows of several requests."""

    def run(self, work):
        """Run the rows of a call; returns the future of their outputs."""
        return super().run(_RowsJob(work.all_rows))

    def _step(self, jobs):
        # (job, position in it, length), the oldest first
        self._waiting = [row for row in self._waiting if not row[0].future.done()]
        for job in jobs:
            self._waiting += [(job, n, len(row.input_ids)) for n, row in enumerate(job.rows)]
            if not job.rows:
                _answer(job, [])
        if not self._waiting:
            return
        numbers = choose_rows([row[2] for row in self._waiting], self._pipeline.batch_tokens)
        chosen = [self._waiting[number] for number in numbers]
        left = set(range(len(self._waiting))).difference(numbers)
        self._waiting = [self._waiting[number] for number in sorted(left)]
        self._begun({job for job, _, _ in chosen})
        begin = time.monotonic()
        try:
            outputs = self._pipeline.run_batch([job.rows[n] for job, n, _ in chosen])
        except Exception as error:
            self._fail({job for job, _, _ in chosen}, error)
            return
        lengths = [length for _, _, length in chosen]
        self._metrics.count_batch(self.name, lengths, time.monotonic() - begin)
        for (job, number, _), output in zip(chosen, outputs):
            job.outputs[number] = output
            job.left -= 1
            if not job.left:
                _answer(job, job.outputs)


def choose_rows(lengths, batch_tokens):
    """Return the rows of the next batch: the oldest one, and others of similar length.

    It is one of the batches that take the least time altogether, where padding takes as long as
    text, and each batch takes as long as `BATCH_COST` tokens more.
    """
    lengths = np.asarray(lengths)
    near = np.argsort(np.abs(lengths - lengths[0]), kind='stable')[:BATCH_ROWS]
    batches = longest_first(lengths[near], BATCH_ROWS, batch_tokens, BATCH_COST)
    return next(near[batch].tolist() for batch in batches if 0 in batch)


class Written(NamedTuple):
    """A token that was written.

    Parameters
    ----------
    number : int
        Of the token in its sequence, from 1.
    text : str
        What it adds to the text; may be empty where a character or a stop string has only begun.
    finish : {'stop', 'length'}, optional
        If it is the sequence's last.
    """

    sequence: int
    number: int
    text: str
    token: int
    log_prob: float
    finish: str | None


class WritingJob:
    """Prompts to continue; jobs with the same `options` of `generate` run in one batch.

    `counts` has each prompt's new tokens at most, and `streams` its random stream. `texts` and
    their tokens, `written`, grow.
    """

    def __init__(self, tokenizer, prompts, options, counts, streams, stop):
        self.prompts, self.options, self.counts, self.streams = prompts, options, counts, streams
        self.sequences = options['num_return_sequences']  # of a prompt
        self.rows = len(prompts) * max(self.sequences, options.get('num_beams', 1))
        self.on_token = None  # on_token(written) is called for each token
        given = [prompt for prompt in prompts for _ in range(self.sequences)]
        self.texts = [StreamedText(tokenizer, prompt, tuple(stop), True) for prompt in given]
        self.future, self.written = concurrent.futures.Future(), [[] for _ in self.texts]

    @property
    def is_done(self):
        return self.future.done() or all(tokens and tokens[-1].finish for tokens in self.written)

    def add(self, sequence, new):
        """Add a `NewToken` to a sequence, unless that has ended."""
        written = self.written[sequence]
        if self.future.done() or (written and written[-1].finish):
            return
        text = self.texts[sequence]
        added = text.add(new)
        finish = 'stop' if text.is_stopped else new.finish
        number = len(written) + 1
        written.append(Written(sequence, number, added, new.token, new.log_prob, finish))
        if self.on_token is not None:
            self.on_token(written[-1])


class GenerationWorker(Worker):
    """Runs the jobs of a language model; those that wait with the same options as one batch."""

    def _step(self, jobs):
        self._waiting = [job for job in [*self._waiting, *jobs] if not job.future.done()]
        done = [all(job.future.done() for job in jobs) for jobs, _ in self._groups]
        self._groups = [group for group, is_done in zip(self._groups, done) if not is_done]
        self._begin()
        for jobs, written in self._groups:
            owners = [(job, number) for job in jobs for number in range(len(job.prompts))]
            try:
                with self._pipeline.engine.lock:
                    tokens = next(written)
            except Exception as error:
                self._fail(jobs, error)
                continue
            self._metrics.tokens.labels(self.name).inc(len(tokens))
            for new in tokens:
                job, number = owners[new.prompt]
                job.add(number * job.sequences + new.sequence, new)
            for job in jobs:
                if job.is_done:
                    _answer(job, job.written)

    def _begin(self):
        """Start waiting jobs while there is room; jobs with the same options become one batch."""
        engine = self._pipeline.engine
        while self._waiting:
            busy = sum(job.rows for jobs, _ in self._groups for job in jobs)
            room, first = self._max_sequences - busy, self._waiting[0]
            if self._groups and first.rows > room:
                return
            jobs, room = [first], room - first.rows
            for job in self._waiting[1:]:
                if job.options == first.options and job.rows <= room:
                    jobs.append(job)
                    room -= job.rows
            self._waiting = [job for job in self._waiting if job not in jobs]
            self._begun(jobs)
            of_all = {
                'prompts': [ids for job in jobs for ids in job.prompts],
                'max_new_tokens': [count for job in jobs for count in job.counts],
                'streams': [drawn for job in jobs for drawn in job.streams],
            }
            try:
                with engine.lock:  # the prompts run at once
                    request = Request(engine.language_model, {**first.options, **of_all})
                self._groups.append((jobs, steps(request)))
            except Exception as error:
                self._fail(jobs, error)
