"""Clients that mean harm to a server: connections without an end, other sites' pages, damaged
framing; and models whose threads fail or die while they are asked.

After each attempt a well-meaning client must be answered, and rightly.
"""

import asyncio
import contextlib
import json
import socket
import threading
import time

from target import REFUSED, RIGHT, Target, Unequal
from tiny_models import save_bert, save_gpt2

import model_zoo
from bert import BertForSequenceClassification
from model_zoo.inference.server import Settings, bind, build_app
from model_zoo.inference.server.run import make_server, run_server

__all__ = ['targets']

SECONDS, MOST = 0.5, 40
PATIENCE = 20
BODY = json.dumps({'inputs': 'the cat'}).encode()
FRAMING = ['Content-Length: {0}', 'content-length:{0}', 'Content-Length: +{0}', 'Content-Length: 0',
           'Content-Length: {0}, {0}', 'Content-Length: -1', 'Content-Length: 99999999999999999999',
           'Transfer-Encoding: chunked', 'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: x',
           'Transfer-Encoding : chunked', 'Connection: upgrade', 'Expect: 100-continue',
           'Content-Encoding: gzip']  # fmt: skip
HOSTS = ['localhost', '127.0.0.1:80', '[::1]', 'zoo.example', 'localhost.zoo.example', '10.0.0.1',
         '\x1b[2J', '', 'a' * 5000]  # fmt: skip
ORIGINS = ['null', 'http://zoo.example', 'http://localhost:81', 'x']


class _Served:
    """A server in a thread, with one classifier and one writer."""

    def __init__(self, folder):
        labels = ['bad', 'good']
        self.app = build_app({
            'model': model_zoo.pipeline(
                save_bert(folder / 'bert', BertForSequenceClassification, labels)
            ),
            'writer': model_zoo.pipeline(save_gpt2(folder / 'gpt2')),
        }, Settings(timeout=PATIENCE, max_body=10**5))  # fmt: skip
        bound, server = bind('127.0.0.1', 0), make_server(self.app)
        bound.listen(2048)
        self.address = bound.getsockname()
        running = run_server(server, bound, SECONDS, MOST)
        threading.Thread(target=asyncio.run, args=(running,), daemon=True).start()
        self.wanted = self.ask()
        if self.wanted[0] != 200:
            raise Unequal(f'the server answers {self.wanted}')

    def connect(self):
        return socket.create_connection(self.address, timeout=PATIENCE)

    def exchange(self, data):
        """What the server answers to these bytes, until it closes."""
        parts = []
        with self.connect() as opened, contextlib.suppress(ConnectionError):
            opened.sendall(data)
            while not parts or parts[-1]:
                parts.append(opened.recv(65536))
        return b''.join(parts)

    def ask(self, model='model', inputs='the cat'):
        """The status and the body of the answer to a well-meaning client."""
        body = json.dumps({'inputs': inputs, 'parameters': {}}).encode()
        head, _, answer = self.exchange(request(f'/models/{model}', length=len(body)) + body
                                        ).partition(b'\r\n\r\n')  # fmt: skip
        return int(head.split()[1]) if head else None, answer

    def check(self):
        if self.ask() != self.wanted:
            raise Unequal(f'a well-meaning client got {self.ask()}')


def request(path='/models/model', *lines, method='POST', length=len(BODY)):  # noqa: B008
    lines = [f'{method} {path} HTTP/1.1', 'Host: localhost', 'Connection: close', *lines,
             f'Content-Length: {length}', '', '']  # fmt: skip
    return '\r\n'.join(lines).encode()


def _connections(served, random, folder):
    """More connections than the server takes, each of which stops somewhere."""
    whole = b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'
    text, left = request() + BODY, []
    try:
        for _ in range(random.randrange(1, 3 * MOST)):
            left.append(served.connect())
            with contextlib.suppress(ConnectionError):
                left[-1].sendall(whole * random.randrange(4) + text[: random.randrange(len(text))])
        served.check()
        end = time.monotonic() + PATIENCE
        for opened in left:
            with contextlib.suppress(ConnectionError):
                while opened.recv(65536):
                    if time.monotonic() > end:
                        raise Unequal('a connection stays open')
    except socket.timeout:
        raise Unequal('a connection stays open') from None
    finally:
        for opened in left:
            opened.close()
    served.check()
    return RIGHT


def _framing(served, random, folder):
    """Lines of a head that contradict each other, of another site, or no lines at all."""
    lines = random.choice([FRAMING[:1], random.sample(FRAMING, random.randrange(1, 3))])
    lines = [line.format(len(BODY)) for line in lines]
    lines.append(f'Host: {random.choice(HOSTS)}')
    if random.random() < 0.5:
        lines.append(f'Origin: {random.choice(ORIGINS)}')
    if random.random() < 0.5:
        lines.append(f'Content-Type: {random.choice(["text/plain", "application/json", ""])}')
    random.shuffle(lines)
    data = '\r\n'.join(['POST /models/model HTTP/1.1', *lines, '', '']).encode() + BODY
    if random.random() < 0.3:
        place = random.randrange(len(data))
        data = data[:place] + bytes([random.randrange(256)]) + data[place + 1 :]
    answer = served.exchange(data)
    served.check()
    statuses = [int(part[1:4]) for part in answer.split(b'HTTP/1.1')[1:]]
    if any(status >= 500 for status in statuses):
        raise Unequal(f'{statuses} to {data!r}')
    is_foreign = any(line[6:] not in HOSTS[:3] and line[6:] for line in lines if 'Host' in line)
    if is_foreign and 200 in statuses and b'example' in data:
        raise Unequal(f'another host was served: {data!r}')
    return RIGHT if 200 in statuses else REFUSED


def _workers(served, random, folder):
    """A thread that fails or dies within any of its steps."""
    name = random.choice(['model', 'writer'])
    worker = served.app.state.service.models.get(name).worker
    method = random.choice(['_take', '_step'])
    step = getattr(worker, method)
    error = random.choice([ValueError, MemoryError, RecursionError, SystemExit, KeyboardInterrupt])
    left = random.randrange(1, 4)

    def fail(*args):
        nonlocal left
        if worker.count and left:
            left -= 1
            raise error('the audit')
        return step(*args)

    setattr(worker, method, fail)
    try:
        for _ in range(6):
            status, answer = served.ask(name)
            if status not in (200, 500, 503):
                raise Unequal(f'{status} {answer} after {error.__name__} in {method}')
    finally:
        delattr(worker, method)
    if served.ask(name)[0] != 200:
        raise Unequal(f'{name} is dead after {error.__name__} in {method}')
    served.check()
    return RIGHT


def targets():
    attempts = {'connections': _connections, 'framing': _framing, 'workers': _workers}
    return [Target(f'clients/{name}', _Served, attempt, memory=None, batch=5)
            for name, attempt in attempts.items()]  # fmt: skip
