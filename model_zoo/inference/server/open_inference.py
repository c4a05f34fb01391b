"""``/v2``: the Open Inference Protocol of KServe and Triton.

Texts are BYTES; the model's own ids go in, and its scores come out, as numbers.
"""

import json

import numpy as np

from ...errors import InputError, UnknownNameError
from ..pipeline import Row, Work
from . import huggingface
from .service import check_ids
from .tensors import read_request, write_response

__all__ = ['add_routes']

#: inputs of a task, all of shape (batch,); those in brackets may be left out
INPUTS = {
    'text-classification': ['text', '[text_pair]'],
    'zero-shot-classification': ['text'],
    'next-sentence': ['text', 'text_pair'],
    'sentence-similarity': ['text', 'text_pair'],
    'multiple-choice': ['text', 'choices'],
    'question-answering': ['question', 'context'],
}
#: tasks whose results have a label and its score, which are outputs, too
LABELLED = ('text-classification', 'next-sentence', 'multiple-choice')
#: what the model itself gives for token ids
SCORES = {
    'text-classification': ['logits'],
    'token-classification': ['logits'],
    'fill-mask': ['logits'],
    'question-answering': ['start_logits', 'end_logits'],
    'feature-extraction': ['last_hidden_state'],
}
ID_INPUTS = ('input_ids', '[token_type_ids]', '[attention_mask]')
#: parameters of a request that aren't the pipeline's
OTHERS = (
    'binary_data_output', 'headers', 'priority', 'sequence_end', 'sequence_id', 'sequence_start',
    'timeout',
)  # fmt: skip
SCHEMA = {
    'type': 'object',
    'required': ['inputs'],
    'properties': {
        'id': {'type': 'string'},
        'inputs': {'type': 'array', 'items': {'type': 'object'}},
        'outputs': {'type': 'array', 'items': {'type': 'object'}},
        'parameters': {'type': 'object', 'description': "options of the task's pipeline"},
    },
    'example': {
        'inputs': [{'name': 'text', 'datatype': 'BYTES', 'shape': [1], 'data': ['A fine day.']}]
    },
}


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request
    from fastapi.responses import JSONResponse, Response

    models = service.models
    body = {'requestBody': {'content': {'application/json': {'schema': SCHEMA}}, 'required': True}}
    options = {'tags': ['Open Inference Protocol']}

    @app.get('/v2', **options)
    async def server():
        """Name, version and extensions of the server."""
        return {
            'name': 'gluon-transformer-zoo',
            'version': app.version,
            'extensions': ['binary_tensor_data'],
        }

    @app.get('/v2/health/live', **options)
    async def live():
        """Whether the server answers."""
        return {'live': True}

    @app.get('/v2/health/ready', **options)
    async def ready():
        """Status 200 if all models can be asked, else 503."""
        is_ready = all(each.worker.is_alive for each in models)
        return JSONResponse({'ready': is_ready}, 200 if is_ready else 503)

    @app.post('/v2/repository/index', **options)
    async def index():
        """The models."""
        return [{'name': each.name, 'version': '1', 'state': 'READY'} for each in models]

    async def model_ready(name: str):
        """Status 200 if the model can be asked, else 503."""
        is_ready = models.get(name).worker.is_alive
        return JSONResponse({'name': name, 'ready': is_ready}, 200 if is_ready else 503)

    async def infer(name: str, request: Request):
        """Results of tensors."""
        if request.headers.get('content-encoding', 'identity') != 'identity':
            raise InputError('the body must not be compressed')
        size = request.headers.get('inference-header-content-length')
        if size is not None and not size.isdigit():
            raise InputError(f'Inference-Header-Content-Length is {size!r:.40}')
        content, arrays = read_request(await request.body(), None if size is None else int(size))
        outputs = await _infer(service, name, _options(content), arrays)
        outputs, binary = _wanted(content, outputs)
        head = {'model_name': name, 'model_version': '1'}
        if isinstance(content.get('id'), str):
            head['id'] = content['id']
        answer, size = write_response(head, outputs, binary)
        if size is None:
            return Response(answer, media_type='application/json')
        headers = {'Inference-Header-Content-Length': str(size)}
        return Response(answer, headers=headers, media_type='application/octet-stream')

    async def metadata(name: str):
        """Inputs and outputs of a model."""
        return _metadata(models.get(name))

    for path in ('/v2/models/{name:path}/versions/1', '/v2/models/{name:path}'):
        shown = {**options, 'include_in_schema': 'versions' not in path}
        app.get(f'{path}/ready', **shown)(model_ready)
        app.post(f'{path}/infer', openapi_extra=body, **shown)(infer)
        app.get(path, **shown)(metadata)


