"""A server in a thread, for tests of its clients."""

import contextlib
import threading

from model_zoo.inference.server import bind
from model_zoo.inference.server.run import make_server

__all__ = ['serving']


@contextlib.contextmanager
def serving(app, server=None):
    """HOST, PORT of a server in a thread, as `serve` sets it up."""
    bound, server = bind('127.0.0.1', 0), server or make_server(app)
    thread = threading.Thread(target=server.run, kwargs={'sockets': [bound]})
    bound.listen(2048)
    address = bound.getsockname()
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()
