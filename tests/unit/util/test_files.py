"""Files are written whole or not at all."""

import contextlib
import json
import os
import pathlib
import socket
import stat
import subprocess
import sys

import pytest
from refusals import refuses

from model_zoo.errors import InputError, PretrainedNotFoundError
from model_zoo.util.files import (
    atomic_write,
    lock_file,
    remove_leftovers,
    write_json,
    written_together,
)
from model_zoo.util.reading import parse_json


@contextlib.contextmanager
def writing(path, mode, content='new'):
    """`content` is written in the context, and in its place behind it."""
    with atomic_write(path, mode) as target:
        if mode is None:
            pathlib.Path(target).write_text(content)
        else:
            target.write(content if mode == 'w' else content.encode())
        yield


def _write(*arguments):
    with writing(*arguments):
        pass


@pytest.mark.parametrize('mode', ['w', 'wb', None])
def test_written(tmp_path, mode):
    path = tmp_path / 'file'
    path.write_text('older')
    path.chmod(0o604)
    with writing(path, mode):
        assert path.read_text() == 'older'
    assert path.read_text() == 'new' and path.stat().st_mode & 0o777 == 0o604
    assert os.listdir(tmp_path) == ['file']


@pytest.mark.parametrize('mode', ['w', 'wb', None])
@pytest.mark.parametrize('error', [KeyboardInterrupt, ValueError, SystemExit])
def test_interrupted(tmp_path, mode, error):
    path = tmp_path / 'file'
    path.write_text('old')
    with pytest.raises(error), atomic_write(path, mode):
        raise error
    assert path.read_text() == 'old'
    assert os.listdir(tmp_path) == ['file']


ERRORS = [
    (OSError(28, 'No space left on device'), InputError),
    (PretrainedNotFoundError('no weights'), PretrainedNotFoundError),  # an OSError, too
    (KeyboardInterrupt(), KeyboardInterrupt),
]


@pytest.mark.parametrize('error, raised', ERRORS)
def test_errors_within(tmp_path, error, raised):
    with pytest.raises(raised), atomic_write(tmp_path / 'file'):
        raise error
    assert os.listdir(tmp_path) == []
    for folder in (f'{tmp_path}', f'{tmp_path}/new/'):
        with pytest.raises(InputError), atomic_write(folder):
            pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize('error, raised', ERRORS)
def test_files_together_or_none(tmp_path, error, raised):
    (tmp_path / 'a').write_text('old')
    with written_together(str(tmp_path), 'x-') as folder:
        assert os.path.basename(folder).startswith('.x-')
        for name in 'ba':
            write_json(os.path.join(folder, name), name)
        assert (tmp_path / 'a').read_text() == 'old' and not (tmp_path / 'b').exists()
    assert sorted(os.listdir(tmp_path)) == ['a', 'b']
    with pytest.raises(raised), written_together(str(tmp_path)) as folder:
        write_json(os.path.join(folder, 'a'), 'x')
        raise error
    assert json.loads((tmp_path / 'a').read_text()) == 'a'
    assert sorted(os.listdir(tmp_path)) == ['a', 'b']


def test_what_a_killed_writer_left_goes(tmp_path):
    """What a living one writes stays."""
    target = tmp_path / 'file'
    for write in (f'atomic_write({str(target)!r})', f'written_together({str(tmp_path)!r}, "x-")'):
        code = (
            'import os; from model_zoo.util.files import atomic_write, written_together\n'
            f'with {write} as file:\n'
            '    if isinstance(file, str): file = open(os.path.join(file, "a"), "w")\n'
            '    file.write("x"); file.flush(); os._exit(1)\n'
        )
        subprocess.run([sys.executable, '-c', code])
    assert len(left := os.listdir(tmp_path)) == 2 and all(name[0] == '.' for name in left)
    with written_together(str(tmp_path), 'x-') as folder, atomic_write(target) as file:
        file.write('new')
        file.flush()
        remove_leftovers(str(tmp_path))
        assert len(os.listdir(tmp_path)) == 2 and os.path.isdir(folder)
    assert os.listdir(tmp_path) == ['file'] and target.read_text() == 'new'


@pytest.mark.parametrize('mode', ['w', 'wb', None])
def test_content_reaches_the_disk_before_the_name(tmp_path, mode, monkeypatch):
    path = tmp_path / 'file'
    synced = []

    def fsync(handle):
        assert not path.exists()
        synced.append(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, 'fsync', fsync)
    with atomic_write(path, mode):
        pass
    assert synced == [path.stat().st_ino]


