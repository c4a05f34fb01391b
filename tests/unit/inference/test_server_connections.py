"""Clients of the server on 127.0.0.1 that send or read only a part, and framing."""

import json
import socket
import threading

import pytest
from script_runs import wait_until
from serving import serving

from model_zoo.inference.server import Settings, build_app

pytest.importorskip('uvicorn')
pytest.importorskip('fastapi')

PATIENCE = 300  # seconds: other programs want the processor, too
BODY = json.dumps({'inputs': 'the cat'}).encode()


@pytest.fixture(scope='module')
def app(pipelines):
    made = build_app(pipelines, Settings(max_body=10_000, allowed_hosts=['localhost', '[::1]']))
    yield made
    made.state.models.close()


@pytest.fixture(scope='module')
def address(app):
    with serving(app) as address:
        yield address


def head(path='/models/sentiment', *lines, method='POST', length=len(BODY), host='localhost'):  # noqa: B008
    if length is not None:
        lines = (f'Content-Length: {length}', *lines)
    lines = [f'{method} {path} HTTP/1.1', f'Host: {host}', *lines]
    return '\r\n'.join([*lines, '', '']).encode()


def connect(address):
    return socket.create_connection(address, timeout=PATIENCE)


def ask(address, data):
    """The status and the body of the answer to the bytes of a request."""
    parts = []
    with connect(address) as opened:
        try:
            opened.sendall(data)
            while not parts or parts[-1]:
                parts.append(opened.recv(65536))
        except ConnectionError:  # the server has closed already
            pass
    first, _, body = b''.join(parts).partition(b'\r\n\r\n')
    return int(first.split()[1]) if first else None, body


def assert_alive(address):
    status, body = ask(address, head('/models/sentiment', 'Connection: close') + BODY)
    assert status == 200 and b'"label"' in body


def test_bodies_that_are_too_large(address):
    assert ask(address, head(length=10**15))[0] == 413
    chunks = b'2000\r\n' + b' ' * 0x2000 + b'\r\n'
    start = head('/models/sentiment', 'Transfer-Encoding: chunked', length=None)
    status, _ = ask(address, start + chunks * 4 + b'0\r\n\r\n')
    assert status in (413, None)  # None: reset while the rest was being sent
    _, text = ask(address, head('/metrics', 'Connection: close', method='GET', length=0))
    assert b'status="413"' in text
    assert_alive(address)


def test_a_client_that_does_not_read(app, address):
    """A stream whose client is gone ends, and the model is free again."""
    parameters = {'max_new_tokens': 1000, 'stop_at_end': False}
    body = json.dumps({'inputs': 'The', 'parameters': parameters, 'stream': True}).encode()
    worker = app.state.models.get('writer').worker
    for _ in range(3):
        with connect(address) as opened:
            opened.sendall(head('/models/writer', length=len(body)) + body)
            opened.recv(10)
    wait_until(lambda: not worker.count)
    assert_alive(address)


def test_requests_of_clients_that_have_gone_are_not_computed(app, address, monkeypatch):
    served = app.state.models.get('sentiment')
    held, computed, run_batch = threading.Event(), [], served.pipeline.run_batch

    def slow(rows):
        computed.append(len(rows))
        assert held.wait(PATIENCE)
        return run_batch(rows)

    monkeypatch.setattr(served.pipeline, 'run_batch', slow)
    data = head('/models/sentiment', 'Connection: close') + BODY
    with connect(address) as first:
        first.sendall(data)
        wait_until(lambda: computed)
        left = [connect(address) for _ in range(30)]
        for opened in left:
            opened.sendall(data)
        wait_until(lambda: served.worker.count == 31)
        for opened in left:
            opened.close()
        wait_until(lambda: served.worker.count == 1)
        held.set()
        assert b' 200 ' in first.recv(65536)
    assert_alive(address)
    assert computed == [1, 1]


HOSTS = [
    *(('localhost:8000', 200), ('[::1]:80', 200)),
    *((name, 400) for name in ('zoo.example', '10.0.0.1', 'localhost.zoo.example')),
]


@pytest.mark.parametrize('host, status', HOSTS)
def test_names_of_the_server(address, host, status):
    request = head('/health', 'Connection: close', method='GET', length=None, host=host)
    assert ask(address, request)[0] == status


@pytest.mark.parametrize(
    'path',
    (
        '/page/../../../../../../etc/passwd /page/%2e%2e/%2e%2e/app.py /page//etc/passwd '
        '/page/__init__.py /models/..%2f..%2fetc%2fpasswd /v1/models/%2fetc%2fpasswd '
        '/models/a%0d%0aX-Evil:%201 /v1/models/%3Cb%3E%1b%0a /page/%00 /%c0%ae%c0%ae/'
    ).split(),
)
def test_a_path_is_no_file_and_no_header(address, path):
    with connect(address) as opened:
        opened.sendall(head(path, 'Connection: close', method='GET', length=None))
        lines, _, body = opened.recv(65536).partition(b'\r\n\r\n')
    assert b' 404 ' in lines or b' 405 ' in lines
    assert b'evil' not in lines.lower() and b'\n' not in body and b'\x1b' not in body
    assert b'root:' not in body and b'import' not in body
