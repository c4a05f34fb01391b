"""Hostile clients against the server as `serve` sets it up, on 127.0.0.1."""

import contextlib
import json
import logging
import os
import socket
import threading
import time
import types

import pytest
from script_runs import wait_until
from serving import serving

from model_zoo.inference.server import Settings, build_app, run
from model_zoo.inference.server.run import MOST_HEAD, make_server

pytest.importorskip('uvicorn')
pytest.importorskip('fastapi')

SECONDS = 1.0
PATIENCE = 300  # other programs want the processor, too
MOST = 60
BODY = json.dumps({'inputs': 'the cat'}).encode()


@pytest.fixture(scope='module')
def app(pipelines):
    made = build_app(pipelines, Settings(max_body=10_000, max_text=2000))
    yield made
    made.state.service.models.close()


@pytest.fixture(scope='module')
def address(app):
    with serving(app, SECONDS, MOST) as address:
        yield address


def head(path='/models/sentiment', *lines, method='POST', length=len(BODY)):  # noqa: B008
    if length is not None:
        lines = (f'Content-Length: {length}', *lines)
    lines = [f'{method} {path} HTTP/1.1', 'Host: localhost', *lines]
    return '\r\n'.join([*lines, '', '']).encode()


def connect(address):
    opened = socket.create_connection(address, timeout=PATIENCE)
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
        b'POST /models/sentiment HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n',
        b'POST /models/sentiment HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1e9\r\n\r\n',
        b'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        b'GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: localhost\r\na\x00b: c\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ids=range(10),
)
def test_what_is_no_http(address, data):
    status, _ = ask(address, data, end=True)
    assert status is None or status in (200, 400, 404, 405, 413, 501), status
    assert_alive(address)


PATHS = (
    '/models/sentiment', '/models/owner/vectors', '/models/writer', '/v1/embeddings',
    '/v1/completions', '/page/map', '/page/attentions',
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
    start = head('/models/sentiment', 'Transfer-Encoding: chunked', length=None)
    status, answer = ask(address, start + chunks * 4 + b'0\r\n\r\n')
    assert status in (413, None)  # None: reset while the rest was being sent
    assert_alive(address)


def test_a_flood_of_headers(address):
    with connect(address) as opened:
        opened.sendall(b'GET /health HTTP/1.1\r\nHost: localhost\r\n')
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
            while time.monotonic() - begin < PATIENCE:
                time.sleep(SECONDS / 8)
                opened.sendall(b'a' if start else b'GET /')
                start = b'begun'
        except OSError:
            pass
        assert SECONDS / 2 < time.monotonic() - begin < PATIENCE
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
    wait_until(lambda: not worker.count)
    assert_alive(address)


def test_requests_of_clients_that_have_gone_are_not_computed(app, address, monkeypatch):
    served = app.state.service.models.get('sentiment')
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
        assert b'"label"' in read_all(first)
    assert_alive(address)
    assert computed == [1, 1]


@pytest.mark.parametrize('start', [b'GET /heal', head(length=100) + b'{"inputs"'])
def test_requests_that_follow_and_do_not_end(address, start):
    """A second request on a connection is timed as the first one is, and shuts nobody out."""
    whole = head('/health', method='GET', length=None)
    left = [connect(address) for _ in range(2 * MOST)]
    try:
        for opened in left:
            with contextlib.suppress(OSError):  # the oldest are closed already
                opened.sendall(whole + start)
        assert_alive(address)
        for opened in left:  # all of them are closed, and what they asked before is answered
            assert read_all(opened)[:15] in (b'', b'HTTP/1.1 200 OK')
    finally:
        for opened in left:
            opened.close()
    assert_alive(address)


def test_an_answer_that_is_not_read(monkeypatch):
    """Its connection is closed when nothing of it has been read for a while, but not before."""
    lost = {'/slow': threading.Event(), '/unread': threading.Event()}
    sent, clock, looks = {'/slow': 0, '/unread': 0}, [0.0], [0]

    def monotonic():
        looks[0] += 1
        return clock[0]

    def pass_time():
        clock[0] += 0.6 * SECONDS
        before = looks[0]
        wait_until(lambda: looks[0] > before + 1)

    async def app(scope, receive, send):
        await send({'type': 'http.response.start', 'status': 200, 'headers': []})
        for _ in range(100):
            await send({'type': 'http.response.body', 'body': bytes(2**20), 'more_body': True})
            sent[scope['path']] += 1
        while (await receive())['type'] != 'http.disconnect':
            pass
        lost[scope['path']].set()

    monkeypatch.setattr(run, 'time', types.SimpleNamespace(monotonic=monotonic))
    with serving(app, SECONDS) as address, connect(address) as opened:
        opened.sendall(head('/slow', method='GET', length=None))
        for _ in range(4):
            before = sent['/slow']
            while sent['/slow'] == before:
                assert opened.recv(2**16)
            pass_time()
        assert not lost['/slow'].is_set()
        with connect(address) as opened:
            opened.sendall(head('/unread', method='GET', length=None))
            wait_until(lambda: sent['/unread'])
            wait_until(lambda: lost['/unread'].is_set() or pass_time())


def test_no_packet_waits_until_the_one_before_is_acknowledged():
    async def app(scope, receive, send):
        await send({'type': 'http.response.start', 'status': 200, 'headers': []})
        await send({'type': 'http.response.body', 'body': b'here'})

    server = make_server(app)
    with serving(app, server=server) as address, connect(address) as opened:
        opened.sendall(head('/', method='GET', length=None))
        assert opened.recv(65536)
        (connection,) = server.server_state.connections
        accepted = connection.transport.get_extra_info('socket')
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    'lines, status',
    [
        (['Host: localhost:8000'], 200), (['Host: [::1]:80'], 200), (['Host: 127.0.0.1'], 200),
        (['Host: zoo.example'], 403), (['Host: localhost.evil.example'], 403),
        (['Host: 10.0.0.1:8000'], 403), (['Host: <img src=x>\x1b'], 403),
        (['Host: localhost', 'Origin: http://evil.example'], 403),
        (['Host: localhost', 'Origin: http://evil.example', 'Content-Type: text/plain'], 403),
        (['Host: localhost', 'Origin: null', 'Content-Type: text/plain'], 403),
        (['Host: localhost', 'Sec-Fetch-Site: cross-site'], 403),
        (['Host: localhost', 'Origin: http://localhost:81'], 403),
        (['Host: localhost:81', 'Origin: http://localhost:81', 'Sec-Fetch-Site: same-origin'], 200),
        (['Host: localhost', 'Origin: https://a.example', 'Content-Type: application/json'], 200),
        (['Host: localhost', 'Transfer-Encoding: chunked'], 400),
    ],
)
def test_what_a_page_of_another_site_can_send(address, lines, status):
    lines = ['POST /models/sentiment HTTP/1.1', f'Content-Length: {len(BODY)}',
             'Connection: close', *lines, '', '']  # fmt: skip
    found, answer = ask(address, '\r\n'.join(lines).encode() + BODY)
    assert found == status or (status == 403 and '\x1b' in lines[3] and found == 400), answer


