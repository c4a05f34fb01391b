"""A server in a thread, for tests of its clients."""

import asyncio
import contextlib
import threading

from model_zoo.inference.server import bind
from model_zoo.inference.server.run import make_server, run_server

__all__ = ['serving']


@contextlib.contextmanager
def serving(app, *limits, server=None):
    """HOST, PORT of a server in a thread, as `serve` sets it up."""
    bound, server = bind('127.0.0.1', 0), server or make_server(app)
    thread = threading.Thread(target=lambda: asyncio.run(run_server(server, bound, *limits)))
    bound.listen(2048)
    thread.start()
    try:
        yield bound.getsockname()
    finally:
        server.should_exit = True
        thread.join()
