"""The server's application: its models and routes, and what every request passes."""

import asyncio
import concurrent.futures
import contextlib
import hmac
import json
import logging
import re
import threading
import time
import types
import uuid

from ...errors import InputError, MissingExtraError, UnknownNameError, ZooError
from ..pipeline_base import TooLargeError
from . import huggingface, openai_api, page
from .models import LoadingError, Models, NoSuchModelError
from .service import Service, error_content
from .settings import Settings
from .worker import ClosedError, OverloadedError

_log, _access = logging.getLogger(__name__), logging.getLogger('model_zoo.access')
_REQUEST_ID = re.compile(rb'[\x21-\x7e]{1,128}')

#: paths that need no key
OPEN_PATHS = ('/health', '/ready', '/openapi.json', *page.PATHS.values())
#: tasks whose models read two texts at once
PAIR_TASKS = {
    'zero-shot-classification',
    'question-answering',
    'next-sentence',
    'multiple-choice',
    'rerank',
}
#: errors and their HTTP status; the first that fits counts
STATUSES = (
    (NoSuchModelError, 404),
    (TooLargeError, 413),
    ((InputError, UnknownNameError), 400),
    (OverloadedError, 429),
    ((ClosedError, LoadingError), 503),
    ((TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError), 504),
)
PROJECT = 'gluon-transformer-zoo'
DESCRIPTION = """
Models of gluon-transformer-zoo. With an API key, requests have the header
`Authorization: Bearer KEY`. Errors are JSON with one line: `{"error": "..."}`.
"""


def build_app(models, settings=None, later=types.MappingProxyType({})):
    """Return the ASGI application that serves pipelines; needs the extra ``serve``.

    Each model has its own thread, which makes batches of the texts of all requests. The threads run
    from now on; at the end of the application's lifespan, accepted requests are answered and the
    threads end. `models` has pipelines by the names that requests use. `later` has functions that
    open further ones while these answer; until then requests for them have status 503.

    Examples
    --------
    Run ``uvicorn my_file:app`` with this in ``my_file.py``::

        app = build_app({'sentiment': model_zoo.pipeline('output_dir/sentiment/best_model')})
    """
    MissingExtraError.check('serve', 'fastapi', 'prometheus_client')
    import fastapi
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    settings, metrics = settings or Settings(), Metrics()
    models = Models(models, settings, metrics, later)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        threading.Thread(target=models.open_later, daemon=True).start()
        yield
        models.close()

    about = {'title': PROJECT, 'version': '1', 'description': DESCRIPTION}
    pages = {'docs_url': None, 'redoc_url': None}  # which need a network
    app = fastapi.FastAPI(lifespan=lifespan, **about, **pages)
    app.state.models = models
    hosts = settings.allowed_hosts
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    app.add_middleware(Gate, settings=settings, metrics=metrics)
    _add_errors(app)
    _add_state(app, models, metrics)
    service = Service(models, settings)
    for routes in (huggingface, openai_api, page):
        routes.add_routes(app, service)
    return app


def _add_errors(app):
    """Answer errors with JSON and their status; `Gate` answers those that are left."""
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    @app.exception_handler(ZooError)
    @app.exception_handler(TimeoutError)
    async def known(request, error):
        return error_response(request.url.path, error)

    @app.exception_handler(HTTPException)
    async def http(request, error):
        path, message = request.url.path, error.detail
        if error.status_code in (404, 405):
            message = f'no route {request.method} {path:.80}; GET /openapi.json lists the routes'
        return error_response(path, message, error.status_code, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request, error):
        return error_response(request.url.path, 'the client has gone', 499)  # for the counters


