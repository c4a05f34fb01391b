"""The server on several processes or machines: replicas of the application on Ray Serve."""

import asyncio
import contextlib
import logging
import re
import signal
import socket
import threading
from types import SimpleNamespace

from ...errors import InputError, MissingExtraError
from ...util.executor import join_cluster
from .app import Gate, Metrics, error_response
from .run import serve
from .worker import ClosedError, OverloadedError

_log = logging.getLogger(__name__)

#: Replicas that may die during one request, which might be the cause.
ATTEMPTS = 4
#: Requests that a replica has under way, on average, before there is another one.
TARGET_REQUESTS = 16
UPSCALE_SECONDS, LOOK_BACK_SECONDS = 5, 12
HEALTH_SECONDS = 5
HEALTH_PATHS = ('/health',)
#: Bytes of the local cluster's store of objects; requests and answers are small.
STORE_BYTES = 128 * 2**20
PASSED_ON = ('http_version', 'scheme', 'method', 'path', 'raw_path', 'query_string', 'root_path',
             'headers', 'client', 'server')  # fmt: skip


class Replica:
    """The application in a process of Ray's; requests come as ASGI's scopes and bodies."""

    def __init__(self, open_app):
        logging.basicConfig(level=logging.INFO)
        self._stack = contextlib.ExitStack()  # stays open until the process ends
        self._app = self._stack.enter_context(open_app())

    def check_health(self):
        """Ray replaces a replica for which this raises."""
        dead = self._app.state.service.models.dead()
        if dead:
            raise ClosedError(f'models have died: {", ".join(dead)}')

    async def respond(self, scope, body):
        """Yield ``(status, headers, route)``, then the body's parts and whether more come."""
        messages, unread = asyncio.Queue(), [body]

        async def receive():
            if unread:
                return {'type': 'http.request', 'body': unread.pop(), 'more_body': False}
            return await asyncio.Event().wait()  # if the client goes, the task is cancelled

        scope = {'type': 'http', 'asgi': {'version': '3.0'}, **scope}
        task = asyncio.ensure_future(self._app(scope, receive, messages.put))
        task.add_done_callback(lambda _: messages.put_nowait(None))
        head = None
        try:
            while True:
                message = await messages.get()
                if message is None:  # the application has failed, before or within its answer
                    task.result()
                    return
                if message['type'] == 'http.response.start':
                    route = getattr(scope.get('route'), 'path', 'unknown')
                    head = message['status'], list(message['headers']), route
                    continue
                has_more = message.get('more_body', False)
                # the head comes with the first part: most answers are one message
                yield head, message.get('body', b''), has_more
                head = None
                if not has_more:
                    return
        finally:
            task.cancel()


class Ingress:
    """ASGI application that hands each request to a replica, and to another one if that dies."""

    def __init__(self, replicas, settings, metrics):
        self._replicas = replicas.options(stream=True)
        self._settings, self._metrics = settings, metrics

    async def __call__(self, scope, receive, send):
        from starlette.requests import Request
        from starlette.responses import Response

        if scope['type'] != 'http':
            return
        path = scope['path']
        if path == '/metrics':
            text, media_type = self._metrics.text()
            response = Response(text, media_type=media_type)
        else:
            seconds = HEALTH_SECONDS if path in HEALTH_PATHS else self._settings.timeout
            try:
                body = await Request(scope, receive).body()
                response = await asyncio.wait_for(self._ask(scope, body), seconds)
            except asyncio.TimeoutError:
                error = TimeoutError(f'no answer within {seconds:g} seconds')
                response = error_response(path, error)
            except Exception as error:
                response = error_response(path, error)
                if response.status_code == 500:
                    _log.exception('%s %s failed', scope['method'], path)
        await response(scope, receive, send)

    async def _ask(self, scope, body):
        """The response of a replica."""
        from ray.exceptions import RayError, RayTaskError
        from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
        from starlette.responses import Response, StreamingResponse

        passed = {name: scope[name] for name in PASSED_ON if name in scope}
        for _ in range(ATTEMPTS):
            parts = self._replicas.respond.remote(passed, body)
            try:
                (status, headers, route), part, has_more = await parts.__anext__()
                is_stream = (b'content-type', b'text/event-stream') in [
                    (name.lower(), value.split(b';')[0]) for name, value in headers
                ]
                if is_stream:
                    response = StreamingResponse(_events(scope['path'], part, has_more, parts))
                else:
                    content = [part]
                    if has_more:
                        content += [part async for _, part, _ in parts]
                    response = Response(b''.join(content))
                response.status_code, response.raw_headers = status, headers
                scope['route'] = SimpleNamespace(path=route)  # for the counters
                return response
            except asyncio.CancelledError:
                parts.cancel()
                raise
            except BackPressureError as error:
                raise OverloadedError('all replicas are busy: try again later', 1) from error
            except DeploymentUnavailableError as error:
                raise ClosedError('no replica runs') from error
            except RayTaskError:  # an error that the replica raised
                raise
            except RayError:
                _log.warning('a replica died; %s %s is asked again', scope['method'], scope['path'])
        raise ClosedError(f'{ATTEMPTS} replicas died, one after the other, with this request')


