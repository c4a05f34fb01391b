"""The server's page in a browser: its files, and the two answers that it alone needs."""

import asyncio
import concurrent.futures
import mimetypes
import pathlib

import mxnet as mx
import numpy as np

from ....analysis import attention_of
from ....errors import InputError
from .. import bodies
from ..service import Call
from ..worker import OverloadedError

FILES = pathlib.Path(__file__).parent / 'files'
_NAMES = sorted(path.name for path in FILES.iterdir())
#: paths of the files, by their names; they hold no data and need no key
PATHS = {name: '/' if name == 'index.html' else f'/page/{name}' for name in _NAMES}
HEADERS = {
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
}
#: most tokens of a text whose attentions are drawn
MOST_TOKENS = 48
#: most requests for attentions that wait; the model stands still for each
MOST_WAITING = 8


def add_routes(app, service):
    """Add the routes to a FastAPI application."""
    from fastapi import Request
    from fastapi.responses import Response

    waiting = asyncio.Semaphore(MOST_WAITING)
    # each waits for the model; in the threads that read requests they would hold all others
    threads = concurrent.futures.ThreadPoolExecutor(1, 'attention')

    def page_file(name):
        async def answer():
            return Response(content, headers=HEADERS, media_type=media_type)

        content, (media_type, _) = (FILES / name).read_bytes(), mimetypes.guess_type(name)
        return answer

    for name, path in PATHS.items():
        app.get(path, include_in_schema=False)(page_file(name))

    @app.post('/page/map', include_in_schema=False)
    async def sentence_map(request: Request):
        """Positions of sentences in the plane, and their similarities."""

        def prepare(body, meter):
            content = bodies.SentenceMap.of_json(body)
            served = service.served(content.model, is_writer=False)
            pipeline = served.of_task('feature-extraction')
            options = {'return_tensors': True, 'pooling': 'model', 'normalize': True}
            work = pipeline.prepare(content.texts, options, meter)
            return Call(served, work, lambda outputs: _map(pipeline.finish(work, outputs)))

        return await service.respond(request, prepare)

    @app.post('/page/attentions', include_in_schema=False)
    async def attentions(request: Request):
        """A text's tokens, and the attentions of each layer and head."""

        def prepare(body, meter):
            content = bodies.Attentions.of_json(body)
            served = service.models.get(content.model)
            if served.is_writer:
                raise InputError(f"{served.name} is not an encoder: its attention can't be shown")
            for text in (content.text, content.text_pair or ''):
                meter.add_text(text)
            return _attentions(served.pipeline, content.text, content.text_pair)

        if waiting.locked():
            raise OverloadedError('too many requests for attention at once: try again later')
        async with waiting:
            return await service.respond(request, prepare, threads)


def _map(vectors):
    vectors = np.stack(list(vectors))  # at least two
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return {
        # on their first two principal components
        'points': (left * sizes)[:, :2].round(4).tolist(),
        'similarities': (vectors @ vectors.T).astype(np.float64).round(6).tolist(),
    }


def _attentions(pipeline, text, pair):
    length = min(filter(None, (MOST_TOKENS, pipeline.max_length)))
    [encoding] = pipeline.tokenizer.encode_pairs([(text, pair)], length)
    base = pipeline.block.base
    ctx = next(iter(base.collect_params().values())).list_ctx()[0]
    numbers = encoding.input_ids, encoding.token_types
    inputs = (mx.nd.array([ids], ctx, 'int32') for ids in numbers)
    with pipeline.engine.lock:  # while its heads are watched a block is for one thread
        layers = attention_of(base, *inputs)
    return {
        'tokens': encoding.tokens,
        'cut': encoding.truncated > 0,
        'heads': [list(base.config.kept_heads(layer)) for layer in range(len(layers))],
        'attentions': [layer[0].astype(np.float64).round(3).tolist() for layer in layers],
    }
