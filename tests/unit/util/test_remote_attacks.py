"""An S3 server, or who else may write to its bucket, that means harm."""

import os
import tracemalloc

import hostile_s3
import local_s3
import pytest

from model_zoo.app.run_folder import RemoteFolder
from model_zoo.errors import InputError
from model_zoo.pretrained.find import copy_of
from model_zoo.util import remote
from model_zoo.util.files import upload
from model_zoo.util.reading import read_lines

pytest.importorskip('s3fs')
URL = f's3://{hostile_s3.BUCKET}/m'
REPLACED = 'it was replaced while it was read'


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(remote, '_CHUNK', 1000)
    monkeypatch.setattr(remote, '_DELAYS', (0,))
    monkeypatch.setenv('AWS_MAX_ATTEMPTS', '1')
    server = hostile_s3.HostileS3({'m/config.json': b'{}', 'm/text': b'line\n' * 1000})
    local_s3.set_up(monkeypatch, server.port)
    yield server
    server.close()


def read():
    return [line for _, line in read_lines(f'{URL}/text')]


def test_the_server_itself_is_right(server, tmp_path):
    assert read() == ['line\n'] * 1000
    copy = copy_of(URL, str(tmp_path))
    assert sorted(os.listdir(copy)) == ['config.json', 'text']


@pytest.mark.parametrize('after', [1, 3])
def test_a_file_that_is_replaced_while_it_is_read_is_refused(server, tmp_path, after):
    def replace(handler, method, key, query):
        count = sum(each[:2] == ('GET', 'm/text') for each in server.requests)
        if count == after:
            server.objects['m/text'] = b'LINE\n' * 1000
        return False

    server.wrong = replace
    with pytest.raises(InputError, match=REPLACED):
        read()
    server.objects['m/text'] = b'line\n' * 1000
    server.requests.clear()
    with pytest.raises(OSError, match=REPLACED):
        copy_of(URL, str(tmp_path))
    assert not list(tmp_path.rglob('*text*'))


def test_a_file_that_is_replaced_behind_the_listing_is_refused(server, tmp_path):
    def replace(handler, method, key, query):
        if method == 'HEAD' and key == 'm/text':
            server.objects[key] = b'LINE\n' * 1000
        return False

    server.wrong = replace
    with pytest.raises(OSError, match=REPLACED):
        copy_of(URL, str(tmp_path))
    assert not list(tmp_path.rglob('*text*'))


def answer(server, asked, how):
    """Let the server answer ``how(handler, key)`` where ``asked(method, key, query)`` holds."""

    def wrong(handler, method, key, query):
        is_asked = bool(asked(method, key, query))
        if is_asked:
            how(handler, key)
        return is_asked

    server.wrong = wrong


def is_reading(method, key, query):
    return method == 'GET' and key


def deny(handler, key):
    handler.say_error(403, 'AccessDenied')


@pytest.mark.parametrize('size', [None, 10 << 30])
def test_no_more_is_read_than_was_asked_for(server, size):
    def pour(handler, key):
        handler.pour(206, size=size, ETag=f'"{handler.tag(key)}"')

    answer(server, is_reading, pour)
    tracemalloc.start()
    try:
        assert sum(map(len, read())) == 5000
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


def test_a_file_larger_than_the_disk_is_refused_before_it_is_read(server, tmp_path):
    def lie(handler, key):
        handler.list([('m/text', 1 << 60, 'a')])

    answer(server, lambda method, key, query: not key, lie)
    with pytest.raises(OSError, match='do not fit on the disk'):
        copy_of(URL, str(tmp_path))
    assert all(method != 'GET' or not key for method, key, _ in server.requests)


@pytest.mark.parametrize('sent', [b'', b'line\n' * 20])
def test_a_body_that_is_too_short_is_refused(server, sent):
    def cut(handler, key):
        handler.say(206, sent, ETag=f'"{handler.tag(key)}"')

    answer(server, is_reading, cut)
    with pytest.raises(InputError, match=f'{5 * len(sent)} bytes came instead of 1000'):
        read()


