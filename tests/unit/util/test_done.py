"""Markers of finished files."""

import pytest

from model_zoo.util.done import mark_done, read_done


@pytest.mark.parametrize('damaged', ['', '[]', '{}', '{"job": 1, "facts": {}}', '\x80'])
def test_a_damaged_marker_is_none(tmp_path, damaged):
    path = str(tmp_path / 'a.txt')
    (tmp_path / 'a.txt').write_text('x')
    mark_done(path, ['job', 1], texts=3)
    (tmp_path / '.done' / 'a.txt.json').write_text(damaged, encoding='latin1')
    assert read_done(path, ['job', 1]) is None
