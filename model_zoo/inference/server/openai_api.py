"""``/v1/embeddings`` and ``/v1/completions``, as OpenAI's clients want them."""

import base64
import json
import time
import uuid

from ...errors import InputError
from . import bodies
from .service import Call


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request

    @app.post('/v1/embeddings', openapi_extra=bodies.documented(bodies.Embeddings), tags=['OpenAI'])
    async def embeddings(request: Request):
        """Vectors of texts, scaled to length 1."""
        return await service.respond(
            request, lambda body, meter: _embed(service, meter, bodies.Embeddings.of_json(body))
        )

    @app.post(
        '/v1/completions', openapi_extra=bodies.documented(bodies.Completions), tags=['OpenAI']
    )
    async def completions(request: Request):
        """Text that continues a prompt."""
        return await service.respond(
            request, lambda body, meter: _complete(service, meter, bodies.Completions.of_json(body))
        )


def _embed(service, meter, content):
    served = service.served(content.model, is_writer=False)
    pipeline, inputs = served.of_task('feature-extraction'), content.input
    is_float = content.encoding_format == 'float'
    units = pipeline.modules_for('model').units(pipeline.block.config.units)
    if (content.dimensions or 0) > units:
        raise InputError(f'is {content.dimensions}; vectors have {units}', field='dimensions')
    options = {'return_tensors': not is_float, 'pooling': 'model', 'normalize': True}
    options['truncate_dim'] = content.dimensions
    work = pipeline.prepare(inputs, options, meter)

    def finish(outputs):
        count = sum(len(row.input_ids) for row in work.all_rows)
        vectors = list(pipeline.finish(work, outputs))
        if not is_float:
            vectors = [base64.b64encode(v.astype('<f4').tobytes()).decode() for v in vectors]
        made = enumerate(vectors)
        data = [{'object': 'embedding', 'index': index, 'embedding': each} for index, each in made]
        usage = {'prompt_tokens': count, 'total_tokens': count}
        return {'object': 'list', 'data': data, 'model': content.model, 'usage': usage}

    return Call(served, work, finish)


def _complete(service, meter, content):
    """Return the `Call` that continues prompts."""
    served = service.served(content.model, is_writer=True)
    checked = served.pipeline.checked(content.of_pipeline, content.usual)
    stop = [content.stop] if isinstance(content.stop, str) else content.stop
    job = service.writing_job(served, content.prompt, checked, stop, meter)
    head = {'id': f'cmpl-{uuid.uuid4().hex}', 'object': 'text_completion'}
    head.update(created=int(time.time()), model=content.model)

    def choice(index, text, finish, is_first=True):
        if is_first and content.echo:
            text = content.prompt[index // job.sequences] + text
        return {'index': index, 'text': text, 'logprobs': None, 'finish_reason': finish}

    def usage():
        prompt, written = sum(map(len, job.prompts)), sum(map(len, job.written))
        total = prompt + written
        return {'prompt_tokens': prompt, 'completion_tokens': written, 'total_tokens': total}

    def finish(outputs):
        texts, ends = [text.text for text in job.texts], [each[-1].finish for each in job.written]
        choices = list(map(choice, range(len(texts)), texts, ends))
        return {**head, 'choices': choices, 'usage': usage()}

    async def events(tokens):
        async for token in tokens:
            new = choice(token.sequence, token.text, token.finish, token.number == 1)
            yield f'data: {json.dumps({**head, "choices": [new]})}\n\n'
        if content.stream_options.get('include_usage'):
            yield f'data: {json.dumps({**head, "choices": [], "usage": usage()})}\n\n'
        yield 'data: [DONE]\n\n'

    return Call(served, job, finish, events if content.stream else None)
