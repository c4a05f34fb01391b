"""Files by URL: in memory, and on a real S3 server whose connections break."""

import io
import os
import pathlib
import uuid

import local_s3
import numpy as np
import pytest

from model_zoo.errors import InputError, MissingExtraError
from model_zoo.pretrained.places import copy_of
from model_zoo.util import remote
from model_zoo.util.files import atomic_write, make_output_dir, write_json
from model_zoo.util.reading import read_json, read_lines

pytest.importorskip('fsspec')


@pytest.fixture
def bucket(s3_port, monkeypatch):
    return local_s3.new_bucket(monkeypatch, s3_port)


@pytest.fixture(params=['s3', 'memory', 'file'])
def place(request, tmp_path):
    if request.param == 's3':
        return request.getfixturevalue('bucket')
    if request.param == 'file':
        return f'file://{tmp_path}'
    return f'memory://test-{uuid.uuid4()}'


@pytest.mark.parametrize('text', [b'a\rb\rc', b'\xef\xbb\xbfa\rb\rc', b'a\nb\nc'])
def test_lines_have_numbers(tmp_path, text):
    (tmp_path / 'a.txt').write_bytes(text)
    found = [(number, line.strip()) for number, line in read_lines(tmp_path / 'a.txt')]
    assert found == [(1, 'a'), (2, 'b'), (3, 'c')]


def test_there_and_back(place, tmp_path):
    folder = make_output_dir(f'{place}/a/')
    assert remote.names_in(folder) == []
    path = remote.join(folder, 'text.txt')
    with atomic_write(path) as file:
        file.write('é one\ntwo\u2028\n')
    assert [line for _, line in read_lines(path)] == ['é one\n', 'two\u2028\n']
    write_json(f'{folder}/b/facts.json', {'a': 1})
    assert read_json(f'{folder}/b/facts.json') == {'a': 1}
    with atomic_write(path, 'wb') as file:  # once more
        np.save(file, np.arange(3))
    with remote.open_binary(path) as file:
        content = file.read()
    assert np.load(io.BytesIO(content)).tolist() == [0, 1, 2]
    assert remote.file_size(path) == len(content)
    assert remote.names_in(folder) == ['text.txt']
    assert set(remote.sizes_in(folder)) == {'text.txt', 'b/facts.json'}
    kinds = [
        (remote.is_file(each), remote.is_folder(each), remote.exists(each))
        for each in (path, folder, f'{folder}/nothing')
    ]
    assert kinds == [(True, False, True), (False, True, True), (False, False, False)]
    remote.remove_file(path)
    assert remote.names_in(folder) == []


def test_a_failed_write_leaves_the_old_file(place):
    path = f'{place}/a.txt'
    with atomic_write(path) as file:
        file.write('old')
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write('new')
        raise RuntimeError
    assert [line for _, line in read_lines(path)] == ['old']
    assert remote.names_in(place) == ['a.txt']


def test_wildcards(place):
    for name in ('a.txt', 'b.txt', 'c.md'):
        write_json(f'{place}/in/{name}', name)
    found = sorted(remote.matching(f'{place}/in/*.txt'))
    assert [read_json(path) for path in found] == ['a.txt', 'b.txt']
    assert remote.matching(f'{place}/in/c.md') == [f'{place}/in/c.md']
    assert remote.matching(f'{place}/in/d.md') == []


ERRORS = [
    ('{bucket}/nothing.txt', InputError),
    ('s3://no-such-bucket-here/a.txt', InputError),
    ('zzz://a/b', InputError),
    ('gs://bucket/a.txt', MissingExtraError),
]


@pytest.mark.parametrize('url, error', ERRORS)
def test_errors_are_ours(bucket, url, error):
    with pytest.raises(error):
        list(read_lines(url.format(bucket=bucket)))


def test_a_copy_is_made_again_when_the_files_change(place, tmp_path):
    folder = str(tmp_path / 'copy')
    for text, names in (('one', ['config.json', 'sub/a']), ('three', ['config.json', 'sub/b'])):
        for name in names:
            with atomic_write(f'{place}/m/{name}') as file:
                file.write(text)
        copy = copy_of(f'{place}/m', folder)
        assert copy_of(f'{place}/m', folder) == copy
        for name in names:
            with open(os.path.join(copy, name)) as file:
                assert file.read() == text
        remote.remove_file(f'{place}/m/{names[1]}')
    assert not os.path.exists(os.path.join(copy, 'sub', 'a'))
    assert len([name for name in os.listdir(folder) if name != '.lock']) == 1


def test_a_failed_copy_leaves_nothing(place, tmp_path, monkeypatch):
    for name in 'ab':
        write_json(f'{place}/m/{name}', name)
    download = remote.download

    def fail(url, target):
        if url.endswith('b'):
            raise KeyboardInterrupt
        download(url, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(remote, 'download', fail)
        copy_of(f'{place}/m', str(tmp_path / 'copy'))
    assert os.listdir(tmp_path / 'copy') == ['.lock']
    assert sorted(os.listdir(copy_of(f'{place}/m', str(tmp_path / 'copy')))) == ['a', 'b']


def test_hostile_names_of_an_object_store_are_left_out(bucket, tmp_path):
    """Keys may be anything; those that would leave the folder are no files of it."""
    import fsspec

    system, name = fsspec.filesystem('s3'), bucket[len('s3://') :]
    client = system.s3

    async def put(key):
        await client.put_object(Bucket=name, Key=key, Body=b'x')

    good = {'config.json', 'sub/a', '~root', '%2e%2e%2fx', 'q?x=1', 'a b', '-rf', '*'}
    bad = ['../x', '../../x', 'a/../../x', '/etc/x', 'a//b', './config.json', '..', '.', 'nul\0x']
    for key in [*good, *bad]:
        fsspec.asyn.sync(system.loop, put, f'm/{key}')
    assert set(remote.sizes_in(f'{bucket}/m')) == good
    copy = pathlib.Path(copy_of(f'{bucket}/m', str(tmp_path / 'copy')))
    files = {each for each in tmp_path.rglob('*') if each.is_file()}
    assert files == {tmp_path / 'copy' / '.lock', *(copy / key for key in good)}