def test_names_of_a_server_behind_a_proxy(pipelines):
    settings = Settings(allowed_hosts=('zoo.example',))
    app = build_app({'sentiment': pipelines['sentiment']}, settings)
    with serving(app) as address:
        for host, status in [('ZOO.example:443', 200), ('localhost', 200), ('evil.example', 403)]:
            request = f'GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n'
            assert ask(address, request.encode())[0] == status
    app.state.service.models.close()


@pytest.mark.parametrize(
    'path',
    ['/page/../../../../../../etc/passwd', '/page/%2e%2e/%2e%2e/app.py', '/page//etc/passwd',
     '/page/..%2f__init__.py', '/page/__init__.py', '/models/..%2f..%2fetc%2fpasswd',
     '/v1/models/%2fetc%2fpasswd', '/page/%00', '/%c0%ae%c0%ae/'],
)  # fmt: skip
def test_no_file_outside_of_the_page_is_read(address, path):
    for method in ('GET', 'POST'):
        request = head(path, 'Connection: close', method=method, length=0)
        status, answer = ask(address, request)
        assert status in (400, 404, 405), answer
        assert b'root:' not in answer and b'import' not in answer
    assert_alive(address)


@pytest.mark.parametrize('path', ['/models/a%0d%0aX-Evil:%201', '/v1/models/%3Cb%3E%1b%0a'])
def test_names_in_a_path_are_text(address, path):
    with connect(address) as opened:
        opened.sendall(head(path, 'Connection: close', method='GET', length=None))
        lines, _, body = read_all(opened).partition(b'\r\n\r\n')
    assert b' 404 ' in lines or b' 405 ' in lines
    assert b'evil' not in lines.lower() and b'application/json' in lines
    assert b'\n' not in body and b'\x1b' not in body and json.loads(body)['error']


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
    own = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(10_000, own - 2000)  # the server closes the oldest when it has 1000
    if count < 1000:
        pytest.skip(f'a process may open {own} files only')
    left = []
    with serving(app) as address:
        before = len(os.listdir('/proc/self/fd')) if os.path.isdir('/proc/self/fd') else 0
        try:
            for number in range(count):
                left.append(connect(address))
                if number % 1000 == 999:
                    assert_alive(address)
            if before:  # the server looks at its connections from time to time
                wait_until(lambda: len(os.listdir('/proc/self/fd')) - before < count + 1200)
            assert_alive(address)
        finally:
            for each in left:
                each.close()
