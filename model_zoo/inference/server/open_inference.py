"""``/v2``: the Open Inference Protocol of KServe and Triton.

Texts are BYTES; the model's own ids go in, and its scores come out, as numbers.
"""

import json
import math
import struct

import numpy as np

from ...errors import InputError, UnknownNameError, reporting
from ...util.arrays import flatten
from ..pipeline import NUMBER
from . import huggingface
from .service import Call

#: the protocol's datatypes; BYTES is apart
TYPES = {
    'BOOL': '?', 'UINT8': 'u1', 'UINT16': '<u2', 'UINT32': '<u4', 'UINT64': '<u8', 'INT8': 'i1',
    'INT16': '<i2', 'INT32': '<i4', 'INT64': '<i8', 'FP16': '<f2', 'FP32': '<f4', 'FP64': '<f8',
}  # fmt: skip

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
#: the model's outputs for token ids
SCORES = {
    'text-classification': ['logits'],
    'token-classification': ['logits'],
    'fill-mask': ['logits'],
    'question-answering': ['start_logits', 'end_logits'],
    'feature-extraction': ['last_hidden_state'],
}
ID_INPUTS = 'input_ids', 'token_type_ids', 'attention_mask'
#: parameters of a request that aren't the pipeline's
IGNORED = (
    'binary_data_output', 'headers', 'priority', 'sequence_end', 'sequence_id', 'sequence_start',
    'timeout',
)  # fmt: skip


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request
    from fastapi.responses import JSONResponse

    from . import bodies

    models, body = service.models, bodies.documented(bodies.OpenInference)
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
        is_ready = not models.dead()
        return JSONResponse({'ready': is_ready}, 200 if is_ready else 503)

    @app.post('/v2/repository/index', **options)
    async def index():
        """The models."""
        return [{'name': served.name, 'version': '1', 'state': 'READY'} for served in models]

    async def model_ready(name: str):
        """Status 200 if the model can be asked, else 503."""
        is_ready = models.get(name).worker.is_alive
        return JSONResponse({'name': name, 'ready': is_ready}, 200 if is_ready else 503)

    async def infer(name: str, request: Request):
        """Results of tensors."""
        if request.headers.get('content-encoding', 'identity') != 'identity':
            raise InputError('the body must not be compressed')
        size = request.headers.get('inference-header-content-length')
        if size is not None and not (size.isdecimal() and len(size) < 16):
            raise InputError(f'Inference-Header-Content-Length is {size!r:.40}')
        size = None if size is None else int(size)
        return await service.respond(request, lambda data: _call(service, name, data, size))

    async def metadata(name: str):
        """Inputs and outputs of a model."""
        return _metadata(models.get(name))

    for path in ('/v2/models/{name:path}/versions/1', '/v2/models/{name:path}'):
        shown = {**options, 'include_in_schema': 'versions' not in path}
        app.get(f'{path}/ready', **shown)(model_ready)
        app.post(f'{path}/infer', openapi_extra=body, **shown)(infer)
        app.get(path, **shown)(metadata)


def _call(service, name, data, header_length):
    from fastapi.responses import Response

    content, arrays = read_request(data, header_length)
    options = {name: value for name, value in content.parameters.items()
               if name not in IGNORED and value is not None}  # fmt: skip

    def write(outputs):
        outputs, binary = _wanted(content, outputs)
        numbers = sum(values.size for key, values in outputs.items() if key not in binary)
        service.meter([]).add('answer', NUMBER * numbers)
        head = {'model_name': name, 'model_version': '1'}
        if content.id is not None:
            head['id'] = content.id
        answer, size = write_response(head, outputs, binary)
        if size is None:
            return answer
        headers = {'Inference-Header-Content-Length': str(size)}
        return Response(answer, headers=headers, media_type='application/octet-stream')

    if 'input_ids' in arrays:
        return _scores(service, name, options, arrays, write)
    served = service.models.get(name)
    task = served.pipeline.task
    if 'candidate_labels' in options:
        task = 'zero-shot-classification'
    elif task == 'feature-extraction' and 'text_pair' in arrays:
        task = 'sentence-similarity'
    items = _items(arrays, INPUTS.get(task, ['text']))
    if served.is_writer:
        from .bodies import Writing

        return huggingface.texts_call(
            service, name, items, Writing.of(options), write=lambda groups: write(
                {'generated_text': _texts([group[0]['generated_text'] for group in groups])})
        )  # fmt: skip
    if task == 'feature-extraction':
        options = {'pooling': 'model', 'normalize': True, **options, 'return_tensors': True}
        if options['pooling'] is None:
            raise InputError('pooling must be a name: texts have different numbers of tokens')
    served = service.served(name, is_writer=False)
    pipeline = served.of_task(task)
    work = pipeline.prepare(items, options, service.meter(items))
    return Call(served, work, lambda outputs: write(_outputs(task, pipeline.finish(work, outputs))))


