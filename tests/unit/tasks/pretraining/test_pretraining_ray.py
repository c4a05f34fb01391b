"""Samples that a Ray cluster makes; its workers and machines are killed meanwhile."""

import os
import subprocess
import sys

import pytest
from ray_alone import ROOT, run_alone

from bert.tokenizer import BertTokenizer
from model_zoo.errors import MissingExtraError
from model_zoo.tasks.pretraining import (
    Corpus,
    SampleMaker,
    SampleOptions,
    create_shards,
)

OPTIONS = SampleOptions(32, 5, 3)


@pytest.fixture
def maker(fixtures):
    folder = fixtures / 'pretraining'
    text = [str(folder / 'sample_text.txt')] * 40
    return SampleMaker(Corpus(text), BertTokenizer(folder / 'vocab.txt'), OPTIONS)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_finished_parts_are_left_out(maker, tmp_path, monkeypatch):
    made = []
    make = SampleMaker.make
    monkeypatch.setattr(
        SampleMaker, 'make', lambda self, *args: made.append(args[-1]) or make(self, *args)
    )
    first = create_shards(maker, tmp_path, num_outputs=5, resume=True)
    before = contents(tmp_path)
    assert made == [0, 1, 2, 3, 4] and len(before) == 5
    del made[:]
    assert create_shards(maker, tmp_path, num_outputs=5, resume=True) == first and not made
    os.remove(tmp_path / 'part-001.npz')
    (tmp_path / 'part-003.npz').write_bytes(b'cut off')
    (tmp_path / '.part-001.npz0123abcd.part').write_bytes(b'of a killed worker')
    os.remove(tmp_path / '.done' / 'part-004.npz.json')
    assert create_shards(maker, tmp_path, num_outputs=5, resume=True) == first
    assert made == [1, 3, 4] and contents(tmp_path) == before
    del made[:]
    create_shards(maker, tmp_path, num_outputs=5, resume=True, seed=1)  # another job
    assert len(made) == 5 and contents(tmp_path) != before
    del made[:]
    create_shards(maker, tmp_path, num_outputs=5)
    assert len(made) == 5 and contents(tmp_path) == before


def test_without_ray(maker, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(MissingExtraError, match=r'gluon-transformer-zoo\[ray\]'):
        create_shards(maker, tmp_path, ray='auto')


PROGRAM = """
import json, os, pathlib, sys, threading, time
import ray
from ray.cluster_utils import Cluster

from model_zoo.errors import InputError
from model_zoo.util.executor import RayTasks


class Slow:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def __call__(self, number):
        with open(self.folder / f'try-{number}-{time.monotonic_ns()}', 'w') as file:
            json.dump({'pid': os.getpid(), 'node': ray.get_runtime_context().get_node_id()}, file)
        if number == -1:
            raise InputError('bad number')
        time.sleep(0.5)
        return number * number


def tries(folder):
    for path in sorted(pathlib.Path(folder).glob('try-*')):
        text = path.read_text()
        if text:
            yield json.loads(text)


folder = sys.argv[1]
cluster = Cluster(initialize_head=True, head_node_args={'num_cpus': 1})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
ray.init(address=cluster.address, log_to_driver=False, logging_level='ERROR')
here = ray.get_runtime_context().get_node_id()


def kill():
    deadline = time.time() + 120
    killed = None
    while time.time() < deadline:
        found = list(tries(folder))
        nodes = {each['node'] for each in found}
        if killed is None and len(found) >= 3:
            killed = found[-1]['pid']
            os.kill(killed, 9)
        if killed is not None and len(nodes) == 2 and len(found) >= 8:
            cluster.remove_node(second, allow_graceful=False)
            return
        time.sleep(0.05)


killer = threading.Thread(target=kill)
killer.start()
with RayTasks(Slow(folder), cluster.address) as tasks:
    results = list(tasks.map((number,) for number in range(24)))
    killer.join()
    try:
        tasks.submit(-1).result()
    except InputError as error:
        message = str(error)
found = list(tries(folder))
alive = sum(node['Alive'] for node in ray.nodes())
print(json.dumps({'results': results, 'tries': len(found), 'message': message, 'alive': alive,
                  'nodes': len({each['node'] for each in found})}))
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.slow
def test_a_worker_and_a_machine_are_killed(tmp_path):
    """Two machines with a worker each: what they were at is done again, and nothing else."""
    found = run_alone('-c', PROGRAM, tmp_path)
    assert found['results'] == [number * number for number in range(24)]
    assert found['alive'] == 1 and found['nodes'] == 2
    # each killed at most once in the middle of a task, and one call that fails by itself
    assert 24 + 1 < found['tries'] <= 24 + 1 + 4
    assert found['message'] == 'bad number'


SAMPLES = """
import json, sys
from model_zoo.app import cli
sys.path.insert(0, sys.argv[1])
import create_pretraining_data as script
status = cli.run(script.main, sys.argv[2:])
print(json.dumps(status))
"""


@pytest.mark.slow
def test_samples_are_those_of_one_process(fixtures, tmp_path):
    source = fixtures / 'pretraining'
    argv = ['--input_file', source / 'sample_text.txt', '--vocab', source / 'vocab.txt',
            '--max_seq_length', 32, '--num_outputs', 6]  # fmt: skip
    here = subprocess.run(
        [sys.executable, ROOT / 'scripts' / 'create_pretraining_data.py', *map(str, argv),
         '--output_dir', tmp_path / 'one', '--num_workers', '1'],
        capture_output=True, env={**os.environ, 'PYTHONPATH': str(ROOT)},
    )  # fmt: skip
    assert here.returncode == 0, here.stderr
    more = ['--output_dir', tmp_path / 'ray', '--ray', 'local']
    assert run_alone('-c', SAMPLES, ROOT / 'scripts', *argv, *more) == 0
    assert contents(tmp_path / 'one') == contents(tmp_path / 'ray') and contents(tmp_path / 'one')


@pytest.mark.slow
def test_no_cluster(tmp_path):
    program = (
        'import json\nfrom model_zoo.util.executor import RayTasks\n'
        'try:\n    RayTasks(print, "auto")\nexcept ValueError as error:\n'
        '    print(json.dumps(str(error)))\n'
    )
    said = run_alone('-c', program)
    assert said.startswith('`ray` auto: no Ray cluster can be reached (') and '\n' not in said
