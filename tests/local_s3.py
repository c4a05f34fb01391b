"""A real S3 server (moto's) on 127.0.0.1, and a proxy before it that breaks connections."""

import contextlib
import os
import subprocess
import sys
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
