"""A Ray cluster of this machine alone, its errors, and notes of finished tasks."""

import json
import logging
import os
import subprocess
import sys

import pytest
from ray_alone import run_alone
from script_runs import ROOT

from model_zoo.errors import InputError
from model_zoo.util.executor import FinishedTasks, _make_token

PROGRAM = """
import json, os
from model_zoo.util.executor import join_cluster
before = set(os.environ)
ray, is_own = join_cluster('local')
left = sorted(set(os.environ) - before)
print(json.dumps([ray.get_runtime_context().gcs_address, is_own, left]))
ray.shutdown()
"""


def mode_of(path):
    return path.stat().st_mode & 0o777


def test_the_token_is_for_the_user_alone(tmp_path, monkeypatch):
    for name in ('RAY_AUTH_TOKEN', 'RAY_AUTH_TOKEN_PATH'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', str(tmp_path))
    path = tmp_path / '.ray' / 'auth_token'
    _make_token()
    token = path.read_text()
    assert mode_of(path) == 0o600 and len(token) == 64 and mode_of(path.parent) == 0o700
    path.chmod(0o644)  # as Ray makes it
    _make_token()
    assert mode_of(path) == 0o600 and path.read_text() == token
    path.unlink()
    monkeypatch.setenv('RAY_AUTH_TOKEN', 'a' * 64)
    _make_token()
    assert not path.exists()


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_no_others(tmp_path):
    pytest.importorskip('ray')
    environment = {name: value for name, value in os.environ.items() if 'RAY' not in name}
    environment.update(HOME=str(tmp_path), PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM], env=environment, capture_output=True, text=True,
        timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    address, is_own, left = json.loads(done.stdout.splitlines()[-1])
    # with another address of the machine, all of Ray would listen at each
    assert address.startswith('127.0.0.1:') and is_own
    assert 'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER' not in left
    assert mode_of(tmp_path / '.ray' / 'auth_token') == 0o600


ERRORS = """
import json
from model_zoo.errors import InputError
from model_zoo.util.executor import RayTasks

def fail(number):
    raise InputError(f'bad number {number}')

said = []
for address in ('auto', 'local'):
    try:
        with RayTasks(fail, address) as tasks:
            tasks.submit(7).result()
    except InputError as error:
        said.append(str(error))
print(json.dumps(said))
"""


@pytest.mark.slow
def test_errors_without_a_cluster_and_of_a_task():
    """tests/scripts kills workers and machines while they make samples."""
    without, of_a_task = run_alone('-c', ERRORS)
    assert without.startswith('`ray` auto: no Ray cluster can be reached (')
    assert '\n' not in without and of_a_task == 'bad number 7'


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
