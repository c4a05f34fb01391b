"""A server in this process, or in a thread, for its tests."""

import asyncio
import contextlib
import json
import threading

import pytest

from model_zoo.inference.server import bind
from model_zoo.inference.server.run import make_server

__all__ = ['Client', 'serving']

httpx = pytest.importorskip('httpx')


class Client:
    """Asks an application without a network; each call has an event loop of its own."""

    def __init__(self, app, **options):
        self.app, self.options = app, options

    @property
    def models(self):
        return self.app.state.models

    def gather(self, *requests):
        """The answers of requests, (method, path, options), that are sent at once."""

        async def ask():
            # what the application doesn't answer itself is for its server to log
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url='http://test', timeout=300, **self.options
            ) as client:
                return await asyncio.gather(*(client.request(m, p, **o) for m, p, o in requests))

        return asyncio.run(ask())

    def ask(self, path, data):
        """Return the status and body of the answer to a body of bytes, or of JSON."""
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        headers = {'content-type': 'application/json'}
        answer = self.gather(('POST', path, {'content': data, 'headers': headers}))[0]
        return answer.status_code, answer.content

    def get(self, path, **options):
        return self.gather(('GET', path, options))[0]

    def post(self, path, content, **options):
        return self.gather(('POST', path, {'json': content, **options}))[0]

    def infer(self, name, inputs, **more):
        answer = self.post(f'/models/{name}', {'inputs': inputs, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()


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
