"""A server as a process: its models' names, its key, its socket, its end."""

import logging
import os
import pathlib
import signal
import socket
import sys

from ...errors import InputError, MissingExtraError, reporting

_log = logging.getLogger(__name__)

MOST_CONNECTIONS = 512


def name_models(models):
    """Return the names under which models are served.

    Each is a folder or a name by itself, or ``NAME=MODEL``. By itself a folder is served by its own
    name; ``best_model``, which trainings write, by the name of its parent folder.
    """
    named = {}
    for word in models:
        name, equals, model = word.partition('=')
        if os.path.exists(word):
            path, model = pathlib.Path(word).resolve(), word
            path = path.parent if path.name == 'best_model' else path
            name = path.stem if path.is_file() else path.name
        elif not equals:
            name = model = word
        if not name or not model:
            raise InputError(f'{word!r} is not NAME=MODEL')
        if name in named:
            raise InputError(f'two models are called {name!r}: give them names as NAME=MODEL')
        named[name] = model
    return named


def read_key(source):
    """Read the API key from a file, or from an environment variable, ``env:NAME``."""
    if source.startswith('env:'):
        key = os.environ.get(source[4:], '')
    else:
        errors = OSError, UnicodeDecodeError
        with reporting(f'the API key cannot be read from {source!r}', errors=errors):
            key = pathlib.Path(source).read_text(encoding='utf-8')
    if not key.strip():
        raise InputError(f'{source!r} has no API key')
    return key.strip()


def bind(host, port):
    """Return a socket for a server, which doesn't listen yet; port 0 is any free one."""
    if not 0 <= port < 2**16:  # which the system takes modulo this number
        raise InputError(f'cannot serve on {host}, port {port}: it must be from 0 to 65535')
    with reporting(f'cannot serve on {host}, port {port}', '; `port` names another port'):
        kind = {'type': socket.SOCK_STREAM, 'flags': socket.AI_PASSIVE}
        family, socket_type, protocol, _, address = socket.getaddrinfo(host, port, **kind)[0]
        # asyncio sets TCP_NODELAY for a socket only if its protocol is stated as TCP
        bound = socket.socket(family, socket_type, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    return bound


def serve(app, bound, timeout=60.0):
    """Serve until SIGTERM or Ctrl-C; accepted requests then have `timeout` seconds."""
    server = make_server(app, timeout)
    # until uvicorn handles the signal, and at its end, when it raises the signal again
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    bound.listen(MOST_CONNECTIONS)
    host, port = bound.getsockname()[:2]
    host = _own_address() if host == '0.0.0.0' else host
    _log.info('serving on http://%s:%d', f'[{host}]' if ':' in host else host, port)
    server.run(sockets=[bound])


def _own_address():
    """Return the address by which other machines of the network know this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(('192.0.2.1', 9))  # an address for examples: nothing is sent
        except OSError:  # there is no network
            return '0.0.0.0'
        return probe.getsockname()[0]


def make_server(app, timeout=60.0):
    """Uvicorn's server, with uvicorn's limits."""
    MissingExtraError.check('serve', 'uvicorn')
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=int(timeout) + 1,
            server_header=False,
            ws='none',
            limit_concurrency=MOST_CONNECTIONS,
            http='h11',  # httptools takes heads of any size
        )
    )
