"""Notes of finished tasks, which are ours to lose."""

import json
import logging

import pytest

from model_zoo.errors import InputError
from model_zoo.util.executor import FinishedTasks

NOTE = '.done/a.txt.json'


@pytest.mark.parametrize(
    'damaged',
    ['', '[]', '{}', 'null', '{"job": 1, "size": 1, "facts": 3}', '"' * 9, '[' * 999, '\x80',
     '{"job": "x", "size": 1, "facts": [3]}', '{"job": "x", "size": "1", "facts": 3}',
     '{"job": "x", "size": 1, "facts": null}', '{"job": "x", "size": 1}'],
)  # fmt: skip
def test_a_damaged_note_means_not_done(tmp_path, damaged, caplog):
    finished = FinishedTasks(str(tmp_path), ['job', 1], int)
    (tmp_path / 'a.txt').write_text('x')
    finished.put('a.txt', 3)
    assert finished.get('a.txt') == 3 and not caplog.records
    (tmp_path / NOTE).write_text(damaged, encoding='latin1')
    assert finished.get('a.txt') is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and 'a.txt is made again' in record.getMessage()
    finished.put('a.txt', 4)
    assert finished.get('a.txt') == 4


def test_a_note_of_another_job_or_size_is_none(tmp_path, caplog):
    (tmp_path / 'a.txt').write_text('x')
    finished = FinishedTasks(str(tmp_path), ['job', 1], int)
    finished.put('a.txt', 3)
    assert FinishedTasks(str(tmp_path), ['job', 2], int).get('a.txt') is None
    note = json.loads((tmp_path / NOTE).read_text())
    (tmp_path / NOTE).write_text(json.dumps({**note, 'more': 1}))
    assert finished.get('a.txt') == 3
    (tmp_path / 'a.txt').write_text('xy')
    assert finished.get('a.txt') is None and not caplog.records


def test_what_is_no_note_is_not_removed(tmp_path):
    finished = FinishedTasks(str(tmp_path), ['job', 1], int)
    finished.put('a.txt', 3)
    (tmp_path / '.done' / 'thesis').write_text('x')
    FinishedTasks.forget(str(tmp_path))
    assert [each.name for each in (tmp_path / '.done').iterdir()] == ['thesis']
    (tmp_path / 'other').mkdir()
    (tmp_path / 'other' / '.done').symlink_to(tmp_path / '.done')
    with pytest.raises(InputError, match='is a link'):
        FinishedTasks.forget(str(tmp_path / 'other'))
