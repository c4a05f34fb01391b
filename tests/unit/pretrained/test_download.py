"""Downloads from a server on loopback."""

import hashlib
import os
import subprocess

import pytest
from loopback import LoopbackServer, Resource, zip_of
from script_runs import start

from model_zoo.pretrained.download import SourceError, download

BODY = bytes(range(256)) * 8192  # 2 MB
SHA1 = f'sha1:{hashlib.sha1(BODY).hexdigest()}'
ZIP = zip_of(**{'file.bin': os.urandom(5000)})


@pytest.fixture
def server(no_network):
    with LoopbackServer() as running:
        yield running


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / 'new' / 'file.bin')


def beside(path):
    """Names of what is in the folder besides the file and its lock."""
    name = os.path.basename(path)
    return sorted(set(os.listdir(os.path.dirname(path))) - {name, f'.{name}.lock'})


def read(path):
    with open(path, 'rb') as file:
        return file.read()


BODIES = [(BODY, None), (zip_of(**{'file.bin': BODY, '../evil': b'x', 'other': b'y'}), 'file.bin')]


@pytest.mark.parametrize('body, member', BODIES, ids=['file', 'archive'])
def test_download(server, path, body, member):
    server.resources['/f'] = Resource(body)
    for _ in range(2):  # a sound file is not downloaded again
        assert download(server.url + 'f', path, SHA1, member) == path
        assert read(path) == BODY and beside(path) == []
        assert len(server.requests) == 1


DAMAGES = [
    (BODY[:-1], None),
    (b'<html>log in first</html>', 'file.bin'),
    (zip_of(**{'other.bin': BODY}), 'file.bin'),
    (zip_of(**{'../file.bin': BODY}), 'file.bin'),
    (zip_of(**{'file.bin': BODY[:-1]}), 'file.bin'),
    (ZIP[:-3000], 'file.bin'),
    (ZIP[:2000] + bytes([ZIP[2000] ^ 1]) + ZIP[2001:], 'file.bin'),
]


@pytest.mark.parametrize('body, member', DAMAGES, ids=range(7))
def test_damage(server, path, body, member):
    server.resources['/f'] = Resource(body)
    with pytest.raises(SourceError):
        download(server.url + 'f', path, SHA1, member)
    assert not os.path.exists(path) and beside(path) == []


def test_a_broken_connection_leaves_nothing(server, path):
    server.resources['/f'] = Resource(BODY, cut=700_000)
    with pytest.raises(SourceError):
        download(server.url + 'f', path)
    assert not os.path.exists(path) and beside(path) == []
    server.resources['/f'].cut = None
    assert read(download(server.url + 'f', path)) == BODY


CODE = """
import sys
from model_zoo.pretrained.download import download
print(download(*sys.argv[1:]))
"""


def test_two_processes_download_once(server, path):
    server.resources['/f'] = Resource(BODY, delay=0.5)
    argv = ['-c', CODE, server.url + 'f', path, SHA1]
    processes = [start(*argv, stdout=subprocess.PIPE) for _ in '12']
    assert [process.communicate()[0].strip() for process in processes] == [path, path]
    assert server.paths() == ['/f'] and read(path) == BODY
