"""A server as a process: its models, its socket, its end."""

import logging
import os
import pathlib
import signal
import socket
import threading

from ...errors import InputError
from .errors import check_extra
from .guard import guarded

__all__ = ['bind', 'name_models', 'read_key', 'serve']

_log = logging.getLogger(__name__)


def name_models(models):
    """The names under which models are served.

    Parameters
    ----------
    models : list of str
        Folders or names of models, each by itself or as ``NAME=MODEL``. By itself it has the name
        of its folder; for ``best_model``, which trainings write, that of the folder around it.

    Returns
    -------
    dict
        Name -> folder or name of the model.
    """
    named = {}
    for each in models:
        name, equals, model = each.partition('=')
        if not equals or os.path.exists(each):
            name, model = _own_name(each), each
        if not name or not model:
            raise InputError(f'{each!r} is no NAME=MODEL')
        if name in named:
            raise InputError(
                f'two models are called {name!r}, {named[name]!r} and {model!r}: give them names '
                'as NAME=MODEL'
            )
        named[name] = model
    return named


def _own_name(model):
    if not os.path.exists(model):
        return model
    path = pathlib.Path(model).resolve()
    if path.name == 'best_model':
        path = path.parent
    return path.stem if path.is_file() else path.name


def read_key(place):
    """An API key.

    Parameters
    ----------
    place : str
        Path of a file that holds it, or ``env:NAME`` for an environment variable.

    Returns
    -------
    str
    """
    if place.startswith('env:'):
        key = os.environ.get(place[4:], '')
        where = f'the environment variable {place[4:]}'
    else:
        try:
            key = pathlib.Path(place).read_text(encoding='utf-8')
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f'the API key cannot be read from {place!r}: {error}') from error
        where = repr(place)
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or ' ' in key:
        raise InputError(f'{where} has no API key: one word of printable ASCII')
    return key


def bind(host, port):
    """A socket for a server, which doesn't listen yet.

    Parameters
    ----------
    host : str
    port : int
        0 for any that is free.

    Returns
    -------
    socket.socket
    """
    if not 0 <= port < 2**16:
        raise InputError(f'cannot serve on {host}, port {port}: it must be from 0 to 65535')
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        raise InputError(f'cannot serve on {host}, port {port}: {error}') from error
    return bound


def serve(app, bound, timeout=60.0, request_timeout=30.0, most_connections=1000):
    """Serve until SIGTERM or Ctrl-C, then answer what is accepted.

    Parameters
    ----------
    app : ASGI application
        Of `build_app`.
    bound : socket.socket
        Of `bind`.
    timeout : float
        Seconds that accepted requests have after the signal.
    request_timeout, most_connections
        ``seconds`` and ``most`` of `guarded`.

    Raises
    ------
    MissingExtraError
        If uvicorn isn't installed.
    """
    check_extra('uvicorn')
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    host, port = bound.getsockname()[:2]
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=int(timeout) + 1,
        server_header=False, ws='none',
        http=guarded(AutoHTTPProtocol, request_timeout, most_connections),
    )  # fmt: skip
    _log.info('serving on http://%s:%d', f'[{host}]' if ':' in host else host, port)
    if threading.current_thread() is threading.main_thread():
        # at its end uvicorn raises the signal again, for the handler that there was before
        signal.signal(signal.SIGTERM, lambda *_: None)
    uvicorn.Server(config).run(sockets=[bound])
