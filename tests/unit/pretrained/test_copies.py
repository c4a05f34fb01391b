"""Copies of what a URL names."""

import json
import uuid

import pytest

from model_zoo.pretrained.find import copy_of
from model_zoo.util import remote

pytest.importorskip('fsspec')


@pytest.fixture
def url(tmp_path):
    url = f'memory://{uuid.uuid4()}/model'
    (tmp_path / 'source').write_text('{}')
    for name in ('config.json', 'sub/a.txt'):
        remote.upload(str(tmp_path / 'source'), remote.join(url, name))
    return url


@pytest.mark.parametrize('note', ['[]', '', '{"config.json": 3}', 'null', '[' * 99, '{"a": {}}'])
def test_a_damaged_note_means_that_all_is_fetched(url, note, tmp_path):
    copy_of(url, str(tmp_path / 'copy'))
    (tmp_path / 'copy' / 'copied.json').write_text(note)
    (tmp_path / 'copy' / 'model' / 'config.json').write_text('old')
    copy_of(url, str(tmp_path / 'copy'))
    assert (tmp_path / 'copy' / 'model' / 'config.json').read_text() == '{}'
    assert set(json.loads((tmp_path / 'copy' / 'copied.json').read_text())) == {
        'config.json', 'sub/a.txt'
    }  # fmt: skip


def test_only_what_was_copied_is_removed(url, tmp_path):
    copy_of(url, str(tmp_path / 'copy'))
    (tmp_path / 'mine').write_text('x')
    note = json.loads((tmp_path / 'copy' / 'copied.json').read_text())
    names = ['../../mine', str(tmp_path / 'mine'), '', 'sub', 'gone']
    note.update(dict.fromkeys(names, [1, '']))
    (tmp_path / 'copy' / 'copied.json').write_text(json.dumps(note))
    remote.remove_file(remote.join(url, 'config.json'))
    copy_of(url, str(tmp_path / 'copy'))
    assert (tmp_path / 'mine').exists() and (tmp_path / 'copy/model/sub/a.txt').exists()
    assert not (tmp_path / 'copy/model/config.json').exists()
