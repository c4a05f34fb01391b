"""``POST /models/NAME``: the payloads of Hugging Face's inference services."""

import json

from ...errors import InputError, UnknownNameError
from .payload import read_object, take

__all__ = ['add_routes', 'write_texts']

#: fields of a request that are no parameters; `options` is about their machines
FIELDS = ('inputs', 'parameters', 'options', 'stream')
#: parameters of their text generation that do nothing when they have these values
NOTHING = {
    'adapter_id': (None,), 'best_of': (None, 1), 'decoder_input_details': (None, False),
    'frequency_penalty': (None, 0, 0.0), 'grammar': (None,), 'num_beams': (None, 1),
    'repetition_penalty': (None, 1, 1.0), 'top_n_tokens': (None, 0), 'truncate': (None,),
    'typical_p': (None, 1, 1.0), 'watermark': (None, False),
}  # fmt: skip
WRITING = {
    'details': bool, 'do_sample': bool, 'max_new_tokens': int, 'num_return_sequences': int,
    'return_full_text': bool, 'seed': int, 'stop': list, 'stop_at_end': bool,
    'temperature': (int, float), 'top_k': int, 'top_p': (int, float),
}  # fmt: skip

SCHEMA = {
    'type': 'object',
    'required': ['inputs'],
    'properties': {
        'inputs': {'description': 'a text, an object with texts, or a list of them'},
        'parameters': {'type': 'object', 'description': "options of the task's pipeline"},
        'stream': {'type': 'boolean', 'description': 'text generation: tokens as they come'},
    },
    'example': {'inputs': 'What a fine day.'},
}


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request
    from fastapi.responses import Response, StreamingResponse

    body = {'requestBody': {'content': {'application/json': {'schema': SCHEMA}}, 'required': True}}

    @app.post('/models/{name:path}', openapi_extra=body, tags=['Hugging Face'])
    async def infer(name: str, request: Request):
        """Results of one text or of several, as Hugging Face's inference services give them."""
        name, task = _split(name, service.models)
        content = read_object(await request.body())
        inputs = take(content, 'inputs', (str, list, dict))
        parameters = {k: v for k, v in content.items() if k not in FIELDS}
        parameters.update(take(content, 'parameters', dict, {}))
        if service.models.get(name).is_writer:
            if take(content, 'stream', bool, False):
                events = _stream(service, name, inputs, parameters)
                # so that what is refused has its status
                first = await events.__anext__()
                return StreamingResponse(_joined(first, events), media_type='text/event-stream')
            result = await write_texts(service, name, inputs, parameters)
        else:
            result = await _infer(service, name, task, inputs, parameters)
        return Response(json.dumps(result), media_type='application/json')


def _split(path, models):
    """The name of the model, and the task if the path has one: NAME/pipeline/TASK."""
    name, _, task = path.rpartition('/pipeline/')
    known = {served.name for served in models}
    return (name, task) if path not in known and name in known else (path, None)


async def _infer(service, name, task, inputs, parameters):
    first = inputs[0] if isinstance(inputs, list) and inputs else inputs
    if task is None and 'candidate_labels' in parameters:
        task = 'zero-shot-classification'
    elif task is None and isinstance(first, dict) and 'source_sentence' in first:
        task = 'sentence-similarity'
    pipeline = service.models.get(name).of_task(task)
    options = {key: value for key, value in parameters.items() if value is not None}
    if pipeline.task == 'text-classification':
        options.setdefault('top_k', None)  # there all labels are the default
    if pipeline.task == 'feature-extraction':
        if options.pop('truncate', True) is not True:
            raise InputError('truncate: a text that is too long is always cut')
        if 'return_tensors' in options:
            raise UnknownNameError.of('option of feature-extraction', 'return_tensors', ['pooling'])
    is_list = isinstance(inputs, list)
    results = await service.infer(name, inputs if is_list else [inputs], options, task)
    if is_list or pipeline.task == 'text-classification':  # which there is nested for one, too
        return results
    return results[0]


