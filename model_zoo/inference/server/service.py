"""Requests on their way through a server, whatever their protocol."""

import asyncio

from ...errors import InputError
from ..text import MAX_NEW_TOKENS
from .errors import ClosedError, TooLargeError
from .payload import check_texts
from .writer import Sampling, WritingJob

__all__ = ['Service', 'check_ids']

#: Characters of a request that are cut into tokens at once; more than these in another thread.
SMALL = 4000


class Service:
    """What the routes of all protocols share.

    Parameters
    ----------
    models : Models
    settings : Settings
    metrics : Metrics
    """

    def __init__(self, models, settings, metrics):
        self.models, self.settings, self.metrics = models, settings, metrics

    async def infer(self, name, items, options, task=None):
        """Results of items.

        Parameters
        ----------
        name : str
            Of the model.
        items : list
        options : dict
            The pipeline's.
        task : str, optional
            Which of the model's; default: its own.

        Returns
        -------
        list
        """

        def prepare(served, pipeline):
            return pipeline.prepare(items, **options)

        def finish(served, pipeline, work, outputs):
            return list(pipeline.finish(work, outputs))

        return await self.run(name, items, prepare, finish, task)

    async def run(self, name, inputs, prepare, finish, task=None):
        """Run rows: ``work = prepare(served, pipeline)``, then ``finish(..., work, outputs)``.

        Parameters
        ----------
        name : str
        inputs : object
            With the texts, which are checked against the limits.
        prepare, finish : callable
        task : str, optional

        Returns
        -------
        object
            What `finish` returns.
        """
        in_thread = check_texts(inputs, self.settings) > SMALL
        while True:
            served = self.models.get(name)
            if served.is_writer:
                raise InputError(f'the model {name} is for text-generation alone')
            pipeline = served.of_task(task)
            try:
                served.worker.check()
                work = await self._call(in_thread, prepare, served, pipeline)
                future = served.worker.run(work)
            except ClosedError:
                self._check_replaced(served)
                continue
            outputs = await self._answer(future)
            return await self._call(in_thread, finish, served, pipeline, work, outputs)

    async def write(self, name, make_job):
        """Continue prompts.

        Parameters
        ----------
        name : str
        make_job : callable
            ``make_job(served) -> WritingJob``.

        Returns
        -------
        WritingJob
            With all tokens.
        """
        job = self.submit(name, make_job)
        await self._answer(job.future)
        return job

    async def stream(self, job, tokens):
        """The tokens of a job that was submitted, as they come.

        Parameters
        ----------
        job : WritingJob
        tokens : asyncio.Queue
            Which the job's ``on_token`` fills, see `token_queue`.

        Returns
        -------
        async iterator of Written
        """
        loop = asyncio.get_running_loop()
        job.future.add_done_callback(  # comes after all tokens
            lambda _: loop.call_soon_threadsafe(tokens.put_nowait, None)
        )
        left, end = job.size, loop.time() + self.settings.timeout
        try:
            while left:
                try:
                    written = await asyncio.wait_for(tokens.get(), end - loop.time())
                except asyncio.TimeoutError:
                    raise TimeoutError(self._too_slow()) from None
                if written is None:
                    job.future.result()  # raises what went wrong
                    return
                left -= written.finish is not None
                yield written
        finally:
            job.future.cancel()

    @staticmethod
    def token_queue():
        """A queue, and the ``on_token`` that fills it from another thread."""
        loop, tokens = asyncio.get_running_loop(), asyncio.Queue()
        return tokens, lambda written: loop.call_soon_threadsafe(tokens.put_nowait, written)

    def submit(self, name, make_job):
        """Put a job into a language model's queue; see `write`."""
        while True:
            served = self.models.get(name)
            if not served.is_writer:
                raise InputError(
                    f'the model {name} is for {" and ".join(served.tasks)}; it writes no text'
                )
            served.worker.check()
            job = make_job(served)
            try:
                served.worker.submit(job)
                return job
            except ClosedError:
                self._check_replaced(served)

    def writing_job(
        self, served, prompts, max_new_tokens=MAX_NEW_TOKENS, stop=(), on_token=None, **sampling
    ):
        """A `WritingJob` within the server's limits.

        Parameters
        ----------
        served : Served
        prompts : list of str or of list of int
        max_new_tokens, stop, on_token
            See `WritingJob`.
        **sampling
            See `Sampling`.
        """
        check_texts(prompts, self.settings)
        most = self.settings.max_new_tokens
        if not 1 <= max_new_tokens <= most:
            raise InputError(f'{max_new_tokens} new tokens are wanted; it must be from 1 to {most}')
        if any(not isinstance(each, str) or not each for each in stop):
            raise InputError('the texts that end the output must be str, and not empty')
        sampling = Sampling(**sampling)
        if sampling.sequences < 1:
            raise InputError(f'{sampling.sequences} texts are wanted; it must be at least 1')
        if len(prompts) * sampling.sequences > self.settings.max_sequences:
            raise TooLargeError(
                f'the request asks for {len(prompts) * sampling.sequences} texts; this server '
                f'writes {self.settings.max_sequences} at once'
            )
        ids = [self._prompt(served, prompt) for prompt in prompts]
        return WritingJob(ids, sampling, max_new_tokens, stop, on_token)

    @staticmethod
    def _prompt(served, prompt):
        """A prompt's ids."""
        if isinstance(prompt, str):
            return served.pipeline.encode_prompt(prompt)
        check_ids(prompt, served.pipeline.block.config.vocab_size)
        return prompt

    @staticmethod
    async def _call(in_thread, function, *args):
        if not in_thread:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(None, function, *args)

    async def _answer(self, future):
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.settings.timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(self._too_slow()) from None

    def _too_slow(self):
        return f'no answer within {self.settings.timeout:g} seconds'

    def _check_replaced(self, served):
        """Raise ClosedError unless there is another model under the name now."""
        if self.models.get(served.name) is served:
            raise ClosedError('the server is shutting down')


def check_ids(ids, vocab_size):
    """Raise InputError unless these are token ids.

    Parameters
    ----------
    ids : list
    vocab_size : int
    """
    if not ids:
        raise InputError('a list of token ids is empty')
    for each in ids:
        if isinstance(each, bool) or not isinstance(each, int):
            raise InputError(f'a list of token ids holds {each!r:.40}')
        if not 0 <= each < vocab_size:
            raise InputError(f'token id {each} is not in the vocabulary of {vocab_size} tokens')
