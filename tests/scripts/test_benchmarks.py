"""scripts/benchmark/: turns of toys, each in its process."""

import shutil
import types

import pytest
from script_runs import ROOT, load_script

FOLDER = ROOT / 'scripts' / 'benchmark'
TOYS = """
import os
import sys
import time


def sleep(options, seconds):
    def prepare(times):
        def call():
            time.sleep(seconds * times)
            return os.getpid(), 'mxnet' in sys.modules
        return call
    return prepare


def broken(options):
    raise ValueError('no such toy')


def dies(options):
    return lambda case: lambda: os._exit(3)


def where(options):
    import model_zoo
    return lambda case: lambda: model_zoo.__file__
"""


@pytest.fixture
def harness(tmp_path, monkeypatch):
    """The harness in a folder with toys."""
    (tmp_path / 'toys.py').write_text(TOYS, encoding='utf-8')
    shutil.copy(FOLDER / 'harness.py', tmp_path)
    harness = load_script('harness', tmp_path)
    monkeypatch.setattr(harness, 'PAUSE', 0)
    return harness


OPTIONS = types.SimpleNamespace(rounds=3, seconds=60)


def test_turns_in_processes(harness, capsys):
    fast, slow = (
        harness.Contender(name, 'toys:sleep', arguments={'seconds': seconds})
        for name, seconds in (('fast', 0.001), ('slow', 0.02))
    )
    absent = harness.Contender('absent', 'toys:sleep', ('no_such_module',))
    answers = {}
    measured = harness.measure(
        [fast, slow, absent],
        [harness.Case('once', 1, 10), harness.Case('twice', 2, 20)],
        OPTIONS,
        check=lambda name, answer, expected: answers.setdefault(name, answer),
    )
    found = [f'{each.case.label} {each.contender}' for each in measured]
    assert found == ['once fast', 'once slow', 'twice fast', 'twice slow']
    assert all(len(each.seconds) == 3 for each in measured)
    assert min(measured[3].seconds) >= 0.04 and min(measured[1].seconds) >= 0.02
    (process, has_mxnet), (other, _) = answers.values()
    assert process != other and not has_mxnet
    assert 'absent: absent (no_such_module not installed)' in capsys.readouterr().out
    rows = harness.rows_of(measured, 'tokens/s')
    assert rows[0]['best / first'] == rows[0]['median / first'] == 1
    assert rows[3]['best / first'] == min(measured[3].seconds) / min(measured[2].seconds)


@pytest.mark.parametrize('name', ['broken', 'dies'])
def test_failures_are_errors(harness, name):
    toy, case = harness.Contender('toy', f'toys:{name}'), harness.Case('once', 1, 1)
    with pytest.raises(harness.WorkerError):
        harness.measure([toy], [case], OPTIONS)
