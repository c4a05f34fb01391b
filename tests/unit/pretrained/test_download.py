"""Downloads against a server on loopback that breaks off, lies and is slow."""

import concurrent.futures
import hashlib
import os
import shutil
import socket
import subprocess
import sys

import pytest
import requests
import warm
from loopback import LoopbackServer, Resource, zip_of

from model_zoo.errors import InputError
from model_zoo.pretrained import download as module
from model_zoo.pretrained.download import Checksum, DownloadError, _Session, download

BODY = bytes(range(256)) * 8192  # 2 MB
ZIP = zip_of(**{'file.bin': os.urandom(5000)})
SHA1 = Checksum('sha1', hashlib.sha1(BODY).hexdigest())


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


def fetch(server, path, **options):
    """Download a file from a server that answers so."""
    server.resources['/f'] = Resource(BODY, **options)
    assert download(server.url + 'f', path, SHA1) == path
    assert read(path) == BODY


def test_plain_file(server, path):
    fetch(server, path)
    assert beside(path) == []
    download(server.url + 'f', path, SHA1)
    assert len(server.requests) == 1, 'a sound file is not downloaded again'


def test_zip_member(server, path):
    body = zip_of(**{'file.bin': BODY, '../evil': b'x', 'other': b'y'})
    server.resources['/f.zip'] = Resource(body)
    download(server.url + 'f.zip', path, SHA1, member='file.bin')
    assert read(path) == BODY
    assert beside(path) == []
    assert not os.path.exists(os.path.join(os.path.dirname(path), '..', 'evil'))


@pytest.mark.parametrize(
    'body, message',
    [
        (b'<html>log in first</html>', 'not a sound zip archive'),
        (zip_of(**{'other.bin': BODY}), 'without file.bin'),
        (zip_of(**{'../file.bin': BODY}), 'without file.bin'),
        (zip_of(**{'file.bin': BODY[:-1]}), f'not {SHA1.digest}'),
        (ZIP[:-3000], 'not a sound zip archive'),
        (ZIP[:2000] + bytes([ZIP[2000] ^ 1]) + ZIP[2001:], 'not a sound zip archive'),
    ],
    ids=range(6),  # the random bytes would be the name otherwise, another one in each process
)
def test_damaged_zip_is_fetched_twice_then_reported(server, path, body, message):
    server.resources['/f.zip'] = Resource(body)
    with pytest.raises(DownloadError, match=message):
        download(server.url + 'f.zip', path, SHA1, member='file.bin')
    assert len(server.requests) == 2
    assert not os.path.exists(path)
    assert beside(path) == []


def test_damage_that_passes(server, path):
    """Only the first answer is wrong: the second download is kept."""
    server.resources['/f'] = Resource(BODY[::-1])

    class Mended(list):
        def append(self, request):
            super().append(request)
            if len(self) == 2:
                server.resources['/f'].body = BODY

    server._server.requests = requests = Mended()
    download(server.url + 'f', path, SHA1)
    assert read(path) == BODY
    assert len(requests) == 2
    assert 'Range' not in requests[1][1], 'the damaged part is not kept'


def test_wrong_file_is_replaced(server, path):
    os.makedirs(os.path.dirname(path))
    with open(path, 'wb') as file:
        file.write(b'damaged')
    fetch(server, path)


def test_broken_connections_are_resumed(server, path):
    fetch(server, path, cuts=[700_000, 500_000])
    starts = [headers.get('Range', 'bytes=0-')[6:-1] for _, headers in server.requests]
    assert len(starts) == 3
    for start, sent in zip(map(int, starts), [0, 700_000, 1_200_000]):
        assert sent - 3 * module.CHUNK < start <= sent


@pytest.mark.parametrize(
    'options', [{'ranges': False}, {'etag': ''}, {'etag': 'W/"weak"'}, {'wrong_range': True}]
)
def test_restart_where_the_server_cannot_resume(server, path, options):
    fetch(server, path, cuts=[700_000], **options)
    if 'etag' in options:  # no tag that could validate a range
        assert all('Range' not in headers for _, headers in server.requests)