def _outputs(task, results):
    """The arrays of a pipeline's results, by their names."""
    results = list(results)
    if task == 'feature-extraction':
        return {'embedding': np.stack(results).astype(np.float32)}
    if task == 'sentence-similarity':
        return {'score': np.array(results, np.float32)}
    outputs = {'result': _texts([json.dumps(result, ensure_ascii=False) for result in results])}
    if task in LABELLED:
        first = [result[0] if task == 'text-classification' else result for result in results]
        outputs['label'] = _texts([str(result['label']) for result in first])
        outputs['score'] = np.array([result['score'] for result in first], np.float32)
    return outputs


def _wanted(content, outputs):
    """The outputs that a request asks for, and the names of those that it wants as bytes."""
    as_bytes = content.parameters.get('binary_data_output') is True
    if not content.outputs:
        return outputs, set(outputs) if as_bytes else set()
    chosen, binary = {}, set()
    for wanted in content.outputs:
        UnknownNameError.check('output', wanted.name, outputs)
        chosen[wanted.name] = outputs[wanted.name]
        wants = wanted.parameters.binary_data
        if as_bytes if wants is None else wants:
            binary.add(wanted.name)
    return chosen, binary


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


def _scores(service, name, options, arrays, write):
    """The `Call` for the model's outputs of ids, padded with 0."""
    if options:
        raise InputError(f'input_ids take no parameters: {", ".join(options)}')
    served = service.models.get(name)
    pipeline = served.pipeline
    if served.is_writer or pipeline.task not in SCORES:
        raise InputError(f'{pipeline.task} takes texts, not input_ids')
    ids = arrays['input_ids']
    for key, array in arrays.items():
        UnknownNameError.check('input', key, ID_INPUTS)
        if array.dtype.kind not in 'iu' or array.ndim != 2 or array.shape != ids.shape:
            raise InputError(f'the input {key} must hold integers, of shape (batch, length)')
    if not ids.size:
        raise InputError('input_ids are empty')
    mask = arrays.get('attention_mask', np.ones_like(ids)) != 0
    lengths = mask.sum(axis=1)
    if not lengths.all() or (mask != (np.arange(ids.shape[1]) < lengths[:, None])).any():
        raise InputError('attention_mask must have ones, then zeros: padding is on the right')
    served, meter = service.served(name, is_writer=False), service.meter([])
    meter.add('answer', 4 * ids.size * _numbers(pipeline))
    types, width = arrays.get('token_type_ids', np.zeros_like(ids)), ids.shape[1]
    ids, types = ([row[:length].tolist() for row, length in zip(rows, lengths)]
                  for rows in (ids, types))  # fmt: skip
    work = pipeline.prepare_ids(ids, types, None, meter)

    def finish(outputs):
        scores = {}
        for number, output in enumerate(SCORES[pipeline.task]):
            rows = [row[number] for row in outputs]
            if pipeline.token_outputs:  # padding has 0
                rows = [np.pad(row, [(0, width - len(row)), *[(0, 0)] * (row.ndim - 1)])
                        for row in rows]  # fmt: skip
            scores[output] = np.stack(rows).astype(np.float32)
        return write(scores)

    return Call(served, work, finish)


