"""A Ray cluster of this machine alone: who can reach it."""

import json
import os
import subprocess
import sys

import pytest
from script_runs import ROOT

from model_zoo.util.executor import _make_token

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
