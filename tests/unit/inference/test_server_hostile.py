"""Hostile clients against the server as `serve` sets it up, on 127.0.0.1."""

import asyncio
import json
import logging
import os
import socket
import threading
import time

import pytest

import model_zoo
from bert import BertForSequenceClassification, BertModel
from model_zoo.inference.server import Settings, bind, build_app
from model_zoo.inference.server.guard import MOST_HEAD, guarded

uvicorn = pytest.importorskip('uvicorn')
pytest.importorskip('fastapi')

SECONDS = 1.0
MOST = 60
BODY = json.dumps({'inputs': 'the cat'}).encode()


@pytest.fixture(scope='module')
def pipelines(saved, writer_folder):
    return {
        'sentiment': model_zoo.pipeline(saved(BertForSequenceClassification, ['bad', 'good'])),
        'vectors': model_zoo.pipeline(saved(BertModel)),
        'writer': model_zoo.pipeline(writer_folder),
    }


@pytest.fixture(scope='module')
def app(pipelines):
    return build_app(pipelines, Settings(max_body=10_000, max_text=2000))


@pytest.fixture(scope='module', params=['h11', 'httptools'])
def address(request, app):
    """HOST, PORT of a server with each of uvicorn's two parsers."""
    module = pytest.importorskip(f'uvicorn.protocols.http.{request.param}_impl')
    protocol = {'h11': 'H11Protocol', 'httptools': 'HttpToolsProtocol'}[request.param]
    config = uvicorn.Config(
        app, log_config=None, ws='none', lifespan='off',
        http=guarded(getattr(module, protocol), SECONDS, MOST),
    )  # fmt: skip
    bound = bind('127.0.0.1', 0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={'sockets': [bound]})
    bound.listen(512)
    thread.start()
    yield bound.getsockname()
    server.should_exit = True
    thread.join()


@pytest.fixture(scope='module', autouse=True)
def close(app):
    yield
    app.state.service.models.close()


def head(path='/models/sentiment', *lines, method='POST', length=None):
    length = len(BODY) if length is None else length
    lines = [f'{method} {path} HTTP/1.1', 'Host: x', f'Content-Length: {length}', *lines]
    return '\r\n'.join([*lines, '', '']).encode()


def connect(address):
    opened = socket.create_connection(address, timeout=20)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def read_all(opened):
    """What comes until the server closes; a reset counts as the end."""
    parts = []
    try:
        while True:
            part = opened.recv(65536)
            if not part:
                break
            parts.append(part)
    except ConnectionError:
        pass
    return b''.join(parts)


def ask(address, data, end=False):
    """The status and the body of the answer to the bytes of a request."""
    with connect(address) as opened:
        try:
            opened.sendall(data)
            if end:
                opened.shutdown(socket.SHUT_WR)
        except OSError:  # the server has closed already
            pass
        answer = read_all(opened)
    first, _, body = answer.partition(b'\r\n\r\n')
    return int(first.split()[1]) if first else None, body


def assert_alive(address):
    status, body = ask(address, head('/models/sentiment', 'Connection: close') + BODY)
    assert status == 200 and b'"label"' in body


