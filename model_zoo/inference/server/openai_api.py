"""``/v1/embeddings`` and ``/v1/completions``, as OpenAI's clients want them."""

import base64
import json
import time
import uuid

import numpy as np

from ...errors import InputError
from ..pipeline import Row, Work
from .payload import read_object, take
from .service import check_ids

__all__ = ['add_routes']

#: fields that would change the result and aren't supported, with the values that change nothing
NOTHING = {
    'suffix': (None, ''), 'best_of': (None, 1), 'presence_penalty': (None, 0, 0.0),
    'frequency_penalty': (None, 0, 0.0), 'logit_bias': (None, {}), 'logprobs': (None, 0),
}  # fmt: skip
MAX_TOKENS = 16  # theirs
EMBEDDINGS = {
    'type': 'object',
    'required': ['model', 'input'],
    'properties': {
        'model': {'type': 'string'},
        'input': {'description': 'a text, a list of texts, token ids, or a list of those'},
        'encoding_format': {'enum': ['float', 'base64'], 'default': 'float'},
        'dimensions': {'type': 'integer', 'description': 'refused, unless the model has them'},
    },
    'example': {'model': 'minilm', 'input': ['A cat sleeps.', 'A kitten is dozing.']},
}
COMPLETIONS = {
    'type': 'object',
    'required': ['model', 'prompt'],
    'properties': {
        'model': {'type': 'string'},
        'prompt': {'description': 'a text, a list of texts, token ids, or a list of those'},
        'max_tokens': {'type': 'integer', 'default': MAX_TOKENS},
        'temperature': {'type': 'number', 'default': 1, 'description': '0: the likeliest token'},
        'top_p': {'type': 'number', 'default': 1},
        'n': {'type': 'integer', 'default': 1},
        'seed': {'type': 'integer'},
        'stop': {'description': 'a text, or a list of texts, that end the output'},
        'stream': {'type': 'boolean', 'default': False},
        'echo': {'type': 'boolean', 'default': False, 'description': 'the prompt comes first'},
        'logprobs': {'type': 'integer', 'description': "0: those of the output's tokens"},
    },
    'example': {'model': 'gpt2', 'prompt': 'Once upon a time', 'max_tokens': 20},
}


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request
    from fastapi.responses import Response, StreamingResponse

    def body(schema):
        content = {'application/json': {'schema': schema}}
        return {'requestBody': {'content': content, 'required': True}}

    @app.post('/v1/embeddings', openapi_extra=body(EMBEDDINGS), tags=['OpenAI'])
    async def embeddings(request: Request):
        """Vectors of texts, scaled to length 1."""
        result = await _embed(service, read_object(await request.body()))
        return Response(json.dumps(result), media_type='application/json')

    @app.post('/v1/completions', openapi_extra=body(COMPLETIONS), tags=['OpenAI'])
    async def completions(request: Request):
        """Text that continues a prompt."""
        content = read_object(await request.body())
        if take(content, 'stream', bool, False):
            tokens, on_token = service.token_queue()
            completion = _Completion(service, content, on_token)
            job = service.submit(completion.model, completion.make_job)
            events = completion.events(job, service.stream(job, tokens))
            return StreamingResponse(events, media_type='text/event-stream')
        completion = _Completion(service, content)
        job = await service.write(completion.model, completion.make_job)
        return Response(json.dumps(completion.whole(job)), media_type='application/json')


def _inputs(content, name):
    """The texts or lists of ids of a field, as a list."""
    value = take(content, name, (str, list))
    if isinstance(value, str):
        return [value]
    if value and all(isinstance(each, int) for each in value):
        return [value]
    if not value or not (
        all(isinstance(each, str) for each in value)
        or all(isinstance(each, list) for each in value)
    ):
        raise InputError(f'{name} must be a text, token ids, or a list of texts or of token ids')
    return value


async def _embed(service, content):
    name = take(content, 'model', str)
    inputs = _inputs(content, 'input')
    encoding = take(content, 'encoding_format', str, 'float')
    if encoding not in ('float', 'base64'):
        raise InputError(f"encoding_format is {encoding!r}; it must be 'float' or 'base64'")
    options = {'return_tensors': True, 'pooling': 'model', 'normalize': True}

    def prepare(served, pipeline):
        if isinstance(inputs[0], str):
            return pipeline.prepare(inputs, **options)
        rows = [[_row(pipeline, ids)] for ids in inputs]
        return Work(inputs, rows, pipeline.prepare([], **options).options)

    def finish(served, pipeline, work, outputs):
        count = sum(len(row.input_ids) for row in work.all_rows)
        return list(pipeline.finish(work, outputs)), count

    vectors, count = await service.run(name, inputs, prepare, finish, 'feature-extraction')
    wanted = take(content, 'dimensions', int, len(vectors[0]))
    if wanted != len(vectors[0]):
        raise InputError(
            f'dimensions is {wanted}; the vectors of {name} have {len(vectors[0])}, and cannot be '
            'shortened'
        )
    data = [
        {'object': 'embedding', 'index': index, 'embedding': _encoded(vector, encoding)}
        for index, vector in enumerate(vectors)
    ]
    usage = {'prompt_tokens': count, 'total_tokens': count}
    return {'object': 'list', 'data': data, 'model': name, 'usage': usage}


