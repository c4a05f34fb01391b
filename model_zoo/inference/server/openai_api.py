"""``/v1/embeddings`` and ``/v1/completions``, as OpenAI's clients want them."""

import base64
import json
import time
import uuid

import numpy as np

from ...errors import InputError
from ..text import end_tokens
from . import bodies
from .service import Call


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request

    @app.post('/v1/embeddings', openapi_extra=bodies.documented(bodies.Embeddings), tags=['OpenAI'])
    async def embeddings(request: Request):
        """Vectors of texts, scaled to length 1."""
        return await service.respond(
            request, lambda body: _embed(service, bodies.Embeddings.of_json(body))
        )

    @app.post(
        '/v1/completions', openapi_extra=bodies.documented(bodies.Completions), tags=['OpenAI']
    )
    async def completions(request: Request):
        """Text that continues a prompt."""
        return await service.respond(
            request, lambda body: _Completion(service, bodies.Completions.of_json(body)).call()
        )


def _embed(service, content):
    served = service.served(content.model, is_writer=False)
    pipeline, inputs = served.of_task('feature-extraction'), content.input
    is_float = content.encoding_format == 'float'
    options = {'return_tensors': not is_float, 'pooling': 'model', 'normalize': True}
    work = pipeline.prepare(inputs, options, service.meter())

    def finish(outputs):
        count = sum(len(row.input_ids) for row in work.all_rows)
        vectors = list(pipeline.finish(work, outputs))
        units = len(vectors[0])
        if content.dimensions not in (None, units):
            raise InputError(
                f'dimensions is {content.dimensions}; the vectors of {content.model} have {units}, '
                'and cannot be shortened'
            )
        data = [
            {
                'object': 'embedding',
                'index': index,
                'embedding': vector
                if is_float
                else base64.b64encode(np.asarray(vector, '<f4').tobytes()).decode(),
            }
            for index, vector in enumerate(vectors)
        ]
        usage = {'prompt_tokens': count, 'total_tokens': count}
        return {'object': 'list', 'data': data, 'model': content.model, 'usage': usage}

    return Call(served, work, finish)


class _Completion:
    """A request for completions, checked."""

    def __init__(self, service, content):
        self._content = content
        self.served = service.served(content.model, is_writer=True)
        sampling = {'num_return_sequences': content.n}
        if content.temperature:
            sampling.update(temperature=content.temperature, top_p=content.top_p, seed=content.seed)
        elif content.n > 1:
            raise InputError('n texts differ only if they are drawn: temperature is above 0')
        pipeline, stop = self.served.pipeline, content.stop
        self.job = service.writing_job(
            self.served,
            content.prompt,
            lambda ids: content.max_tokens,
            [stop] if isinstance(stop, str) else stop,
            stop_tokens=end_tokens(pipeline.block, pipeline.tokenizer),
            **sampling,
        )
        self._head = {
            'id': f'cmpl-{uuid.uuid4().hex}',
            'object': 'text_completion',
            'created': int(time.time()),
            'model': content.model,
        }

    def call(self):
        """Return the `Call`."""
        events = self.events if self._content.stream else None
        return Call(self.served, self.job, self.whole, events)

    def whole(self, outputs):
        """Return the answer."""
        choices = []
        for index, written in enumerate(self.job.written):
            text = self._start(index) + ''.join(token.text for token in written)
            choices.append(_choice(index, text, written[-1].finish))
        return {**self._head, 'choices': choices, 'usage': self._usage()}

    async def events(self, tokens):
        """Yield the answer as server-sent events."""
        is_new = [True] * self.job.size
        try:
            async for token in tokens:
                index = token.sequence
                text = token.text
                if is_new[index]:
                    text, is_new[index] = self._start(index) + text, False
                choice = _choice(index, text, token.finish)
                yield f'data: {json.dumps({**self._head, "choices": [choice]})}\n\n'
            if self._content.stream_options.include_usage:
                event = {**self._head, 'choices': [], 'usage': self._usage()}
                yield f'data: {json.dumps(event)}\n\n'
            yield 'data: [DONE]\n\n'
        except Exception as error:
            message = ' '.join(str(error).split()) or type(error).__name__
            event = {'error': {'message': message, 'type': 'server_error', 'code': None}}
            yield f'data: {json.dumps(event)}\n\n'

    def _start(self, index):
        """Return the text before a sequence: its prompt, if the request asks for it."""
        if not self._content.echo:
            return ''
        return self._content.prompt[index // self._content.n]

    def _usage(self):
        prompt = sum(map(len, self.job.prompts))
        completion = sum(map(len, self.job.written))
        return {
            'prompt_tokens': prompt,
            'completion_tokens': completion,
            'total_tokens': prompt + completion,
        }


def _choice(index, text, finish):
    return {'index': index, 'text': text, 'logprobs': None, 'finish_reason': finish}
