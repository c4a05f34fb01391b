"""scripts/benchmark/side_by_side.py: contenders in processes of their own; here these are toys."""

import json
import pathlib
import sys

import pytest
from script_runs import ROOT, load_script

from model_zoo.errors import InputError

TOYS = """
import os
import sys
import time


def sleep(options, seconds):
    def prepare(times):
        def call():
            time.sleep(seconds * times)
            return os.getpid(), os.environ['OMP_NUM_THREADS'], 'mxnet' in sys.modules
        return call
    return prepare


def broken(options):
    raise ValueError('no such toy')


def dies(options):
    return lambda case: lambda: os._exit(3)


def variables(options):
    names = 'GOMP_SPINCOUNT', 'OMP_NUM_THREADS'
    return lambda case: lambda: tuple(map(os.environ.get, names))


def where(options):
    import model_zoo
    return lambda case: lambda: (model_zoo.__file__, sorted(os.listdir(options.folder)))
"""


@pytest.fixture(scope='module')
def side_by_side():
    return load_script('side_by_side', ROOT / 'scripts' / 'benchmark')


@pytest.fixture
def toys(tmp_path, side_by_side, monkeypatch):
    (tmp_path / 'benchmark_toys.py').write_text(TOYS, encoding='utf-8')
    monkeypatch.setattr(side_by_side, 'PAUSE', 0)
    return load_script('benchmark_toys', tmp_path)


def options(side_by_side, *flags, rounds=1):
    return side_by_side.add_flags('A benchmark.', rounds).parse_args([*map(str, flags)])


def test_turns_in_processes_without_other_frameworks(side_by_side, toys, tmp_path, monkeypatch):
    fast, slow = (
        side_by_side.Contender(name, toys.sleep, arguments={'seconds': seconds})
        for name, seconds in (('fast', 0.001), ('slow', 0.02))
    )
    absent = side_by_side.Contender('absent', toys.sleep, ('no_such_module',))
    cases = [side_by_side.Case('once', 1, 10), side_by_side.Case('twice', 2, 20)]
    measured = side_by_side.measure([fast], [slow, absent], cases, options(side_by_side, rounds=3))
    names = [f'{each.case.label} {each.contender}' for each in measured]
    assert names == ['once fast', 'once slow', 'twice fast', 'twice slow']
    assert all(len(each.seconds) == len(each.cpu_seconds) == 3 for each in measured)
    assert min(measured[3].seconds) >= 0.04 > min(measured[1].seconds) >= 0.02
    processes = [each.answer[0] for each in measured]
    assert processes[0] == processes[2] != processes[1] == processes[3]
    assert {each.answer[1:] for each in measured} == {(str(side_by_side.threads()), False)}

    monkeypatch.setattr(side_by_side, '_matrix_product_speed', lambda is_cpu: 100)
    path = tmp_path / 'figures.json'
    side_by_side.report('Sleep', measured, options(side_by_side, '--json', path), 'tokens/s')
    results = json.loads(path.read_text())['results']
    assert [each['contender'] for each in results] == ['fast', 'slow', 'fast', 'slow']
    assert results[0]['best_over_ours'] == results[0]['median_over_ours'] == 1
    assert results[3]['best_over_ours'] == min(measured[3].seconds) / min(measured[2].seconds) > 1


@pytest.mark.parametrize(('flags', 'kind'), [([], 'clock'), (['--cpu_time'], 'cpu')])
def test_seconds_of_the_cpu_leave_out_what_waits(
    side_by_side, toys, tmp_path, monkeypatch, flags, kind
):
    monkeypatch.setattr(side_by_side, '_matrix_product_speed', lambda is_cpu: 100)
    toy = side_by_side.Contender('toy', toys.sleep, arguments={'seconds': 0.2})
    case = side_by_side.Case('once', 1, 10)
    path = tmp_path / 'figures.json'
    args = options(side_by_side, *flags, '--json', path)
    side_by_side.report('Sleep', side_by_side.measure([toy], [], [case], args), args)
    content = json.loads(path.read_text())
    assert content['seconds_of'] == kind
    assert (content['results'][0]['best_s'] >= 0.2) == (kind == 'clock')


def test_absent_contenders_are_named(side_by_side, toys, capsys):
    absent = side_by_side.Contender('a peer', toys.sleep, ('no_such_module', 'json'))
    assert side_by_side.measure([], [absent], [], options(side_by_side)) == []
    assert capsys.readouterr().out == 'a peer: absent (no_such_module not installed)\n'


def test_another_checkout_is_one_more_contender(side_by_side, toys, tmp_path):
    package = tmp_path / 'other' / 'model_zoo' / '__init__.py'
    package.parent.mkdir(parents=True)
    package.write_text('')
    case = side_by_side.Case('here', None, 1)
    toy, args = toys.where, options(side_by_side, '--checkout', tmp_path / 'other')
    ours, other = side_by_side.measure([side_by_side.Contender('ours', toy)], [], [case], args)
    assert (ours.contender, other.contender) == ('ours', f'ours in {tmp_path / "other"}')
    assert pathlib.Path(ours.answer[0]) == pathlib.Path(sys.modules['model_zoo'].__file__)
    assert pathlib.Path(other.answer[0]) == package


def test_environments_beside_a_busy_process(side_by_side, toys):
    toy = side_by_side.Contender('toy', toys.variables)
    flags = ['--environment', 'GOMP_SPINCOUNT=7 OMP_NUM_THREADS=1', '--neighbour', 'niced']
    case = side_by_side.Case('one', None, 1)
    ours, other = side_by_side.measure([toy], [], [case], options(side_by_side, *flags))
    assert other.contender == 'toy, GOMP_SPINCOUNT=7 OMP_NUM_THREADS=1'
    assert other.answer == ('7', '1') != ours.answer
    with side_by_side.neighbour('busy') as process:
        assert process.poll() is None
    assert process.returncode < 0


@pytest.mark.parametrize(
    'name, message',
    [('broken', 'toy: ValueError: no such toy'), ('dies', 'the process of toy has ended')],
)
def test_failures_are_one_line(side_by_side, toys, name, message):
    toy = side_by_side.Contender('toy', getattr(toys, name))
    with pytest.raises(InputError, match=f'^{message}$'):
        side_by_side.measure([toy], [], [side_by_side.Case('one', None, 1)], options(side_by_side))


def test_answers_are_compared_with_the_first(side_by_side, toys):
    def same(name, answer, expected):
        if answer != expected:
            raise InputError(f'{name} differs')

    toy = side_by_side.Contender('ours', toys.sleep, arguments={'seconds': 0})
    toys, cases = [toy, toy._replace(name='other')], [side_by_side.Case('one', 1, 1)]
    with pytest.raises(InputError, match='other differs'):  # its process has another number
        side_by_side.measure(toys, [], cases, options(side_by_side), same=same)