def _row(pipeline, ids):
    """The row of token ids, which are taken as they are."""
    check_ids(ids, pipeline.block.config.vocab_size)
    if pipeline.max_length is not None and len(ids) > pipeline.max_length:
        raise InputError(
            f'a list has {len(ids)} token ids; the model takes {pipeline.max_length} at most'
        )
    ids = np.array(ids, np.int32)
    return Row(ids, np.zeros_like(ids))


def _encoded(vector, encoding):
    if encoding == 'float':
        return vector.tolist()
    return base64.b64encode(np.asarray(vector, '<f4').tobytes()).decode()


class _Completion:
    """A request for completions, checked."""

    def __init__(self, service, content, on_token=None):
        self._service, self._on_token = service, on_token
        self.model, self._prompts = take(content, 'model', str), _inputs(content, 'prompt')
        for name, values in NOTHING.items():
            if content.get(name) not in values or isinstance(content.get(name), bool):
                raise InputError(f'{name} {content[name]!r:.40}: this server cannot do that')
        self._has_logprobs = content.get('logprobs') is not None
        self._echo = take(content, 'echo', bool, False)
        if self._echo and self._has_logprobs:
            raise InputError('echo and logprobs exclude each other: prompts have no logprobs')
        temperature = take(content, 'temperature', (int, float), 1.0)
        self._sampling = {'sequences': take(content, 'n', int, 1)}
        if temperature == 0:
            if self._sampling['sequences'] > 1:
                raise InputError('n texts differ only if they are drawn: temperature is above 0')
        else:
            self._sampling.update(
                temperature=float(temperature),
                top_p=take(content, 'top_p', (int, float), None),
                seed=take(content, 'seed', int, None),
            )
        stop = take(content, 'stop', (str, list), [])
        self._stop = [stop] if isinstance(stop, str) else stop
        self._max_tokens = take(content, 'max_tokens', int, MAX_TOKENS)
        options = take(content, 'stream_options', dict, {})
        self._has_usage = take(options, 'include_usage', bool, False)
        self._head = {
            'id': f'cmpl-{uuid.uuid4().hex}', 'object': 'text_completion',
            'created': int(time.time()), 'model': self.model,
        }  # fmt: skip

    def make_job(self, served):
        """The `WritingJob`."""
        self._tokenizer = served.pipeline.tokenizer
        return self._service.writing_job(
            served, self._prompts, self._max_tokens, self._stop, self._on_token,
            stop_tokens=tuple(served.pipeline.end_tokens), **self._sampling,
        )  # fmt: skip

    def whole(self, job):
        """The answer."""
        choices = []
        for index, written in enumerate(job.written):
            text = self._start(index) + ''.join(each.text for each in written)
            choices.append(self._choice(index, text, written, written[-1].finish, 0))
        return {**self._head, 'choices': choices, 'usage': _usage(job)}

    async def events(self, job, stream):
        """The answer as server-sent events."""
        offsets = [0] * job.size
        is_new = [True] * job.size
        try:
            async for each in stream:
                index = each.sequence
                text = each.text
                if is_new[index]:
                    text, is_new[index] = self._start(index) + text, False
                choice = self._choice(index, text, [each], each.finish, offsets[index])
                offsets[index] += len(text)
                yield f'data: {json.dumps({**self._head, "choices": [choice]})}\n\n'
            if self._has_usage:
                event = {**self._head, 'choices': [], 'usage': _usage(job)}
                yield f'data: {json.dumps(event)}\n\n'
            yield 'data: [DONE]\n\n'
        except Exception as error:
            message = ' '.join(str(error).split()) or type(error).__name__
            event = {'error': {'message': message, 'type': 'server_error', 'code': None}}
            yield f'data: {json.dumps(event)}\n\n'

    def _start(self, index):
        """What comes before a sequence's text."""
        if not self._echo:
            return ''
        prompt = self._prompts[index // self._sampling['sequences']]
        return prompt if isinstance(prompt, str) else self._tokenizer.decode(prompt)

    def _choice(self, index, text, written, finish, offset):
        logprobs = None
        if self._has_logprobs:
            offsets = []
            for each in written:
                offsets.append(offset)
                offset += len(each.text)
            logprobs = {
                'tokens': [self._tokenizer.decode([each.token]) for each in written],
                'token_logprobs': [each.log_prob for each in written],
                'top_logprobs': None,
                'text_offset': offsets,
            }
        return {'index': index, 'text': text, 'logprobs': logprobs, 'finish_reason': finish}


def _usage(job):
    prompt = sum(map(len, job.prompts))
    completion = sum(map(len, job.written))
    return {
        'prompt_tokens': prompt, 'completion_tokens': completion,
        'total_tokens': prompt + completion,
    }  # fmt: skip
