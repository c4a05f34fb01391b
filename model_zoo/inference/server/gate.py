"""What every request passes: the key, the size of its body, the counters."""

import hmac
import json
import time

from ...errors import ZooError
from . import page
from .errors import TooLargeError, status_of

__all__ = ['Gate', 'error_body', 'error_response']

#: paths that need no key
OPEN_PATHS = ('/health', '/v2/health/live', '/v2/health/ready', '/docs', '/openapi.json',
              *page.PATHS.values())  # fmt: skip


def error_body(path, message, status):
    """An error as the clients of a path expect it.

    Parameters
    ----------
    path, message : str
    status : int

    Returns
    -------
    bytes
        JSON.
    """
    message = ' '.join(str(message).split())
    if path.startswith('/v1/'):
        kinds = {401: 'authentication_error', 404: 'not_found_error', 429: 'rate_limit_error'}
        kind = kinds.get(status, 'invalid_request_error' if status < 500 else 'server_error')
        message = {'message': message, 'type': kind, 'param': None, 'code': status}
    return json.dumps({'error': message}, ensure_ascii=False).encode()


def error_response(path, error, status=None, headers=None):
    """The response for an error.

    Parameters
    ----------
    path : str
    error : Exception or str
    status : int, optional
        Default: that of the error's class.
    headers : dict, optional

    Returns
    -------
    starlette.responses.Response
    """
    from starlette.responses import Response

    if status is None:
        status = status_of(error)
    if status == 500 and not isinstance(error, (str, ZooError)):  # what nobody expects
        error = f'the server failed: {type(error).__name__}'
    wait = getattr(error, 'retry_after', None)
    if wait is not None:
        headers = {'Retry-After': str(wait)}
    body = error_body(path, error, status)
    return Response(body, status, headers, media_type='application/json')


class Gate:
    """ASGI middleware around a server's application.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    metrics : Metrics
    """

    def __init__(self, app, settings, metrics):
        self.app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope, receive, send):
        if scope['type'] != 'http':
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def watched_send(message):
            nonlocal status
            if message['type'] == 'http.response.start':
                status = message['status']
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await _refuse(scope, watched_send, *refusal)
            else:
                await self.app(scope, self._limited(receive), watched_send)
        finally:
            route = getattr(scope.get('route'), 'path', 'unknown')
            self._metrics.count_request(route, status, time.perf_counter() - begin)

    def _refusal(self, scope):
        """Status and message of a request that isn't even read."""
        headers = dict(scope['headers'])
        path = scope['path']
        if self._settings.api_key is not None and path not in OPEN_PATHS:
            given = headers.get(b'authorization', b'')
            given = given[7:] if given[:7].lower() == b'bearer ' else headers.get(b'x-api-key', b'')
            if not hmac.compare_digest(given.strip(), self._settings.api_key.encode()):
                return 401, 'the API key is missing or wrong: send "Authorization: Bearer KEY"'
        length = headers.get(b'content-length', b'')
        if length.isdigit() and int(length) > self._settings.max_body:
            return 413, self._too_large()
        return None

    def _too_large(self):
        return f'the request is larger than {self._settings.max_body} bytes'

    def _limited(self, receive):
        """`receive` with a limit for bodies that don't tell their length."""
        size = 0

        async def receive_limited():
            nonlocal size
            message = await receive()
            size += len(message.get('body', b''))
            if size > self._settings.max_body:
                raise TooLargeError(self._too_large())
            return message

        return receive_limited


async def _refuse(scope, send, status, message):
    body = error_body(scope['path'], message, status)
    headers = [(b'content-type', b'application/json'), (b'content-length', b'%d' % len(body))]
    if status == 401:
        headers.append((b'www-authenticate', b'Bearer'))
    if status == 413:
        headers.append((b'connection', b'close'))  # the body is left unread
    await send({'type': 'http.response.start', 'status': status, 'headers': headers})
    await send({'type': 'http.response.body', 'body': body})
