"""A real S3 server (moto's) on 127.0.0.1, and a proxy before it that breaks connections."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import uuid

import pytest

SERVER = """
import logging, sys, threading
logging.getLogger('werkzeug').setLevel(logging.ERROR)
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
server = ThreadedMotoServer('127.0.0.1', 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # until the tests end
"""


@contextlib.contextmanager
def s3_server():
    """The port of a server in a process of its own."""
    if os.environ.get('CI') != 'true':
        pytest.importorskip('moto')
        pytest.importorskip('s3fs')
    with subprocess.Popen(
        [sys.executable, '-c', SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(120)


class Proxy:
    """Hands connections to a port on, and breaks the first `cuts` answers after `after` bytes."""

    def __init__(self, port, cuts, after):
        self._target, self.cuts, self.after, self.broken = port, cuts, after, 0
        self._socket = socket.create_server(('127.0.0.1', 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, socket.create_connection(('127.0.0.1', self._target)) as server:
            threading.Thread(target=self._copy, args=(client, server), daemon=True).start()
            sent = 0
            with contextlib.suppress(OSError):
                while True:
                    data = server.recv(2**14)
                    if not data:
                        return self._break(client, server)
                    sent += len(data)
                    if self.broken < self.cuts and sent > self.after:
                        self.broken += 1
                        return self._break(client, server)
                    client.sendall(data)

    @staticmethod
    def _break(*sockets):
        for each in sockets:  # closing alone would wait for the other thread's recv
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _copy(source, target):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(2**14)
                if not data:
                    return
                target.sendall(data)

    def close(self):
        self._socket.close()


def set_up(monkeypatch, port):
    """Let all clients of this process, and of those that it starts, ask that port."""
    import s3fs

    values = {
        'AWS_ENDPOINT_URL': f'http://127.0.0.1:{port}',
        'AWS_ACCESS_KEY_ID': 'somebody',
        'AWS_SECRET_ACCESS_KEY': 'secret',
        'AWS_DEFAULT_REGION': 'us-east-1',
        'AWS_EC2_METADATA_DISABLED': 'true',
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()


def new_bucket(monkeypatch, port):
    """URL of a bucket of one's own on the server at a port."""
    import fsspec

    set_up(monkeypatch, port)
    name = f'bucket-{uuid.uuid4()}'
    fsspec.filesystem('s3').mkdir(name)
    return f's3://{name}'
