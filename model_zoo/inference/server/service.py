"""Requests on their way through a server, whatever their protocol."""

import asyncio
import concurrent.futures
import functools
import json
import time
from collections.abc import Callable
from typing import NamedTuple

import pydantic_core

from ...errors import InputError
from ...generation.search import streams_of
from ..pipeline_base import Meter, TooLargeError, Work
from .worker import WritingJob

#: threads that read requests and write answers; one of them has all requests above `LARGE` bytes
THREADS, LARGE = 4, 2**17


class Call(NamedTuple):
    """A request that is read and checked.

    Parameters
    ----------
    finish : callable
        ``finish(outputs)`` makes the answer, for JSON, from the worker's outputs.
    events : callable, optional
        ``events(tokens)`` makes server-sent events, str, of the tokens of a job as they come.
    """

    served: object
    work: object
    finish: Callable
    events: Callable | None = None


class Service:
    """Shared parts of the routes of all protocols."""

    def __init__(self, models, settings):
        self.models, self.settings = models, settings
        make = concurrent.futures.ThreadPoolExecutor
        # large requests wait for one another, not small ones for them
        self._threads, self._one = make(THREADS, 'request'), make(1, 'large request')

    def meter(self):
        """Return the `Meter` of a request that begins now."""
        names = 'max_rows', 'max_tokens', 'max_body', 'max_answer'
        limits = {name: getattr(self.settings, name) for name in names}
        return Meter(time.monotonic() + self.settings.timeout, **limits)

    async def read(self, request):
        """Return the body of a request, unless it is too large."""
        most, size, parts = self.settings.max_body, 0, []
        length = request.headers.get('content-length', '')
        # the body is left unread if its head says that it is too large
        if not (length.isdecimal() and int(length) > most):
            async for part in request.stream():
                size += len(part)
                parts.append(part)
                if size > most:
                    break
            else:
                return b''.join(parts)
        raise TooLargeError(f'the request is larger than {most} bytes')

    async def respond(self, request, prepare, threads=None):
        """Respond to a request. Only waiting is done in the event loop.

        ``prepare(body, meter)`` makes its `Call`, or the answer itself, for JSON. It runs in one
        of `threads`, by default of those that read requests.
        """
        from fastapi.responses import Response, StreamingResponse

        loop, meter = asyncio.get_running_loop(), self.meter()
        body = await self._within(self.read(request), meter)
        submit = (threads or (self._one if len(body) > LARGE else self._threads)).submit
        call = await self._outputs(request, submit(prepare, body, meter), meter)
        if not isinstance(call, Call):
            return Response(pydantic_core.to_json(call), media_type='application/json')
        if call.events is not None:
            tokens = asyncio.Queue()  # which another thread fills
            call.work.on_token = functools.partial(loop.call_soon_threadsafe, tokens.put_nowait)
        future = call.served.worker.run(call.work)
        if call.events is not None:
            stream = self._stream(call.work, tokens, meter)
            events = _with_errors(call.events(stream), request.url.path)
            return StreamingResponse(events, media_type='text/event-stream')
        outputs = await self._outputs(request, future, meter)
        to_json = functools.partial(pydantic_core.to_json, inf_nan_mode='constants')
        finished = submit(lambda: to_json(call.finish(outputs)))
        answer = await self._outputs(request, finished, meter)
        rows = call.work.all_rows if isinstance(call.work, Work) else ()
        cut = sum(row.is_cut for row in rows)
        headers = {'Truncated-Texts': str(cut)} if cut else None
        return Response(answer, headers=headers, media_type='application/json')

    async def _outputs(self, request, future, meter):
        """Await a thread's result; it isn't computed if the client goes, or the time is over."""
        from starlette.requests import ClientDisconnect

        outputs = asyncio.wrap_future(future)
        gone = asyncio.ensure_future(request.receive())  # behind a body there is nothing else
        try:
            waiting = asyncio.wait({outputs, gone}, return_when=asyncio.FIRST_COMPLETED)
            await self._within(waiting, meter)
            if not outputs.done():
                raise ClientDisconnect
            return outputs.result()
        except BaseException:
            meter.end = 0  # the thread stops at the next text
            raise
        finally:
            outputs.cancel()
            gone.cancel()

    def served(self, name, is_writer):
        """Return the model of a name, if it takes requests; `is_writer`: it must write text."""
        served = self.models.get(name)
        if served.is_writer is not is_writer:
            raise InputError(f'the model {name} is for {" and ".join(served.tasks)} alone')
        served.worker.check()
        return served

    def writing_job(self, served, prompts, options, stop, meter, truncate=None):
        """Return a `WritingJob` within the server's limits.

        `options` are `checked` ones of the pipeline; of a prompt the last `truncate` tokens count.
        """
        pipeline, ids = served.pipeline, []
        for prompt in prompts:
            meter.add_text(prompt, pipeline.tokenizer)
            ids.append(pipeline.encode_prompt(prompt)[-truncate if truncate else None :])
            meter.add('max_tokens', len(ids[-1]))
        counts = [pipeline.new_tokens(each, options) for each in ids]
        most = self.settings.max_new_tokens
        if max(counts) > most:
            raise InputError(f'the number of new tokens must be from 1 to {most}')
        streams = streams_of(options['seed'], range(len(prompts)))
        job = WritingJob(pipeline.tokenizer, ids, options['generate'], counts, streams, stop)
        if job.rows > self.settings.max_sequences:
            problem = f'{job.rows} texts or beams, more than `max_sequences`'
            raise TooLargeError(f'the request asks for {problem}')
        return job

    async def _stream(self, job, tokens, meter):
        """Yield the tokens of a submitted job as they come."""
        loop = asyncio.get_running_loop()
        job.future.add_done_callback(  # comes after all tokens
            lambda _: loop.call_soon_threadsafe(tokens.put_nowait, None)
        )
        try:
            while written := await self._within(tokens.get(), meter):
                yield written
            job.future.result()  # raises what went wrong
        finally:
            job.future.cancel()

    async def _within(self, waiting, meter):
        try:
            return await asyncio.wait_for(waiting, meter.end - time.monotonic())
        except asyncio.TimeoutError:
            raise TimeoutError(f'no answer within {self.settings.timeout:g} seconds') from None


async def _with_errors(events, path):
    """Yield server-sent events; an error is the last one."""
    try:
        async for event in events:
            yield event
    except Exception as error:
        content = error_content(path, str(error) or type(error).__name__, 500)
        yield f'data: {json.dumps(content)}\n\n'


def error_content(path, message, status):
    """Return the content of an error, as the clients of a path expect it."""
    message = ' '.join(message.split())
    if path.startswith('/v1/'):
        types = {401: 'authentication_error', 404: 'not_found_error', 429: 'rate_limit_error'}
        error_type = types.get(status, 'invalid_request_error' if status < 500 else 'server_error')
        message = {'message': message, 'type': error_type, 'param': None, 'code': status}
    return {'error': message}