def test_restart_where_the_file_has_changed(server, path):
    server.resources['/f'] = Resource(BODY[::-1], cuts=[700_000] * 5, ranges=False)
    with pytest.raises(DownloadError, match='700000 of 2097152 bytes|broke off'):
        download(server.url + 'f', path, SHA1)
    fetch(server, path, etag='"v2"')
    assert server.requests[-1][1]['If-Range'] == '"v1"'


@pytest.mark.parametrize('etag, size', [('"v2"', 0), ('"v1"', 7)], ids=['ETag', 'size'])
def test_two_versions_are_not_mixed(server, path, monkeypatch, etag, size):
    """Also where the server sends the rest of another version than the one asked for."""
    old, new = b'a' * 200_000, b'b' * (200_000 + size)
    server.resources['/file'] = Resource(old, '"v1"', cuts=[100_000])
    monkeypatch.setattr(module, 'ATTEMPTS', 1)
    with pytest.raises(DownloadError):
        download(server.url + 'file', path)
    monkeypatch.setattr(module, 'ATTEMPTS', 2)
    server.resources['/file'] = Resource(new, etag, mixes=True)
    download(server.url + 'file', path)
    assert 'Range' in server.requests[1][1] and read(path) == new


@pytest.mark.parametrize(
    'options',
    [
        {'headers': {'Content-Length': '\xb2'}},
        {'headers': {'Content-Length': '-5'}},
        {'headers': {'Location': 'http://['}, 'status': 302},
        {'headers': {'Location': 'http://' + 'a' * 70 + '.b/'}, 'status': 302},
        {'headers': {'Location': 'file:///etc/passwd'}, 'status': 302},
    ],
)
def test_odd_answers(server, path, options):
    server.resources['/file'] = Resource(b'content', **options)
    with pytest.raises(DownloadError, match='/file: '):
        download(server.url + 'file', path)
    assert not os.path.exists(path)


def test_bounds_of_size_and_time(server, path, monkeypatch):
    server.resources['/file'] = Resource(b'x' * 2000)
    monkeypatch.setattr(module, 'MOST_BYTES', 1000)
    with pytest.raises(DownloadError, match='has more than 1000 bytes'):
        download(server.url + 'file', path)
    monkeypatch.setenv('MODEL_ZOO_LIMITS', '2')
    assert len(read(download(server.url + 'file', path))) == 2000
    monkeypatch.setattr(module, 'MOST_SECONDS', 0)
    os.remove(path)
    with pytest.raises(DownloadError, match='takes more than 0'):
        download(server.url + 'file', path)
    monkeypatch.setenv('MODEL_ZOO_LIMITS', 'many')
    with pytest.raises(InputError, match="MODEL_ZOO_LIMITS is 'many'"):
        download(server.url + 'file', path)


def test_part_of_another_address_is_not_taken(server, path):
    server.resources['/f'] = Resource(BODY[::-1], cuts=[700_000] * 5, ranges=False)
    with pytest.raises(DownloadError):
        download(server.url + 'f', path, SHA1)
    server.resources['/g'] = Resource(BODY)
    download(server.url + 'g', path, SHA1)
    assert server.paths().count('/g') == 1
    assert 'Range' not in server.requests[-1][1]
    assert read(path) == BODY


def test_interrupt_keeps_the_part(server, path, monkeypatch):
    server.resources['/f'] = Resource(BODY)
    iter_content = module.requests.Response.iter_content

    def interrupted(self, size):
        blocks = iter_content(self, size)
        yield next(blocks)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module.requests.Response, 'iter_content', interrupted)
        with pytest.raises(KeyboardInterrupt):
            download(server.url + 'f', path, SHA1)
    assert beside(path) == ['file.bin.part', 'file.bin.part.json']
    fetch(server, path)
    assert server.requests[-1][1]['Range'] == f'bytes={module.CHUNK}-'
    assert beside(path) == []


def test_complete_part_is_only_installed(server, path, monkeypatch):
    """The process was stopped between the last byte and the rename."""
    server.resources['/f'] = Resource(BODY)

    def stopped(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, '_install', stopped)
        with pytest.raises(KeyboardInterrupt):
            download(server.url + 'f', path, SHA1)
    fetch(server, path)  # it asks for no byte: the answer is 416
    assert server.requests[-1][1]['Range'] == f'bytes={len(BODY)}-'


def test_passing_server_errors_are_retried(server, path):
    fetch(server, path, statuses=[503, 500, 429])
    assert len(server.requests) == 4


