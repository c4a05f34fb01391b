"""The thread of a language model: texts of several requests grow side by side, step by step."""

import concurrent.futures
from typing import NamedTuple, Optional, Tuple

from ...generation import StreamedText, stream
from .worker import Worker

__all__ = ['GenerationWorker', 'Sampling', 'Written', 'WritingJob']


class Sampling(NamedTuple):
    """How the next token is chosen: jobs with the same sampling run in one batch."""

    temperature: Optional[float] = None
    top_k: Optional[int] = None
    top_p: Optional[float] = None
    seed: Optional[int] = None
    sequences: int = 1
    stop_tokens: Tuple[int, ...] = ()


class Written(NamedTuple):
    """A token that was written.

    Parameters
    ----------
    text : str
        What it adds to the text; may be empty where a character or a stop string has only begun.
    finish : {'stop', 'length'}, optional
        If it is the sequence's last.
    """

    sequence: int
    text: str
    token: int
    log_prob: float
    finish: Optional[str]


class WritingJob:
    """Prompts to continue."""

    def __init__(self, prompts, sampling, max_new_tokens, stop=(), on_token=None):
        self.prompts, self.sampling, self.max_new_tokens = prompts, sampling, max_new_tokens
        self.stop, self.on_token = tuple(stop), on_token
        self.future = concurrent.futures.Future()
        self.written = [[] for _ in range(self.size)]

    @property
    def size(self):
        """Number of sequences."""
        return len(self.prompts) * self.sampling.sequences

    def begin(self, tokenizer):
        self._texts = [StreamedText(tokenizer, self.stop) for _ in range(self.size)]

    @property
    def is_done(self):
        return self.future.done() or all(each and each[-1].finish for each in self.written)

    def add(self, sequence, new):
        """Add a `NewToken` to a sequence, unless that has ended."""
        written = self.written[sequence]
        if self.future.done() or (written and written[-1].finish):
            return
        if new.finish is None and len(written) + 1 == self.max_new_tokens:
            new = new._replace(finish='length')
        text = self._texts[sequence]
        added = text.add(new)
        finish = 'stop' if text.is_stopped else new.finish
        written.append(Written(sequence, added, new.token, new.log_prob, finish))
        if self.on_token is not None:
            self.on_token(written[-1])


class _Group:
    """Jobs of the same sampling, which run as one batch."""

    def __init__(self, block, jobs):
        self.jobs, sampling = jobs, jobs[0].sampling
        prompts = [(job, place, ids) for job in jobs for place, ids in enumerate(job.prompts)]
        self._owners = [(job, place) for job, place, _ in prompts]
        self.size = sum(job.size for job in jobs)
        self._steps = stream(
            block,
            [ids for _, _, ids in prompts],
            max_new_tokens=max(job.max_new_tokens for job in jobs),
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            seed=sampling.seed,
            num_return_sequences=sampling.sequences,
            stop_tokens=sampling.stop_tokens,
            overflow='slide',
        )

    def step(self):
        """Take a token; returns whether there may be more."""
        new = next(self._steps, None)
        if new is None:
            return False
        job, place = self._owners[new.prompt]
        job.add(place * job.sampling.sequences + new.sequence, new)
        return not all(job.is_done for job in self.jobs)


class GenerationWorker(Worker):
    """Runs the jobs of a language model; those that wait with the same sampling as one batch."""

    def __init__(self, name, queue_size, pipeline, max_sequences, on_token=None):
        self._pipeline, self._max_sequences, self._on_token = pipeline, max_sequences, on_token
        self._waiting, self._groups = [], []
        super().__init__(name, queue_size)

    def _is_busy(self):
        return bool(self._waiting or self._groups)

    def _take(self, jobs):
        self._waiting += jobs
        self._waiting = [job for job in self._waiting if not job.future.done()]
        self._groups = [
            group for group in self._groups if not all(job.future.done() for job in group.jobs)
        ]

    def _step(self):
        self._begin()
        for group in list(self._groups):
            try:
                with self._pipeline.engine.lock:
                    is_going = group.step()
            except Exception as error:
                self._fail(group.jobs, error)
                is_going = False
            if self._on_token is not None:
                self._on_token()
            for job in group.jobs:
                if job.is_done and not job.future.done():
                    self._answer(job, job.written)
            if not is_going:
                self._groups.remove(group)

    def _begin(self):
        """Begin with jobs that wait, as far as there is room."""
        while self._waiting:
            room = self._max_sequences - sum(group.size for group in self._groups)
            first = self._waiting[0]
            if self._groups and first.size > room:
                return
            jobs, room = [first], room - first.size
            for job in self._waiting[1:]:
                if job.sampling == first.sampling and job.size <= room:
                    jobs.append(job)
                    room -= job.size
            self._waiting = [job for job in self._waiting if job not in jobs]
            for job in jobs:
                job.begin(self._pipeline.tokenizer)
            try:
                with self._pipeline.engine.lock:
                    self._groups.append(_Group(self._pipeline.block, jobs))
            except Exception as error:
                self._fail(jobs, error)