def _numbers(pipeline):
    """About how many numbers the model's outputs have for a token."""
    config = pipeline.block.config
    return {'fill-mask': config.vocab_size, 'feature-extraction': config.units}.get(
        pipeline.task, len(pipeline.labels) + 2
    )


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


# -- tensors -----------------------------------------------------------------------------------


def read_request(body, header_length=None):
    """A request: its JSON, and its inputs as arrays."""
    from .bodies import OpenInference

    size = len(body) if header_length is None else header_length
    if not 0 <= size <= len(body):
        raise InputError(f'the header of {size} bytes is longer than the body, {len(body)}')
    content = OpenInference.read(body[:size])
    rest, arrays = memoryview(body)[size:], {}
    for tensor in content.inputs:
        name, length = tensor.name, tensor.parameters.binary_data_size
        if length is not None:
            if length > len(rest):
                raise InputError(f'the input {name} has fewer bytes than its binary_data_size')
            values, rest = _from_bytes(name, tensor.datatype, bytes(rest[:length])), rest[length:]
        else:
            values = _from_json(name, tensor.datatype, tensor.data or [])
        count = math.prod(tensor.shape)
        if len(values) != count:
            raise InputError(f'the input {name} has {len(values)} values, and its shape {count}')
        arrays[name] = values.reshape(tensor.shape)
    if len(rest):
        raise InputError(f'{len(rest)} bytes are left over behind the tensors')
    return content, arrays


def _from_bytes(name, datatype, data):
    if datatype != 'BYTES':
        dtype = np.dtype(TYPES[datatype])
        if len(data) % dtype.itemsize:
            raise InputError(f'the input {name} has {len(data)} bytes, no multiple of its datatype')
        return np.frombuffer(data, dtype)
    values, begin = [], 0
    while begin < len(data):
        if begin + 4 > len(data):
            raise InputError(f'the bytes of the input {name} end within a length')
        (length,) = struct.unpack_from('<I', data, begin)
        value = data[begin + 4 : begin + 4 + length]
        if len(value) != length:
            raise InputError(f'the bytes of the input {name} end within a text')
        try:
            values.append(value.decode('utf-8'))
        except UnicodeDecodeError:
            raise InputError(f'a text of the input {name} is not UTF-8') from None
        begin += 4 + length
    return _texts(values)


def _from_json(name, datatype, data):
    values = flatten(data)
    if datatype == 'BYTES':
        if not all(isinstance(value, str) for value in values):
            raise InputError(f'the data of the input {name} must be str')
        return _texts(values)
    if not all(isinstance(value, (bool, int, float)) for value in values):
        raise InputError(f'the data of the input {name} must be numbers')
    problem = f'the data of the input {name} is not {datatype}'
    with reporting(problem, errors=(ValueError, OverflowError)):
        return np.array(values, TYPES[datatype])


def write_response(head, outputs, binary):
    """A response."""
    tensors, parts = [], []
    for name, values in outputs.items():
        datatype = 'BYTES'
        if values.dtype != object:
            datatype = next(name for name, code in TYPES.items() if np.dtype(code) == values.dtype)
        tensor = {'name': name, 'datatype': datatype, 'shape': list(values.shape)}
        if name in binary:
            parts.append(_to_bytes(datatype, values))
            tensor['parameters'] = {'binary_data_size': len(parts[-1])}
        else:
            tensor['data'] = values.ravel().tolist()
        tensors.append(tensor)
    header = json.dumps({**head, 'outputs': tensors}).encode()
    return b''.join([header, *parts]), len(header) if parts else None


def _to_bytes(datatype, values):
    if datatype != 'BYTES':
        return values.astype(TYPES[datatype]).tobytes()
    encoded = [text.encode() for text in values.ravel()]
    return b''.join(struct.pack('<I', len(text)) + text for text in encoded)