def test_lasting_server_errors(server, path):
    server.resources['/f'] = Resource(BODY, statuses=[503] * 9)
    with pytest.raises(DownloadError, match='HTTP 503 .*5 attempts'):
        download(server.url + 'f', path, SHA1)
    with pytest.raises(DownloadError, match='HTTP 404'):
        download(server.url + 'missing', path, SHA1)
    assert server.paths().count('/missing') == 1, 'a missing file is not asked for again'


def test_silent_server(server, path, monkeypatch):
    monkeypatch.setattr(module, 'TIMEOUT', (1, 0.05))
    monkeypatch.setattr(module, 'ATTEMPTS', 2)
    server.resources['/f'] = Resource(BODY, delay=0.3)
    with pytest.raises(DownloadError, match='does not answer'):
        download(server.url + 'f', path)


def test_unreachable(path, monkeypatch):
    monkeypatch.setenv('no_proxy', '*')
    monkeypatch.setattr(module.time, 'sleep', lambda seconds: pytest.fail('retried'))
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    with pytest.raises(DownloadError, match='connection refused'):
        download(f'http://127.0.0.1:{port}/f', path)
    with pytest.raises(DownloadError, match='host name cannot be resolved'):
        download('http://nowhere.invalid/f', path)
    with pytest.raises(DownloadError, match='not-an-address'):
        download('not-an-address', path)


def test_full_disk(server, path, monkeypatch):
    server.resources['/f'] = Resource(BODY)
    usage = shutil.disk_usage('.')._replace(free=1000)
    monkeypatch.setattr(module.shutil, 'disk_usage', lambda folder: usage)
    with pytest.raises(DownloadError, match='2 MB do not fit on the disk; free some space'):
        download(server.url + 'f', path, SHA1)
    assert not os.path.exists(path)


def test_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(InputError, match='cannot write to directory'):
        download(server.url + 'f', tmp_path / 'file' / 'f')
    assert server.requests == []


def test_two_processes_download_once(server, path):
    server.resources['/f'] = Resource(BODY, delay=0.5)
    code = (
        'import sys; sys.path[:0] = sys.argv[4:];'
        'from model_zoo.pretrained.download import Checksum, download;'
        "print(download(sys.argv[1], sys.argv[2], Checksum('sha1', sys.argv[3])))"
    )
    arguments = ['-c', code, server.url + 'f', path, SHA1.digest, *sys.path]
    processes = [warm.Process(arguments, stdout=subprocess.PIPE) for _ in '12']
    outputs = [process.stdout.read().strip() for process in processes]
    assert outputs == [path, path]
    assert server.paths() == ['/f']
    assert read(path) == BODY


def test_two_threads_download_once(server, path):
    server.resources['/f'] = Resource(BODY, delay=0.2)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(download, [server.url + 'f'] * 2, [path] * 2, [SHA1] * 2))
    assert found == [path, path] and server.paths() == ['/f']


def test_a_link_in_the_place_of_the_part_is_not_followed(server, path, tmp_path):
    victim = tmp_path / 'victim'
    victim.write_text('mine')
    os.makedirs(os.path.dirname(path))
    for name in (f'{path}.part', f'{path}.part.json'):
        os.symlink(victim, name)
    fetch(server, path)
    assert victim.read_text() == 'mine'


def test_https_is_not_left():
    response = requests.Response()
    response.status_code, response.url = 302, 'https://example.org/file'
    response.headers['Location'] = 'https://elsewhere.org/file'
    assert _Session().get_redirect_target(response) == 'https://elsewhere.org/file'
    response.headers['Location'] = '//elsewhere.org/file'
    _Session().get_redirect_target(response)
    response.headers['Location'] = 'http://elsewhere.org/file'
    with pytest.raises(DownloadError, match='not https'):
        _Session().get_redirect_target(response)


def test_progress(server, path, monkeypatch, capsys, caplog):
    server.resources['/f'] = Resource(BODY)
    with caplog.at_level('INFO'):
        download(server.url + 'f', path)
    assert 'downloading file.bin (2.1 MB)' in caplog.text
    assert capsys.readouterr().err == ''
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: True, raising=False)
    download(server.url + 'f', path + '2')
    assert 'file.bin2: 100%' in capsys.readouterr().err