def _add_state(app, models, metrics):
    """Add the routes about the server itself."""
    from fastapi.responses import JSONResponse, Response
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    @app.get('/health', tags=['server'])
    async def health():
        """Status 200: the server answers, with these models."""
        return {'status': 'ok', 'models': [served.name for served in models]}

    @app.get('/ready', tags=['server'])
    async def ready():
        """Status 200 if all models answer, else 503; the state of each model."""
        states = {**{served.name: 'ready' for served in models}, **models.waiting}
        content = {'status': 'loading' if models.waiting else 'ready', 'models': states}
        if 'failed' in states.values():
            content['status'] = 'failed'
        return JSONResponse(content, 503 if models.waiting else 200)

    @app.get('/metrics', tags=['server'])
    async def counters():
        """Counters, for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get('/v1/models', tags=['server'])
    async def all_models():
        """The models and their tasks; ``id`` is the name that requests use."""
        return {'object': 'list', 'data': [describe(served) for served in models]}

    @app.get('/v1/models/{name:path}', tags=['server'])
    async def model(name: str):
        """One model."""
        return describe(models.get(name))


def describe(served):
    """Return the entry of a model in ``/v1/models``."""
    pipeline = served.pipeline
    extras = pipeline.block.config.extras
    description = {
        'id': served.name,
        'object': 'model',
        'created': served.created,
        'owned_by': 'gluon-transformer-zoo',
        'task': pipeline.task,
        'tasks': served.tasks,
        'text_pairs': not PAIR_TASKS.isdisjoint(served.tasks) or bool(extras.get('text_pairs')),
        'max_length': pipeline.max_length,
        'engine': pipeline.engine.name,
        'example': served.example,
    }
    if pipeline.task in ('text-classification', 'token-classification'):
        description['labels'] = pipeline.labels
        description['is_regression'] = pipeline.is_regression
    if pipeline.task == 'fill-mask':
        description['mask_token'] = pipeline.tokenizer.mask_token
    return description


def error_response(path, error, status=None, headers=None):
    """Return the response for an error, as the clients of a path expect it."""
    from starlette.responses import Response

    if status is None:  # 500 is for unexpected errors
        status = next((code for known, code in STATUSES if isinstance(error, known)), 500)
    if status == 500 and not isinstance(error, ZooError):
        error = f'the server failed: {type(error).__name__}'
    if status == 429:
        headers = {'Retry-After': '1'}
    if status == 413:  # a part of the request may be unread
        headers = {'Connection': 'close'}
    body = json.dumps(error_content(path, str(error), status))
    return Response(body, status, headers, media_type='application/json')


class Gate:
    """ASGI middleware that counts and logs requests, and refuses those without the key.

    Each answer has the header ``X-Request-Id``: the request's own, or a new one.
    """

    def __init__(self, app, settings, metrics):
        self.app, self._key, self._metrics = app, settings.api_key, metrics
        self._logs = settings.access_log

    async def __call__(self, scope, receive, send):
        if scope['type'] != 'http':
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), None
        number = dict(scope['headers']).get(b'x-request-id', b'')
        if not _REQUEST_ID.fullmatch(number):
            number = uuid.uuid4().hex.encode()

        async def watched_send(message):
            nonlocal status
            status = message.get('status', status)
            if message['type'] == 'http.response.start':
                headers = [*message.get('headers', ()), (b'x-request-id', number)]
                message = {**message, 'headers': headers}
            await send(message)

        try:
            app = self.app
            if not self._has_key(scope):
                error = 'the API key is missing or wrong: send "Authorization: Bearer KEY"'
                headers = {'WWW-Authenticate': 'Bearer'}
                app = error_response(scope['path'], error, 401, headers)
            await app(scope, receive, watched_send)
        except Exception as error:  # uvicorn would log it again, if it were raised
            _log.exception('%s %s failed', scope['method'], scope['path'])
            if status is None:
                await error_response(scope['path'], error, 500)(scope, receive, watched_send)
        finally:
            route = getattr(scope.get('route'), 'path', 'unknown')
            self._metrics.requests.labels(route, status or 500).inc()
            seconds = time.perf_counter() - begin
            self._metrics.seconds.labels(route).observe(seconds)
            if self._logs:
                client, *_ = scope.get('client') or ['-']
                request = f'{client} {scope["method"]} {scope["path"]!a:.200}'
                state, number = status or 500, number.decode()
                _access.info('%s %d %.0f ms, request %s', request, state, seconds * 1000, number)

    def _has_key(self, scope):
        from starlette.datastructures import Headers

        if self._key is None or scope['path'] in OPEN_PATHS:
            return True
        headers = Headers(scope=scope)
        given = headers.get('authorization', '')
        given = given[7:] if given[:7].lower() == 'bearer ' else headers.get('x-api-key', '')
        # as Latin-1 a header's bytes are what the client sent: most send UTF-8
        return hmac.compare_digest(given.strip().encode('latin-1'), self._key.encode())


SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server."""

    def __init__(self):
        import prometheus_client as prometheus

        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        prometheus.PlatformCollector(registry=self.registry)

        def add(metric, name, help, labels=('model',), **options):
            return metric(f'zoo_{name}', help, labels, registry=self.registry, **options)

        counter, histogram = prometheus.Counter, prometheus.Histogram
        text = 'Requests by route and HTTP status.'
        self.requests = add(counter, 'requests', text, ['route', 'status'])
        text = 'Seconds from a request to the end of its answer.'
        self.seconds = add(histogram, 'request_seconds', text, ['route'], buckets=SECONDS)
        self._rows = add(histogram, 'batch_rows', 'Rows of a batch.', buckets=ROWS)
        text = 'Seconds of a batch.'
        self._batch_seconds = add(histogram, 'batch_seconds', text, buckets=SECONDS)
        text = 'Seconds that a request waits for its model.'
        self.waits = add(histogram, 'wait_seconds', text, buckets=SECONDS)
        text = 'Tokens that models have read, or a language model written.'
        self.tokens = add(counter, 'tokens', text)
        self._padding = add(counter, 'padding_tokens', 'Tokens of padding that models have read.')
        text = 'Requests that are accepted and unanswered.'
        self.queue = add(prometheus.Gauge, 'queue', text)

    def count_batch(self, model, lengths, seconds):
        """Count a batch of rows with these lengths."""
        self._rows.labels(model).observe(len(lengths))
        self._batch_seconds.labels(model).observe(seconds)
        self.tokens.labels(model).inc(sum(lengths))
        self._padding.labels(model).inc(len(lengths) * max(lengths) - sum(lengths))
