"""A server as a process: its models, its socket, its connections, its end."""

import asyncio
import logging
import os
import pathlib
import resource
import signal
import socket
import threading
import time

from ...errors import InputError, MissingExtraError, reporting

_log = logging.getLogger(__name__)

MOST_HEAD = 1 << 16  # bytes of a request before its body
LOOK_SECONDS = 0.1  # between two looks at the connections


def name_models(models):
    """The names under which models are served.

    Each is a folder or a name by itself, or ``NAME=MODEL``. By itself a folder is served by its own
    name; ``best_model``, which trainings write, by the name of its parent folder.
    """
    named = {}
    for word in models:
        name, equals, model = word.partition('=')
        if not equals or os.path.exists(word):
            name, model = _default_name(word), word
        if not name or not model:
            raise InputError(f'{word!r} is not NAME=MODEL')
        if name in named:
            raise InputError(
                f'two models are called {name!r}, {named[name]!r} and {model!r}: give them names '
                'as NAME=MODEL'
            )
        named[name] = model
    return named


def _default_name(model):
    if not os.path.exists(model):
        return model
    path = pathlib.Path(model).resolve()
    if path.name == 'best_model':
        path = path.parent
    return path.stem if path.is_file() else path.name


def read_key(source):
    """The API key in a file, or in an environment variable that is given as ``env:NAME``."""
    if source.startswith('env:'):
        key = os.environ.get(source[4:], '')
        where = f'the environment variable {source[4:]}'
    else:
        try:
            key = pathlib.Path(source).read_text(encoding='utf-8')
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f'the API key cannot be read from {source!r}: {error}') from error
        where = repr(source)
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or ' ' in key:
        raise InputError(f'{where} has no API key: one word of printable ASCII')
    return key


def bind(host, port):
    """A socket for a server, which doesn't listen yet; port 0 is any that is free."""
    if not 0 <= port < 2**16:
        raise InputError(f'cannot serve on {host}, port {port}: it must be from 0 to 65535')
    with reporting(f'cannot serve on {host}, port {port}'):
        family, socket_type, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sets TCP_NODELAY for a socket only if it is told that its protocol is TCP
        bound = socket.socket(family, socket_type, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    return bound


def serve(app, bound, timeout=60.0, request_timeout=30.0, most_connections=1000):
    """Serve until SIGTERM or Ctrl-C, then answer what is accepted.

    Parameters
    ----------
    timeout : float
        Seconds that accepted requests have after the signal.
    request_timeout : float
        Seconds in which a request must have arrived, and in which a client must have read
        something of an answer that waits for it.
    most_connections : int
        If there are more connections, those that have waited longest for a request are closed. It
        is at most half of the files that the process may open.
    """
    MissingExtraError.check('serve', 'uvicorn')
    host, port = bound.getsockname()[:2]
    _log.info('serving on http://%s:%d', f'[{host}]' if ':' in host else host, port)
    if threading.current_thread() is threading.main_thread():
        # at its end uvicorn raises the signal again, for the previous handler
        signal.signal(signal.SIGTERM, lambda *_: None)
    asyncio.run(run_server(make_server(app, timeout), bound, request_timeout, most_connections))


def make_server(app, timeout=60.0):
    """uvicorn's server, with uvicorn's limits."""
    import uvicorn

    return uvicorn.Server(uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=int(timeout) + 1,
        server_header=False, ws='none',
        http='h11', h11_max_incomplete_event_size=MOST_HEAD,  # httptools takes heads of any size
    ))  # fmt: skip


async def run_server(server, bound, request_timeout=30.0, most_connections=1000):
    """Run the server, and watch its connections; see `serve`."""
    most = min(most_connections, max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
    connections = server.server_state.connections
    watching = asyncio.ensure_future(_close_idle(connections, request_timeout, most))
    try:
        await server.serve(sockets=[bound])
    finally:
        watching.cancel()


async def _close_idle(connections, seconds, most):
    """Close connections whose client doesn't send its request, or doesn't read its answer.

    uvicorn has neither time-out, and no public hook for one: `timeout_keep_alive` ends with the
    first byte of a request, and `limit_concurrency` refuses those who come instead of those who
    stay. So this reads what uvicorn knows of its connections, and changes nothing of it.
    """
    waiting = {}  # connection -> when its state began, and the state
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now, before, waiting = time.monotonic(), waiting, {}
        for connection in connections:
            state = _waiting_state(connection)
            if state is not None:
                since, old_state = before.get(connection, (now, None))
                waiting[connection] = (since if state == old_state else now), state
        excess = len(connections) - most
        by_age = sorted(waiting, key=lambda connection: waiting[connection][0])
        for number, connection in enumerate(by_age):
            waited = now - waiting[connection][0]
            if waited > seconds or (number < excess and waited):  # 0 is one that has just come
                connection.transport.abort()


def _waiting_state(connection):
    """What a connection's client has sent or read; None while the server works for it."""
    cycle, unread = connection.cycle, connection.transport.get_write_buffer_size()
    if unread:
        return cycle, unread
    if cycle is None or cycle.response_complete or cycle.more_body:
        return cycle, cycle is not None and cycle.more_body
    return None