@pytest.mark.parametrize('mode', ['w', None])
def test_permissions_follow_the_umask(tmp_path, mode, monkeypatch):
    old = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, 'umask')  # it is the whole process's: other threads write files too
            _write(tmp_path / 'file', mode)
    finally:
        os.umask(old)
    assert (tmp_path / 'file').stat().st_mode & 0o777 == 0o640


_FIELDS = {'name': str, 'sizes': dict[str, int | None], 'rate': float | None}


DECLARED = [
    ('{"name": "x", "sizes": {"a": 1, "b": null}, "rate": 1}', _FIELDS, True),
    ('{"rate": 1}', _FIELDS, False),
    ('{"name": "x", "sizes": {"a": true}}', _FIELDS, False),
    ('{"name": "x", "sizes": {}, "rate": 1e999}', _FIELDS, False),
    ('{"a": [1, 2], "more": 0}', {'a': list[int], 'b': str | None}, True),
    ('{"a": [1, 2.5]}', {'a': list[int]}, False),
    ('[{"b": 1}]', list[dict[str, str]], False),
    ('null', int | str, False),
    ('[' * 64 + ']' * 64, object, True),
    ('-' + '1' * 308, float, True),
    ('{', object, False),
]


@pytest.mark.parametrize('text, shape, is_right', DECLARED)
def test_a_json_text_is_what_its_reader_declares(text, shape, is_right):
    if is_right:
        assert parse_json(text, shape) == parse_json(text.encode(), shape) == json.loads(text)
    else:
        with pytest.raises(ValueError):
            parse_json(text, shape)


@pytest.mark.parametrize('mode', ['w', 'wb', None])
def test_links_are_followed(tmp_path, mode):
    (tmp_path / 'disk').mkdir()
    for name in ('there', 'dangling'):
        (tmp_path / name).symlink_to(f'disk/{name}')
    (tmp_path / 'disk' / 'there').write_text('old')
    for name in ('there', 'dangling'):
        _write(tmp_path / name, mode)
        assert (tmp_path / name).is_symlink() and (tmp_path / 'disk' / name).read_text() == 'new'
    assert sorted(os.listdir(tmp_path / 'disk')) == ['dangling', 'there']


@pytest.mark.parametrize('mode', ['w', 'wb', None])
def test_a_pipe_is_written_to(tmp_path, mode):
    os.mkfifo(tmp_path / 'pipe')
    reader = os.open(tmp_path / 'pipe', os.O_RDONLY | os.O_NONBLOCK)
    _write(tmp_path / 'pipe', mode)
    assert os.read(reader, 100) == b'new'
    os.close(reader)
    assert (tmp_path / 'pipe').is_fifo() and os.listdir(tmp_path) == ['pipe']


def test_what_a_program_has_opened_is_appended_to(tmp_path):
    with open(tmp_path / 'log', 'w+b', buffering=0) as file:
        file.write(b'before\n')
        for mode in ('w', 'wb'):
            _write(f'/dev/fd/{file.fileno()}', mode, 'new\n')
    assert (tmp_path / 'log').read_text() == 'before\nnew\nnew\n'


def test_files_together_keep_links_and_permissions(tmp_path):
    (tmp_path / 'disk').mkdir()
    (tmp_path / 'a').symlink_to('disk/a')
    for name in ('disk/a', 'b'):
        (tmp_path / name).write_text('old')
        (tmp_path / name).chmod(0o604)
    with written_together(str(tmp_path)) as folder:
        for name in 'ab':
            write_json(os.path.join(folder, name), name)
    for name in ('disk/a', 'b'):
        assert json.loads((tmp_path / name).read_text()) == name[-1]
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o604
    assert (tmp_path / 'a').is_symlink() and len(os.listdir(tmp_path)) == 3


def test_folders_sockets_and_files_that_nobody_may_write_are_refused(tmp_path):
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'to folder').symlink_to('folder')
    (tmp_path / 'locked').write_text('old')
    (tmp_path / 'locked').chmod(0o444)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / 'socket'))
        for name in ('folder', 'to folder', 'locked', 'socket', ''):
            with refuses(says=name):
                _write(f'{tmp_path}/{name}', 'w')
        assert stat.S_ISSOCK((tmp_path / 'socket').stat().st_mode)
    assert (tmp_path / 'locked').read_text() == 'old'
    assert {*os.listdir(tmp_path)} == {'folder', 'to folder', 'locked', 'socket'}


def test_a_lock(tmp_path):
    (tmp_path / 'folder').mkdir()
    with refuses(says='folder'):
        lock_file(str(tmp_path / 'folder'), 'busy')
    lock = lock_file(str(tmp_path / 'lock'), 'busy')
    with refuses(says='busy'):
        lock_file(str(tmp_path / 'lock'), 'busy')
    lock.release()
    lock_file(str(tmp_path / 'lock'), 'busy').release()
