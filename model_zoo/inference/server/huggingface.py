"""``POST /models/NAME``: the payloads of Hugging Face's inference services."""

import json

from ...errors import InputError
from . import bodies
from .service import Call


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request

    extra = bodies.documented(bodies.HuggingFace)

    @app.post('/models/{name:path}', openapi_extra=extra, tags=['Hugging Face'])
    async def infer(name: str, request: Request):
        """Results of one text or of several, as Hugging Face's inference services return them."""

        def prepare(body, meter):
            content, (model, task) = bodies.HuggingFace.of_json(body), _split(name, service.models)
            if service.models.get(model).is_writer:
                options = bodies.Writing.read(content.all_parameters)
                return _writing_call(service, meter, model, content.inputs, options, content.stream)
            return _call(service, meter, model, task, content.inputs, content.all_parameters)

        return await service.respond(request, prepare)


def _split(path, models):
    """Return the model's name, and the task if the path has one: NAME/pipeline/TASK."""
    name, _, task = path.rpartition('/pipeline/')
    known = {served.name for served in models}
    return (name, task) if path not in known and name in known else (path, None)


def _call(service, meter, name, task, inputs, options):
    first = inputs[0] if isinstance(inputs, list) and inputs else inputs
    if task is None and 'candidate_labels' in options:
        task = 'zero-shot-classification'
    elif task is None and isinstance(first, dict) and 'source_sentence' in first:
        task = 'sentence-similarity'
    served = service.served(name, is_writer=False)
    pipeline = served.of_task(task)
    if pipeline.task == 'text-classification':
        options.setdefault('top_k', None)  # Hugging Face's default is all labels
    is_list, is_nested = isinstance(inputs, list), pipeline.task == 'text-classification'
    if pipeline.task == 'feature-extraction':
        options.pop('return_tensors', None)  # answers are JSON in any case
        if options.get('encoding_format') == 'float':
            del options['encoding_format']
        if 'dimensions' in options:
            options['truncate_dim'] = options.pop('dimensions')
        # as text-embeddings-inference, which nests the vector of one text, too
        if pipeline.modules is not None and 'pooling' not in options:
            is_nested, options['pooling'] = True, 'model'
    work = pipeline.prepare(inputs if is_list else [inputs], options, meter)

    def finish(outputs):
        results = list(pipeline.finish(work, outputs))
        if pipeline.task == 'zero-shot-classification':  # pairs, at Hugging Face
            pairs = [zip(result['labels'], result['scores']) for result in results]
            results = [[{'label': name, 'score': score} for name, score in each] for each in pairs]
        # Hugging Face nests a classifier's results, even for one text
        return results if is_list or is_nested else results[0]

    return Call(served, work, finish)


def _writing_call(service, meter, name, inputs, options, is_stream):
    """Return the `Call` that continues texts."""
    prompts = inputs if isinstance(inputs, list) else [inputs]
    if not prompts or not all(isinstance(prompt, str) for prompt in prompts):
        raise InputError('inputs must be a text or a list of texts')
    served = service.served(name, is_writer=True)
    checked = served.pipeline.checked(options.of_pipeline, {})
    job = service.writing_job(served, prompts, checked, options.stop, meter, options.truncate)
    sequences = job.sequences
    if is_stream and (sequences > 1 or not isinstance(inputs, str)):
        raise InputError('a stream continues one text: num_return_sequences is 1')

    def finish(outputs):
        results = []
        for number, written in enumerate(job.written):
            start = prompts[number // sequences] if checked['full'] else ''
            result = {'generated_text': start + job.texts[number].text}
            if options.details:
                result['details'] = _details(written, options.seed)
            results.append(result)
        groups = [results[n : n + sequences] for n in range(0, len(results), sequences)]
        return groups if isinstance(inputs, list) else groups[0]

    async def events(tokens):
        async for written in tokens:
            event = {'index': written.number, 'token': _token(written)}
            if written.finish:
                # unlike the whole answer, a stream has the prompt only if that is asked for
                is_full = options.of_pipeline.get('return_full_text', False)
                details = _details(job.written[0], options.seed)
                details['input_length'] = len(job.prompts[0])
                text = (inputs if is_full else '') + job.texts[0].text
                event.update(generated_text=text, details=details)
            yield f'data:{json.dumps(event)}\n\n'

    return Call(served, job, finish, events if is_stream else None)


def _details(written, seed):
    return {
        'finish_reason': 'length' if written[-1].finish == 'length' else 'stop_sequence',
        'generated_tokens': len(written),
        'seed': seed,
        'prefill': [],
        'tokens': [_token(token) for token in written],
    }


def _token(written):
    of_both = {'id': written.token, 'text': written.text}
    return {**of_both, 'logprob': written.log_prob, 'special': False}
