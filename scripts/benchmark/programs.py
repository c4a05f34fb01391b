"""Contenders that are programs: a whole training, and a server with its clients."""

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


def _script(name):
    """Return the command of a script of the worker's checkout."""
    return [sys.executable, os.path.join(os.environ['PYTHONPATH'], 'scripts', f'{name}.py')]


def _peer(call):
    """Return the command that calls a function of pytorch.py with the arguments that follow."""
    code = f'import sys; sys.path.insert(0, {HERE!r}); import pytorch as p; p.{call}(*sys.argv[1:])'
    return [sys.executable, '-c', code]


def train(options, precision):
    """scripts/finetune_classifier.py, from the command to the trained model."""
    flags = {
        'train_file': options.train_file,
        'dev_file': options.dev_file,
        'bert_model': options.model,
        'output_dir': os.path.join(options.folder, 'ours'),
        'optimizer': 'openaiadam',
        'lr': 5e-5,
        **{name: getattr(options, name) for name in ('epochs', 'batch_size', 'max_len')},
    }
    words = [f'--{name}={value}' for name, value in flags.items()]
    command = [*_script('finetune_classifier'), *words, '--dtype', precision]
    command.append('--overwrite_output_dir')
    return lambda case: lambda: _run(command)


def train_peer(options, precision):
    """The same with transformers' parts."""
    files = options.classifier, options.train_file, options.dev_file
    sizes = options.epochs, options.batch_size, options.max_len
    output = os.path.join(options.folder, 'theirs')
    command = [*_peer('train_program'), *files, *sizes, precision, output]
    return lambda case: lambda: _run(command)


def _run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])


def serve(options, engine, precision):
    """``zoo serve``, and clients that send it texts."""
    command = [*_script('serve'), f'model={options.classifier}', '--engine', engine]
    return _clients(options, [*command, '--precision', precision, '--port'])


def serve_peer(options, precision):
    """Transformers' pipeline behind Starlette, and the same clients."""
    return _clients(options, [*_peer('serve'), options.classifier])


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
    rows = json.loads(content)
    return [{entry['label']: entry['score'] for entry in row} for row in rows]