def _job_of(service, inputs, parameters, on_token=None):
    """A function that makes the `WritingJob`, and the checked parameters."""
    unknown = [name for name in parameters if name not in WRITING and name not in NOTHING]
    if unknown:
        raise UnknownNameError.of('option of text-generation', unknown[0], WRITING)
    for name, values in NOTHING.items():
        if parameters.get(name) not in values:
            raise InputError(f'{name} {parameters[name]!r:.40}: this server cannot do that')
    options = {name: take(parameters, name, kinds, None) for name, kinds in WRITING.items()}
    sampling = {name: options[name] for name in ('temperature', 'top_k', 'top_p')}
    is_drawn = options['do_sample']
    if is_drawn is None:  # as there: what shapes the distribution asks for drawing
        is_drawn = any(value is not None for value in sampling.values())
    if is_drawn:
        if sampling['temperature'] is None:
            sampling['temperature'] = 1.0
        if sampling['top_k'] is None:
            sampling['top_k'] = 50  # the pipeline's default
        sampling['seed'] = options['seed']
    else:
        sampling = {}
    prompts = inputs if isinstance(inputs, list) else [inputs]
    if not prompts or not all(isinstance(each, str) for each in prompts):
        raise InputError('inputs must be a text or a list of texts')

    def make_job(served):
        ends = served.pipeline.end_tokens if options['stop_at_end'] is not False else []
        return service.writing_job(
            served, prompts, 50 if options['max_new_tokens'] is None else options['max_new_tokens'],
            options['stop'] or (), on_token, stop_tokens=tuple(ends),
            sequences=options['num_return_sequences'] or 1, **sampling,
        )  # fmt: skip

    return make_job, options


async def write_texts(service, name, inputs, parameters):
    """Continue texts.

    Parameters
    ----------
    service : Service
    name : str
        Of the model.
    inputs : str or list of str
    parameters : dict
        Of the request.

    Returns
    -------
    list
        Of dict with ``generated_text``; for a list of texts a list for each.
    """
    make_job, options = _job_of(service, inputs, parameters)
    job = await service.write(name, make_job)
    sequences = job.sampling.sequences
    prompts = inputs if isinstance(inputs, list) else [inputs]
    results = []
    for place, written in enumerate(job.written):
        start = '' if options['return_full_text'] is False else prompts[place // sequences]
        result = {'generated_text': start + ''.join(each.text for each in written)}
        if options['details']:
            result['details'] = _details(written, options['seed'])
        results.append(result)
    groups = [results[n : n + sequences] for n in range(0, len(results), sequences)]
    return groups if isinstance(inputs, list) else groups[0]


def _details(written, seed):
    return {
        'finish_reason': 'length' if written[-1].finish == 'length' else 'stop_sequence',
        'generated_tokens': len(written),
        'seed': seed,
        'prefill': [],
        'tokens': [_token(each) for each in written],
    }


def _token(written):
    return {
        'id': written.token, 'text': written.text, 'logprob': written.log_prob, 'special': False
    }  # fmt: skip


async def _stream(service, name, inputs, parameters):
    if not isinstance(inputs, str):
        raise InputError('a stream continues one text')
    tokens, on_token = service.token_queue()
    make_job, options = _job_of(service, inputs, parameters, on_token)
    if (options['num_return_sequences'] or 1) != 1:
        raise InputError('a stream has one sequence: num_return_sequences is 1')
    job = service.submit(name, make_job)
    yield None
    try:
        async for written in service.stream(job, tokens):
            event = {'index': len(job.written[0]), 'token': _token(written)}
            if written.finish:
                text = ''.join(each.text for each in job.written[0])
                start = inputs if options['return_full_text'] is True else ''
                details = _details(job.written[0], options['seed'])
                details['input_length'] = len(job.prompts[0])
                event.update(generated_text=start + text, details=details)
            yield _event(event)
    except Exception as error:
        yield _event({'error': ' '.join(str(error).split()), 'error_type': type(error).__name__})


async def _joined(first, events):
    if first is not None:
        yield first
    async for event in events:
        yield event


def _event(content):
    return f'data:{json.dumps(content)}\n\n'
