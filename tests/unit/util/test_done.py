"""Markers of finished files."""

import pytest

from model_zoo.util.done import mark_done, read_done


@pytest.fixture
def path(tmp_path):
    (tmp_path / 'a.txt').write_text('x')
    return str(tmp_path / 'a.txt')


@pytest.mark.parametrize('damaged', ['', '[]', '{}', '{"job": 1, "facts": {}}', '\x80'])
def test_a_damaged_marker_is_none(path, tmp_path, damaged):
    mark_done(path, ['job', 1], texts=3)
    (tmp_path / '.done' / 'a.txt.json').write_text(damaged, encoding='latin1')
    assert read_done(path, ['job', 1]) is None
