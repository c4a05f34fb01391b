"""A Ray cluster of this machine alone, and errors."""

import json
import os

import pytest
from ray_alone import run_alone
from script_runs import ROOT, run_python

PROGRAM = """
import json, os
from model_zoo.util.ray_cluster import join_cluster
before = set(os.environ)
ray, is_own = join_cluster('local')
left = sorted(set(os.environ) - before)
print(json.dumps([ray.get_runtime_context().gcs_address, is_own, left]))
ray.shutdown()
"""


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_no_others(tmp_path):
    pytest.importorskip('ray')
    environment = {name: value for name, value in os.environ.items() if 'RAY' not in name}
    environment.update(HOME=str(tmp_path), PYTHONPATH=str(ROOT))
    done = run_python('-c', PROGRAM, env=environment)
    assert done.returncode == 0, done.stderr
    address, is_own, left = json.loads(done.stdout.splitlines()[-1])
    # with another address of the machine, all of Ray would listen at each
    assert address.startswith('127.0.0.1:') and is_own
    assert 'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER' not in left
    assert (tmp_path / '.ray').stat().st_mode & 0o777 == 0o700
    assert (tmp_path / '.ray' / 'auth_token').read_text()


ERRORS = """
import json
from model_zoo.errors import InputError
from model_zoo.util.ray_cluster import RayTasks

def fail(number):
    raise InputError(f'bad number {number}')

said = []
for address in ('auto', 'local'):
    try:
        with RayTasks(fail, address) as tasks:
            list(tasks.map([(7,)]))
    except InputError as error:
        said.append(str(error))
print(json.dumps(said))
"""


@pytest.mark.slow
def test_errors_without_a_cluster_and_of_a_task():
    without, of_a_task = run_alone('-c', ERRORS)
    assert 'ray auto' in without and '\n' not in without
    assert of_a_task == 'bad number 7'