def _options(content):
    parameters = content.get('parameters') or {}
    if not isinstance(parameters, dict):
        raise InputError('parameters must be an object')
    return {name: value for name, value in parameters.items() if name not in OTHERS}


def _wanted(content, outputs):
    """The outputs that a request asks for, and the names of those that it wants as bytes."""
    asked = content.get('outputs')
    as_bytes = (content.get('parameters') or {}).get('binary_data_output', False)
    if not asked:
        return outputs, set(outputs) if as_bytes else set()
    chosen, binary = {}, set()
    for each in asked if isinstance(asked, list) else [asked]:
        name = each.get('name') if isinstance(each, dict) else each
        if name not in outputs:
            raise UnknownNameError.of('output', name, outputs)
        chosen[name] = outputs[name]
        if (each.get('parameters') or {}).get('binary_data', as_bytes):
            binary.add(name)
    return chosen, binary


async def _infer(service, name, options, arrays):
    """The outputs of a model, arrays by their names."""
    served = service.models.get(name)
    if 'input_ids' in arrays:
        return await _scores(service, served, options, arrays)
    task = served.pipeline.task
    if 'candidate_labels' in options:
        task = 'zero-shot-classification'
    elif task == 'feature-extraction' and 'text_pair' in arrays:
        task = 'sentence-similarity'
    items = _items(arrays, INPUTS.get(task, ['text']))
    if served.is_writer:
        groups = await huggingface.write_texts(service, name, items, options)
        return {'generated_text': _texts([group[0]['generated_text'] for group in groups])}
    if task == 'feature-extraction':
        own = {'pooling': 'model', 'normalize': True, **options, 'return_tensors': True}
        vectors = await service.infer(name, items, own, task)
        if own['pooling'] is None:
            raise InputError('pooling must be a name: texts have different numbers of tokens')
        return {'embedding': np.stack(vectors).astype(np.float32)}
    results = await service.infer(name, items, options, task)
    if task == 'sentence-similarity':
        return {'score': np.array(results, np.float32)}
    outputs = {'result': _texts([json.dumps(each, ensure_ascii=False) for each in results])}
    if task in LABELLED:
        first = [each[0] if task == 'text-classification' else each for each in results]
        outputs['label'] = _texts([str(each['label']) for each in first])
        outputs['score'] = np.array([each['score'] for each in first], np.float32)
    return outputs