async def _events(path, part, has_more, parts):
    """A stream that has begun can't begin again: if its replica dies, the last event says so."""
    from ray.exceptions import RayError

    try:
        yield part
        while has_more:
            _, part, has_more = await parts.__anext__()
            yield part
    except (RayError, StopAsyncIteration) as error:
        _log.warning('a stream of %s has ended early: %s', path, type(error).__name__)
        failed = ClosedError('the replica that wrote this has died: ask again')
        yield b'data: ' + error_response(path, failed).body + b'\n\n'
    finally:
        if has_more:
            parts.cancel()


def serve_on_ray(open_app, bound, settings, replicas=(1, 4), cpus=1.0, address=None):
    """Serve replicas of an application until SIGTERM or Ctrl-C, then answer what is accepted.

    This process takes the requests, and keeps each one until it is answered: a replica that is
    killed loses none.

    Parameters
    ----------
    open_app : callable
        ``with open_app() as app`` is run in each replica; Ray must be able to pickle it. `app` is
        that of `build_app`, without an API key.
    settings : Settings
        `queue_size` is the most requests that wait for a replica, and that one has under way.
    replicas : (int, int)
        Fewest and most; between them the load decides.
    cpus : float
        Processors of a replica.
    address : str, optional
        Of a Ray cluster that this machine belongs to; by default there is one on this machine, as
        long as the server.
    """
    MissingExtraError.check('ray', 'ray', 'fastapi', 'uvicorn', 'prometheus_client')
    fewest, most = replicas
    if not 1 <= fewest <= most:
        raise InputError(f'{fewest} to {most} replicas are wanted: at least 1, and not fewer at '
                         'most')  # fmt: skip
    if address is not None and address.startswith('ray://'):  # its answers can't be streamed
        raise InputError(f'`ray` {address}: a server runs on a machine of the cluster: start it '
                         'there, with HOST:PORT or auto')  # fmt: skip
    ray, is_started = join_cluster(address or 'local', STORE_BYTES, shows_logs=True)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ray's would abort the process
    logging.getLogger('ray.serve').setLevel(logging.WARNING)
    try:
        from ray import serve as ray_serve

        have = ray.cluster_resources().get('CPU', 0)
        if fewest * cpus > have:
            raise InputError(
                f'{fewest} replicas of {cpus:g} processors are wanted; Ray has {have:g} processors'
            )
        logging_config = {'log_level': 'WARNING', 'enable_access_log': False}
        ray_serve.start(proxy_location='Disabled', logging_config=logging_config)
        deployment = ray_serve.deployment(
            name='Replica',
            max_ongoing_requests=settings.queue_size,
            max_queued_requests=settings.queue_size,
            health_check_period_s=2,
            graceful_shutdown_timeout_s=settings.timeout,
            ray_actor_options={
                'num_cpus': cpus,
                'runtime_env': {'env_vars': {'OMP_NUM_THREADS': str(max(1, int(cpus)))}},
            },
            logging_config=logging_config,
            autoscaling_config={
                'min_replicas': fewest, 'initial_replicas': fewest, 'max_replicas': most,
                'target_ongoing_requests': TARGET_REQUESTS,
                'upscale_delay_s': UPSCALE_SECONDS, 'look_back_period_s': LOOK_BACK_SECONDS,
            },
        )(Replica)  # fmt: skip
        name = f'zoo-{socket.gethostname()}-{bound.getsockname()[1]}'
        try:
            handle = _run(ray_serve, deployment.bind(open_app), name)
            _log.info('%d to %d replicas on Ray', fewest, most)
            metrics = Metrics()
            ingress = Ingress(handle, settings, metrics)
            serve(Gate(ingress, settings, metrics), bound, settings.timeout)
        finally:
            ray_serve.delete(name)
    finally:
        if is_started:
            ray.shutdown()


def _run(ray_serve, application, name):
    """The handle of an application, once its replicas have started."""
    try:
        return ray_serve.run(application, name=name, route_prefix=None)
    except RuntimeError as error:
        status = ray_serve.status().applications.get(name)
        texts = [deployment.message for deployment in status.deployments.values()] if status else []
        lines = '\n'.join([str(error), *texts]).strip().splitlines()  # the last is the cause
        cause = re.sub(r'^model_zoo\.errors\.\w+: ', '', lines[-1])
        raise InputError(f'no replica can be started: {cause}') from error