def test_a_body_that_comes_too_slowly_ends(server, monkeypatch):
    def trickle(handler, key):
        handler.pour(206, seconds=0.1, size=1000, ETag=f'"{handler.tag(key)}"')

    answer(server, is_reading, trickle)
    monkeypatch.setattr(remote, '_PATIENCE', 0.5)
    with pytest.raises(InputError, match='its server took more than 0.5 seconds'):
        read()


@pytest.mark.parametrize('count', [0, 50])
def test_a_listing_without_an_end_is_refused(server, count, tmp_path, monkeypatch):
    def go_on(handler, method, key, query):
        if key:
            return False
        page = int(query.get('continuation-token', 0))
        keys = [(f'm/{page}-{number}', 1, 'a') for number in range(count)]
        token = f'<NextContinuationToken>{page + 1}</NextContinuationToken>'
        handler.list(keys, f'<IsTruncated>true</IsTruncated>{token}')
        return True

    server.wrong = go_on
    monkeypatch.setattr(remote, '_MOST_LISTED', 1000)
    monkeypatch.setattr(remote, '_PATIENCE', 60 if count else 1)
    problem = 'more than 1000 files' if count else 'took more than 1 seconds'
    with pytest.raises(OSError, match=problem):
        copy_of(URL, str(tmp_path))
    monkeypatch.setattr(remote, '_PATIENCE', 1)
    with pytest.raises(OSError, match='took more than 1 seconds'):
        remote.matching(f'{URL}/*')


@pytest.mark.parametrize('where', ['listing', 'error'])
def test_markup_that_multiplies_is_not_expanded(server, where):
    status = 200 if where == 'listing' else 403
    answer(server, lambda *_: True, lambda handler, key: handler.say_xml(hostile_s3.BOMB, status))
    with pytest.raises(OSError) as caught:  # noqa: PT011
        remote.file_size(f'{URL}/text') if where == 'error' else remote.names_in(URL)
    assert len(str(caught.value)) < 500


def test_what_a_server_says_is_a_short_line(server):
    text = 'a\n&#x9b;31m &lt;b&gt;\n' * 1000
    answer(server, lambda *_: True, lambda handler, key: handler.say_error(400, 'Bad', text))
    with pytest.raises(InputError) as caught:
        read()
    assert '\n' not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize('key', ['../../x', '/x', 'a/../../x', '..', 'a//x'])
def test_no_key_leads_out_of_a_folder(server, tmp_path, monkeypatch, key):
    server.objects[f'm/{key}'] = b'x'
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path / 'tmp'))
    (tmp_path / 'tmp').mkdir()
    copy_of(URL, str(tmp_path / 'copy'))
    folder = RemoteFolder(URL)
    folder.pull()
    assert not list(tmp_path.rglob('x'))
    folder.discard()


def test_an_upload_that_is_refused_in_its_middle_leaves_the_old_file(server, tmp_path):
    answer(server, lambda method, key, query: query.get('partNumber', '1') != '1', deny)
    with open(tmp_path / 'large', 'wb') as file:
        file.truncate(120 << 20)  # three parts
    server.objects['m/large'] = b'old'
    with pytest.raises(InputError, match=f"cannot write '{URL}/large': permission denied"):
        upload(str(tmp_path / 'large'), f'{URL}/large')
    assert any(each[:2] == ('DELETE', 'm/large') for each in server.requests)  # its parts


def test_checksums_are_not_sent_where_a_file_was_refused(server, tmp_path, monkeypatch):
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    folder = RemoteFolder(URL)
    answer(server, lambda method, key, query: method == 'PUT' and 'model.params' in key, deny)
    for name in ('SHA256SUMS', 'config.json', 'model.params'):
        with open(os.path.join(folder.path, name), 'w') as file:
            file.write('new')
    with pytest.raises(InputError, match=f'permission denied.*the results stay in .*{tmp_path}'):
        folder.close()
    assert 'm/SHA256SUMS' not in server.objects
    assert os.path.exists(os.path.join(folder.path, 'model.params'))