def _texts(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _items(arrays, names):
    """The items of a pipeline, from arrays of texts."""
    required = [name for name in names if name[0] != '[']
    known = [name.strip('[]') for name in names]
    for name, array in arrays.items():
        if name not in known:
            raise UnknownNameError.of('input', name, [*known, 'input_ids'])
        if array.dtype != object:
            raise InputError(f'the input {name} must be BYTES')
    for name in required:
        if name not in arrays:
            raise InputError(f'the input {name} is missing')
    count = len(arrays[known[0]]) if arrays[known[0]].ndim else 0
    columns = {}
    for name, array in arrays.items():
        if name != 'choices':
            array = array.reshape(-1)  # (batch,) or (batch, 1)
        if not len(array) or len(array) != count:
            raise InputError(f'the input {name} must have the shape of {known[0]}, (batch,)')
        columns[name] = array.tolist()
    if known == ['text'] or list(columns) == ['text']:
        return columns['text']
    if {'text', 'text_pair'} == set(columns):
        return list(zip(columns['text'], columns['text_pair']))
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


async def _scores(service, served, options, arrays):
    """What the model gives for ids, padded with 0."""
    if options:
        raise InputError(f'input_ids take no parameters: {", ".join(options)}')
    if served.is_writer or served.pipeline.task not in SCORES:
        raise InputError(f'{served.pipeline.task} takes texts, not input_ids')
    for name in arrays:
        if f'[{name}]' not in ID_INPUTS and name != 'input_ids':
            raise UnknownNameError.of('input', name, [each.strip('[]') for each in ID_INPUTS])
    ids = arrays['input_ids']
    for name, array in arrays.items():
        if array.dtype.kind not in 'iu' or array.ndim != 2 or array.shape != ids.shape:
            raise InputError(f'the input {name} must hold integers, of shape (batch, length)')
    if not ids.size:
        raise InputError('input_ids are empty')
    types = arrays.get('token_type_ids', np.zeros_like(ids))
    lengths = _lengths(arrays.get('attention_mask', np.ones_like(ids)))

    def prepare(served, pipeline):
        limit = pipeline.max_length
        if limit is not None and ids.shape[1] > limit:
            raise InputError(f'input_ids have {ids.shape[1]} tokens; the model takes {limit}')
        kinds = getattr(pipeline.block.config, 'type_vocab_size', 2)
        rows = []
        for own, own_types, length in zip(ids, types, lengths):
            check_ids(own[:length].tolist(), pipeline.block.config.vocab_size)
            if own_types.min() < 0 or own_types.max() >= max(kinds, 1):
                raise InputError(f'token_type_ids must be from 0 to {kinds - 1}')
            about = np.arange(length)  # the places whose words a masked language model tells
            rows.append([Row(own[:length].astype('i4'), own_types[:length].astype('i4'), about)])
        return Work(list(ids), rows, {})

    def finish(served, pipeline, work, outputs):
        return outputs

    outputs = await service.run(served.name, [], prepare, finish)
    found = {}
    for number, name in enumerate(SCORES[served.pipeline.task]):
        rows = [row[number] for row in outputs]
        if served.pipeline.task != 'text-classification':  # something for each token
            rows = [_padded(row[:length], ids.shape[1]) for row, length in zip(rows, lengths)]
        found[name] = np.stack(rows).astype(np.float32)
    return found


def _lengths(mask):
    lengths = (mask != 0).sum(axis=1)
    if not lengths.all() or any(
        mask[row, length:].any() or not mask[row, :length].all()
        for row, length in enumerate(lengths)
    ):
        raise InputError('attention_mask must have ones, then zeros: padding is on the right')
    return lengths


def _padded(row, length):
    """What a row has for each token, filled up with 0."""
    return np.pad(row, [(0, length - len(row)), *[(0, 0)] * (row.ndim - 1)])


def _metadata(served):
    task = served.pipeline.task

    def tensors(names, datatype, shape):
        return [{'name': n.strip('[]'), 'datatype': datatype, 'shape': shape} for n in names]

    inputs = tensors(INPUTS.get(task, ['text']), 'BYTES', [-1])
    if served.is_writer:
        outputs = tensors(['generated_text'], 'BYTES', [-1])
    elif task in ('feature-extraction', 'sentence-similarity'):
        outputs = tensors(['embedding'], 'FP32', [-1, -1])
    else:
        outputs = tensors(['result'], 'BYTES', [-1])
        if task in LABELLED:
            outputs += tensors(['label'], 'BYTES', [-1]) + tensors(['score'], 'FP32', [-1])
    return {
        'name': served.name,
        'versions': ['1'],
        'platform': 'gluon-transformer-zoo',
        'inputs': inputs,
        'outputs': outputs,
    }