@pytest.mark.parametrize(
    'data',
    [
        b'\x00' * 100,
        b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc' + bytes(200),  # TLS
        b'GET\r\n\r\n',
        b'GET / HTTP/9.9\r\n\r\n',
        b'POST /models/sentiment HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n',
        b'POST /models/sentiment HTTP/1.1\r\nHost: x\r\nContent-Length: 1e9\r\n\r\n',
        b'POST /models/sentiment HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        b'GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: x\r\na\x00b: c\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ids=range(10),
)
def test_what_is_no_http(address, data):
    status, _ = ask(address, data, end=True)
    assert status is None or status in (200, 400, 404, 405, 413, 501), status
    assert_alive(address)


PATHS = (
    '/models/sentiment', '/models/vectors', '/models/writer', '/v1/embeddings',
    '/v1/completions', '/v2/models/sentiment/infer', '/page/map', '/page/attentions',
)  # fmt: skip


@pytest.mark.parametrize('path', PATHS)
def test_bodies_that_mean_nothing(address, path):
    deep = 4000
    bodies = [
        b'', b'null', b'"', b'\xff\xfe', b'[' * deep + b']' * deep, b'{"inputs":' * 900,
        b'{"inputs": ' + b'[' * 900 + b'"a"' + b']' * 900 + b'}',
        b'{"inputs": ' + b'{"a":' * 900 + b'1' + b'}' * 900 + b'}',
        b'{"inputs": "\\ud800", "model": "sentiment", "input": "\\ud800", "prompt": "\\ud800"}',
        b'{"inputs": "a", "parameters": {"\\ud800": "\\ud800"}}',
        b'{"inputs": "a", "parameters": {"top_k": ' + b'9' * 4000 + b'}}',
        b'{"inputs": "a", "parameters": {"top_k": 1e999, "temperature": NaN}}',
        b'{"inputs": "a", "parameters": {"temperature": 1e-300, "max_new_tokens": 1e9}}',
        b'{"inputs": "a", "temperature": -Infinity, "model": ["x"], "prompt": {}, "input": {}}',
        b'{"model": "writer", "prompt": [1180591620717411303424], "max_tokens": -1}',
        b'{"model": "writer", "prompt": "a", "n": 1e30, "stream": "yes"}',
        b'{"model": "\\u0000", "input": [[-1]], "texts": [1, 2], "text": []}',
        b'{"inputs": [{"name": "text", "shape": [99999999999], "datatype": "BYTES", "data": []}]}',
        b'{"inputs": [{"name": "text", "shape": [-1], "datatype": "FP99", "data": [[[]]]}]}',
        b'{"inputs": {"name": {}}, "outputs": {"name": []}, "parameters": {"binary_data": {}}}',
        b'{"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["a"],'
        b' "parameters": {"binary_data_size": 1e30}}]}',
        b'{"inputs": [[["a"]]], "outputs": [{"parameters": 3}]}',
    ]  # fmt: skip
    for body in bodies:
        status, answer = ask(address, head(path, 'Connection: close', length=len(body)) + body)
        assert status is not None and (status == 200 or 400 <= status < 500), (body[:80], answer)
        if status != 200:
            assert len(answer) < 4000 and b'\n' not in answer, body[:80]
    assert_alive(address)


def test_bodies_that_are_too_large(address):
    status, answer = ask(address, head(length=10**15))
    assert status == 413 and b'larger than 10000 bytes' in answer
    chunks = b'2000\r\n' + b' ' * 0x2000 + b'\r\n'
    start = b'POST /models/sentiment HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    status, answer = ask(address, start + chunks * 4 + b'0\r\n\r\n')
    assert status in (413, None)  # None: reset while the rest was being sent
    assert_alive(address)


def test_a_flood_of_headers(address):
    with connect(address) as opened:
        opened.sendall(b'GET /health HTTP/1.1\r\nHost: x\r\n')
        sent = 0
        try:
            for number in range(20 * MOST_HEAD // 1000):
                opened.sendall(b'h%d: %s\r\n' % (number, b'a' * 1000))
                sent += 1000
                time.sleep(0.001)
        except OSError:
            pass
        answer = read_all(opened)
    assert sent < 20 * MOST_HEAD and b' 200 ' not in answer
    assert_alive(address)


@pytest.mark.parametrize(
    'start', [b'', b'GET /health HTTP/1.1\r\nHost', head(length=100) + b'{"inputs"'],
    ids=['nothing', 'head', 'body'],
)
def test_slow_clients(address, start):
    """A byte now and then doesn't keep a connection open."""
    with connect(address) as opened:
        begin = time.monotonic()
        opened.sendall(start)
        try:
            while time.monotonic() - begin < 20 * SECONDS:
                time.sleep(SECONDS / 8)
                opened.sendall(b'a' if start else b'GET /')
                start = b'begun'
        except OSError:
            pass
        assert SECONDS / 2 < time.monotonic() - begin < 15 * SECONDS
    assert_alive(address)


def test_a_client_that_leaves_within_its_body(address, caplog):
    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            with connect(address) as opened:
                opened.sendall(head(length=100) + b'{"inputs"')
        assert_alive(address)
    assert not caplog.records


def test_connections_that_are_opened_and_left(address):
    """More than the server takes; who asks is answered all the same."""
    left = []
    try:
        for number in range(10 * MOST):
            left.append(connect(address))
            if number % 3:
                left[-1].sendall(b'GET /health HTTP/1.1\r\n' if number % 2 else head() + b'{')
            if number % 100 == 99:
                assert_alive(address)
        assert_alive(address)
    finally:
        for each in left:
            each.close()


def test_a_client_that_does_not_read(app, address):
    """A stream whose client is gone, or stands still, ends, and the model is free again."""
    body = json.dumps(
        {'inputs': 'The', 'parameters': {'max_new_tokens': 1000, 'stop_at_end': False},
         'stream': True}
    ).encode()  # fmt: skip
    worker = app.state.service.models.get('writer').worker
    for _ in range(3):
        with connect(address) as opened:
            opened.sendall(head('/models/writer', length=len(body)) + body)
            opened.recv(10)
    for _ in range(2000):
        if not worker.count:
            break
        time.sleep(0.01)
    assert not worker.count
    assert_alive(address)


def test_what_stands_still_is_aborted():
    """The buffers of an answer that isn't read: the timer runs from the pause to the next read."""

    class Protocol:
        connections, cycle = (), None

        def __init__(self):
            self.loop = asyncio.get_running_loop()

        def connection_made(self, transport):
            self.transport = transport

        def pause_writing(self):
            pass

        resume_writing = connection_lost = pause_writing

    class Transport:
        aborted = False

        def abort(self):
            self.aborted = True

    async def run(reads):
        protocol, transport = guarded(Protocol, 0.2)(), Transport()
        protocol.connection_made(transport)
        protocol._end_waiting()
        protocol.pause_writing()
        if reads:
            protocol.resume_writing()
        await asyncio.sleep(0.5)
        return transport.aborted

    assert asyncio.run(run(False)) and not asyncio.run(run(True))


@pytest.mark.parametrize(
    'path',
    ['/page/../../../../../../etc/passwd', '/page/%2e%2e/%2e%2e/routes.py', '/page//etc/passwd',
     '/page/..%2froutes.py', '/page/routes.py', '/models/..%2f..%2fetc%2fpasswd',
     '/v1/models/%2fetc%2fpasswd', '/v2/models/..%2f..%2f/ready', '/page/%00', '/%c0%ae%c0%ae/'],
)  # fmt: skip
def test_no_file_outside_of_the_page_is_read(address, path):
    for method in ('GET', 'POST'):
        request = head(path, 'Connection: close', method=method, length=0)
        status, answer = ask(address, request)
        assert status in (400, 404, 405), answer
        assert b'root:' not in answer and b'import' not in answer
    assert_alive(address)


def test_what_was_refused_is_counted(address):
    parser = pytest.importorskip('prometheus_client.parser')
    ask(address, head(length=10**15))
    _, text = ask(address, head('/metrics', 'Connection: close', method='GET', length=0))
    if text[:2] != b'# ':  # in chunks
        text = text.partition(b'\r\n')[2].rpartition(b'0\r\n')[0]
    families = parser.text_string_to_metric_families(text.decode())
    samples = [sample for family in families for sample in family.samples]
    assert any(sample.labels.get('status') == '413' and sample.value for sample in samples)


@pytest.mark.slow
def test_ten_thousand_connections(app):
    """As `zoo serve` is set up, within the files that a process may open."""
    resource = pytest.importorskip('resource')
    auto = pytest.importorskip('uvicorn.protocols.http.auto')
    own = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(10_000, own - 2000)  # the server closes the oldest when it has 1000
    if count < 1000:
        pytest.skip(f'a process may open {own} files only')
    config = uvicorn.Config(
        app, log_config=None, ws='none', lifespan='off',
        http=guarded(auto.AutoHTTPProtocol),
    )  # fmt: skip
    bound = bind('127.0.0.1', 0)
    server, left = uvicorn.Server(config), []
    thread = threading.Thread(target=server.run, kwargs={'sockets': [bound]})
    bound.listen(2048)
    thread.start()
    before = len(os.listdir('/proc/self/fd')) if os.path.isdir('/proc/self/fd') else 0
    try:
        for number in range(count):
            left.append(connect(bound.getsockname()))
            if number % 1000 == 999:
                assert_alive(bound.getsockname())
        if before:
            assert len(os.listdir('/proc/self/fd')) - before < count + 1200
        assert_alive(bound.getsockname())
    finally:
        for each in left:
            each.close()
        server.should_exit = True
        thread.join()
