"""The audit tells good outcomes from bad ones, also those that end its processes."""

import random
import sys

import pytest
import warm
from script_runs import ROOT, read_json

FOLDER = ROOT / 'tests' / 'audit'

#: targets of each kind of outcome, tried by the audit's processes
PROGRAM = """
import json, os, pathlib, signal, sys, time
sys.path[:0] = [sys.argv[2]]
import model_zoo
import pool
from model_zoo.errors import InputError
from pool import Pool
from target import Target

def refuse(*_):
    raise InputError('no')

def fail(shared, random, folder):
    (folder / 'file').write_text(str(random.random()))
    raise KeyError(shared)

def use_memory(*_):
    bytearray(4 << 30)

def fill_memory(*_):
    try:
        return [b'x' * (1 << 24) for _ in range(1 << 20)]
    except MemoryError as error:
        raise InputError('no') from error

def want_memory(*_):
    try:
        bytearray(4 << 30)
    except MemoryError as error:
        raise InputError('no') from error

def use_time(*_):
    while True:
        pass

pool.PATIENCE = 1
kinds = {'right': lambda *_: 'right', 'refused': refuse, 'failed': fail,
         'ended': lambda *_: os.kill(os.getpid(), signal.SIGSEGV), 'memory': use_memory,
         'filled': fill_memory, 'wanted': want_memory, 'time': use_time,
         'idle': lambda *_: time.sleep(1000)}
targets = {name: Target(name, lambda folder: 'shared', attempt,
                        seconds=1 if name in ('time', 'idle') else 60)
           for name, attempt in kinds.items()}
left, found = list(targets), {}

def tell(name, seed, outcome, why):
    if outcome is not None:
        found.setdefault(name, []).append((seed, outcome, why))

folder = pathlib.Path(sys.argv[1])
pool = Pool(targets, folder / 'work', folder / 'kept', 2)
pool.run(lambda: (left.pop(), 5, 2) if left else None, tell, time.monotonic() + 600)
(folder / 'found.json').write_text(json.dumps(found))
"""


def test_outcomes(tmp_path):
    (tmp_path / 'work').mkdir()
    done = warm.run(['-c', PROGRAM, tmp_path, FOLDER], env={'PYTHONPATH': str(ROOT)})
    assert done.returncode == 0, done.stderr
    found = read_json(tmp_path, 'found.json')
    assert found['right'] == [[5, 'right', ''], [6, 'right', '']]
    for name in ('refused', 'wanted'):
        assert found[name] == [[5, 'refused', 'no'], [6, 'refused', 'no']]
    for name, why in [('failed', "KeyError: 'shared'"), ('ended', 'its process ended: '),
                      ('memory', 'MemoryError'),
                      ('filled', 'the memory was full: no'), ('time', ''),
                      ('idle', 'it hangs')]:  # fmt: skip
        assert [each[:2] for each in found[name]] == [[5, 'failed'], [6, 'failed']]
        assert why in found[name][0][2]
    # on a busy machine time passes without being used
    assert found['time'][0][2].endswith(('its process ended: SIGXCPU', 'it hangs'))
    assert (tmp_path / 'kept' / 'failed-5' / 'attempt' / 'file').exists()
    assert read_json(tmp_path / 'kept' / 'ended-5', 'case.json')['seed'] == 5


def test_a_reader_is_tried_and_a_table_printed(tmp_path):
    argv = ['--attempts', '60', '--parts', 'files', '--only', 'CoNLL', '--output_dir', tmp_path]
    done = warm.run([FOLDER / '__main__.py', *argv])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[:5] == ['tried', 'right', 'refused', 'changed', 'failed']
    written = read_json(tmp_path, 'audit.json')
    assert written['tried'] == 60 and written['failed'] == 0 and written['refused'] > 5


@pytest.mark.parametrize('seed', range(3))
def test_damage_is_that_of_its_seed(seed, monkeypatch, fixtures):
    monkeypatch.setattr(sys, 'path', [str(FOLDER), *sys.path])
    from containers import damage_safetensors, damage_torch_zip
    from damage import damage_json

    folder = fixtures / 'checkpoints' / 'bert_transformers'
    for damage, path in [
        (damage_json, folder / 'config.json'),
        (damage_safetensors, folder / 'model.safetensors'),
        (damage_torch_zip, fixtures / 'torch_files' / 'zip.pt'),
    ]:
        data = path.read_bytes()
        made = [damage(data, random.Random(seed)) for _ in range(2)]
        assert made[0] == made[1]
        assert any(damage(data, random.Random(n)) != data for n in range(3))
