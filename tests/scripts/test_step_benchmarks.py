"""scripts/benchmark/breakdown.py and inference.py: arithmetic, tables, and small runs."""

import json
import os
import pathlib
import sys

import pytest
import warm
from script_runs import ROOT, load_script

FOLDER = ROOT / 'scripts' / 'benchmark'


@pytest.fixture(scope='module')
def load():
    """``load(name)``: a benchmark as a module; none leaves MXNet's variable of bulks behind."""
    before = dict(os.environ)
    sys.path.insert(0, str(FOLDER))
    yield lambda name: load_script(name, FOLDER)
    sys.path.remove(str(FOLDER))
    os.environ.pop('MXNET_EXEC_BULK_EXEC_TRAIN', None)
    os.environ.update(before)


def test_arithmetic_is_that_of_the_model(load):
    breakdown = load('breakdown')
    step = breakdown.Step(1, (2, 16))
    step()
    work = breakdown.arithmetic(step.model, step.batch)
    tokens, units = 2 * 16, 768
    dense = 2 * tokens * units * (3 * units + units + 2 * step.model.config.intermediate_size)
    assert work['FullyConnected'][0] == pytest.approx(dense, rel=0.03)  # and the heads
    scores = 2 * tokens * 16 * units
    for name in ('interleaved_matmul_selfatt_qk', 'interleaved_matmul_selfatt_valatt'):
        assert work[name][0] == scores
    assert work['Embedding'][1] < 4 * 30522 * units


def test_a_profile_names_single_operators(load, tmp_path):
    breakdown = load('breakdown')
    path, page = tmp_path / 'figures.json', tmp_path / 'page.rst'
    page.write_text('.. operators: begin\n.. operators: end\n', encoding='utf-8')
    flags = ['--shape', '2x8', '--layers', '1', '--units', '64', '--rounds', '1']
    flags += ['--json', path, '--docs', page]
    done = warm.run([FOLDER / 'breakdown.py', *flags], env={**os.environ, 'PYTHONPATH': str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert not pathlib.Path(os.devnull).is_file()  # MXNet's profiler deletes what it is given
    rows = {name: rest for name, *rest in json.loads(path.read_text('utf-8'))['operators']}
    assert {'FullyConnected', '_backward_FullyConnected', breakdown.UPDATE} <= set(rows)
    seconds, work, traffic = rows['_backward_FullyConnected']
    assert seconds > 0 and work == 2 * rows['FullyConnected'][1] and traffic > 0
    assert breakdown.UPDATE in page.read_text('utf-8')


def test_a_table_replaces_the_one_of_the_page(load, tmp_path):
    breakdown = load('breakdown')
    rows = [('dot', 0.9, 4e9, 1e6), ('Cast', 0.1, 0, 2e9), ('tiny', 1e-4, 0, 0)]
    lines = breakdown.table(rows, 1.0001, (1e10, 1e11))
    assert [line.split() for line in lines[3:5]] == [
        ['``dot``', '900.0', '90.0%', '4.00', '1', '44%', '0%'],
        ['``Cast``', '100.0', '10.0%', '2000', '20%'],
    ]
    assert lines[5].startswith('all others')
    page = tmp_path / 'page.rst'
    page.write_text(f'A\n\n{breakdown.BEGIN}\nold\n{breakdown.END}\n\nB\n', encoding='utf-8')
    for _ in range(2):
        breakdown.write_between(str(page), breakdown.BEGIN, breakdown.END, lines)
    text = page.read_text('utf-8')
    assert text.count('``dot``') == 1 and 'old' not in text
    assert text.startswith('A\n') and text.endswith('\n\nB\n')


def test_seconds_of_a_sum(load):
    seconds = load('breakdown').sum_seconds
    assert seconds(8e9, 1, 1e9, 1.0) == 0
    assert seconds(8e9, 2, 1e9) == 8  # half of it there, and half of the other's back
    assert seconds(8e9, 4, 1e9, 0.5) == 2 * 3 * (2 + 0.5)


def test_two_processes_are_measured_beside_one(load, tmp_path, capsys):
    pytest.importorskip('horovod.mxnet')
    path = tmp_path / 'figures.json'
    flags = ['--work', 'processes', '--shape', '2x8', '--layers', '1', '--units', '64']
    flags += ['--rounds', '1', '--json', str(path)]
    load('breakdown').main(flags)
    figures = json.loads(path.read_text('utf-8'))
    assert set(figures['steps']) == {'one process', '2 processes, buckets'}
    assert all(len(times) == 1 and times[0] > 0 for times in figures['steps'].values())
    said = capsys.readouterr().out
    assert 'predicted' in said and '\n  100 ' in said


def test_the_table_of_speed_is_that_of_the_file(load):
    """Which ``inference.py --table --readme`` has written."""
    inference = load('inference')
    path = ROOT / 'model_zoo' / 'inference' / 'speed.json'
    table = json.loads(path.read_text('utf-8'))['processors']['amx']
    lines = inference.speed_lines(table)
    assert '\n'.join(lines) in (ROOT / 'README.rst').read_text('utf-8')
    assert {line.split()[1] for line in lines[3:-1]} >= {'float32', 'bfloat16', 'int8'}


def test_the_best_peer_of_each_precision(load):
    row = {'mxnet float32': 2, 'openvino float32': 1.26}
    peers = {'torch float32': 3, 'openvino float32': 1.5, 'torch bfloat16': 0.8}
    lines = load('inference').speed_lines(
        {'ours': {'forward': {'1x32': row}}, 'peers': {'forward': {'1x32': peers}}}
    )
    rows = [line.rsplit('  ', 1) for line in lines[3:-1] if '  ' in line]
    cells = {name.strip(): text.strip() for name, text in rows}
    assert cells['openvino float32'] == '1.3'
    assert cells['best peer, float32'] == '1.5 (openvino)'
    assert cells['best peer, bfloat16'] == '0.8 (torch)'
