"""The server's application: its models, limits and routes."""

import contextlib
import importlib.metadata
import logging

from ...errors import ZooError
from . import huggingface, open_inference, openai_api, page
from .errors import check_extra
from .gate import Gate, error_response
from .metrics import Metrics
from .models import Models
from .service import Service
from .settings import Settings

__all__ = ['build_app']

_log = logging.getLogger(__name__)

PROJECT = 'gluon-transformer-zoo'
DESCRIPTION = """
Models of gluon-transformer-zoo. With an API key, requests have the header
`Authorization: Bearer KEY`. Errors are JSON with one line: `{"error": "..."}`.
"""


def build_app(models, settings=None):
    """The ASGI application that serves pipelines; needs the extra ``serve``.

    Each model has a thread of its own, which makes batches of the texts of all requests. The
    threads run from now on; the end of the application's lifespan answers what is accepted and ends
    them.

    Parameters
    ----------
    models : dict of str to Pipeline
        By the names that requests use.
    settings : Settings, optional

    Returns
    -------
    fastapi.FastAPI
        ``app.state.service`` is its `Service`.

    Raises
    ------
    MissingExtraError
        If FastAPI or prometheus_client isn't installed.

    Examples
    --------
    Run ``uvicorn my_file:app`` with this in ``my_file.py``::

        app = build_app({'sentiment': model_zoo.pipeline('output_dir/sentiment/best_model')})
    """
    check_extra('fastapi', 'prometheus_client')
    import fastapi

    settings = settings or Settings()
    metrics = Metrics()
    served = Models(models, settings, metrics)
    service = Service(served, settings, metrics)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        yield
        served.close()

    app = fastapi.FastAPI(
        title=PROJECT, version=_version(), description=DESCRIPTION, lifespan=lifespan,
        docs_url=None, redoc_url=None,  # these pages need a network
    )  # fmt: skip
    app.state.service = service
    app.add_middleware(Gate, settings=settings, metrics=metrics)
    _add_errors(app)
    _add_state(app, service)
    for routes in (huggingface, openai_api, open_inference, page):
        routes.add_routes(app, service)
    return app


def _version():
    try:
        return importlib.metadata.version(PROJECT)
    except importlib.metadata.PackageNotFoundError:  # a checkout that isn't installed
        return 'unknown'


def _add_errors(app):
    """Every error as JSON, with the status that it stands for."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    async def known(request, error):
        return error_response(request.url.path, error)

    async def http(request, error):
        return error_response(request.url.path, error.detail, error.status_code, error.headers)

    async def invalid(request, error):
        first = error.errors()[0]
        return error_response(request.url.path, f'{first["loc"][-1]}: {first["msg"]}', 400)

    async def gone(request, error):
        return error_response(request.url.path, 'the client has gone', 499)  # for the counters

    async def unexpected(request, error):
        _log.error('%s %s failed', request.method, request.url.path, exc_info=error)
        return error_response(request.url.path, error, 500)

    app.add_exception_handler(ZooError, known)
    app.add_exception_handler(TimeoutError, known)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(Exception, unexpected)


def _add_state(app, service):
    """The routes that tell of the server itself."""
    from fastapi.responses import JSONResponse, Response

    @app.get('/health', tags=['server'])
    async def health():
        """Status 200 if all models can be asked, else 503."""
        dead = [each.name for each in service.models if not each.worker.is_alive]
        if dead:
            return JSONResponse({'status': 'failed', 'models': dead}, 503)
        return {'status': 'ok', 'models': [each.name for each in service.models]}

    @app.get('/metrics', tags=['server'])
    async def metrics():
        """Counters, for Prometheus."""
        text, kind = service.metrics.text()
        return Response(text, media_type=kind)

    @app.get('/v1/models', tags=['server'])
    async def models():
        """The models and their tasks; ``id`` is the name that requests use."""
        return {'object': 'list', 'data': [describe(each) for each in service.models]}

    @app.get('/v1/models/{name:path}', tags=['server'])
    async def model(name: str):
        """One model."""
        return describe(service.models.get(name))


def describe(served):
    """What ``/v1/models`` tells of a model."""
    pipeline = served.pipeline
    told = {
        'id': served.name,
        'object': 'model',
        'created': served.created,
        'owned_by': 'gluon-transformer-zoo',
        'task': pipeline.task,
        'tasks': served.tasks,
        'max_length': pipeline.max_length,
        'engine': pipeline.engine.name,
    }
    if pipeline.task in ('text-classification', 'token-classification'):
        told['labels'] = pipeline.labels
    if pipeline.task == 'fill-mask':
        told['mask_token'] = pipeline.tokenizer.mask_token
    return told
