"""Files are written whole or not at all."""

import json
import os

import pytest

from model_zoo.errors import InputError, PretrainedNotFoundError
from model_zoo.util.files import atomic_write, make_writable_dir, write_json, written_together


@pytest.mark.parametrize('mode', ['w', 'wb', None])
def test_written(tmp_path, mode):
    path = tmp_path / 'file'
    path.write_text('old')
    with atomic_write(path, mode) as target:
        if mode is None:
            with open(target, 'w') as file:
                file.write('new')
        else:
            target.write('new' if mode == 'w' else b'new')
        assert path.read_text() == 'old'
    assert path.read_text() == 'new'
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


def test_full_disk(tmp_path):
    with pytest.raises(InputError, match="cannot write '.*file': No space left"), atomic_write(
        tmp_path / 'file'
    ):
        raise OSError(28, 'No space left on device')
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    'error, raised, message',
    [
        (OSError(30, 'Read-only file system'), InputError, 'cannot write to .*: Read-only'),
        (PretrainedNotFoundError('no weights'), PretrainedNotFoundError, '^no weights$'),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
)
def test_files_together_or_none(tmp_path, error, raised, message):
    (tmp_path / 'a').write_text('old')
    with written_together(str(tmp_path), 'x-') as folder:
        assert os.path.basename(folder).startswith('.x-')
        for name in 'ba':
            write_json(os.path.join(folder, name), name)
        assert (tmp_path / 'a').read_text() == 'old' and not (tmp_path / 'b').exists()
    assert sorted(os.listdir(tmp_path)) == ['a', 'b']
    with pytest.raises(raised, match=message), written_together(str(tmp_path)) as folder:
        write_json(os.path.join(folder, 'a'), 'x')
        raise error
    assert json.loads((tmp_path / 'a').read_text()) == 'a'
    assert sorted(os.listdir(tmp_path)) == ['a', 'b']


def test_files_together_where_none_can_be_written(tmp_path):
    with pytest.raises(InputError, match='cannot write to .*none.: No such'), written_together(
        str(tmp_path / 'none')
    ):
        raise AssertionError('there is no folder to write to')


def test_errors_of_ours_stay_what_they_are(tmp_path):
    with pytest.raises(PretrainedNotFoundError, match='^no weights$'), atomic_write(
        tmp_path / 'file'
    ):
        raise PretrainedNotFoundError('no weights')  # an OSError, but not of the writing
    assert os.listdir(tmp_path) == []


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


def test_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match='cannot write .*No such file'), atomic_write(
        tmp_path / 'none' / 'file'
    ):
        pass


def test_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic_write('file') as file:
        file.write('ü')
    assert (tmp_path / 'file').read_text('utf-8') == 'ü'


def test_permissions_follow_the_umask(tmp_path, monkeypatch):
    old = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, 'umask')  # it is the whole process's: other threads write files too
            with atomic_write(tmp_path / 'file') as file:
                file.write('x')
    finally:
        os.umask(old)
    assert (tmp_path / 'file').stat().st_mode & 0o777 == 0o640


def test_json(tmp_path):
    write_json(tmp_path / 'file.json', {'a': ['ü', 1.5]})
    text = (tmp_path / 'file.json').read_text('utf-8')
    assert json.loads(text) == {'a': ['ü', 1.5]} and 'ü' in text and text.endswith('}\n')


def test_directories(tmp_path):
    path = make_writable_dir(tmp_path / 'a' / 'b')
    assert os.path.isdir(path) and os.listdir(path) == []
    assert make_writable_dir(path) == path
    (tmp_path / 'file').write_text('')
    for bad in (tmp_path / 'file', tmp_path / 'file' / 'below'):
        with pytest.raises(InputError, match=f'cannot write to directory {str(bad)!r}'):
            make_writable_dir(bad)


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write everywhere')
def test_directory_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match='Permission denied'):
        make_writable_dir(tmp_path)
