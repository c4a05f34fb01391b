"""Contenders that are servers, with their clients."""

import atexit
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time

from harness import HERE
from inputs import read_sentences

PATIENCE = 1800  # seconds: a busy machine is slow, which isn't a failure


def serve(options, engine, precision):
    """Run ``zoo serve``, and clients that send it texts."""
    script = os.path.join(os.environ['PYTHONPATH'], 'scripts', 'serve.py')  # of the checkout
    flags = ['--engine', engine, '--precision', precision, '--port']
    return _clients(options, [sys.executable, script, f'model={options.classifier}', *flags])


def serve_peer(options, precision):
    """Run transformers' pipeline behind Starlette, and the same clients."""
    code = f'import sys; sys.path.insert(0, {HERE!r}); import pytorch; pytorch.serve(*sys.argv[1:])'
    return _clients(options, [sys.executable, '-c', code, options.classifier])


def _clients(options, command):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL)
    atexit.register(process.wait)
    atexit.register(process.terminate)
    texts = read_sentences(options)
    while True:
        try:
            _post(_connect(port), texts[:1])
            break
        except OSError:
            if process.poll() is not None:
                raise
            time.sleep(0.2)

    def prepare(clients):
        scores, numbers, failures = _post(_connect(port), texts[:20]), iter(()), []

        def work():
            connection = _connect(port)
            try:
                while (number := next(numbers, None)) is not None:
                    _post(connection, [texts[number % len(texts)]])
            except (OSError, http.client.HTTPException) as error:
                failures.append(error)
            connection.close()

        def call():
            nonlocal numbers
            numbers = iter(range(options.requests))
            workers = [threading.Thread(target=work) for _ in range(clients)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            if failures:
                raise failures[0]
            return scores

        return call

    return prepare


def _connect(port):
    return http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)


def _post(connection, texts):
    """Return each text's scores by label."""
    connection.request('POST', '/models/model', json.dumps({'inputs': texts}))
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise OSError(content.decode())
    return [{entry['label']: entry['score'] for entry in row} for row in json.loads(content)]
