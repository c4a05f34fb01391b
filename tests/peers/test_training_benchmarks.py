"""scripts/benchmark/training.py and inference.py: the contenders do a little."""

import json
import os
import subprocess
import sys

import pytest
from script_runs import ROOT

pytest.importorskip('torch')
pytest.importorskip('transformers')
pytestmark = pytest.mark.peers


def benchmark(name, *flags):
    """Run a benchmark in a process of its own; returns what it has written, the last of its flags.
    """
    done = subprocess.run(
        [sys.executable, ROOT / 'scripts' / 'benchmark' / f'{name}.py', *flags],
        env={**os.environ, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'},
        capture_output=True, text=True,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return json.loads(flags[-1].read_text('utf-8'))


def test_each_contender_trains(minilm_dir, tmp_path):
    data, path = tmp_path / 'data', tmp_path / 'figures.json'
    data.mkdir()
    for name, size in (('train', 8), ('dev', 4)):
        rows = [f'a {"good" if n % 2 else "bad"} film\t{n % 2}' for n in range(size)]
        (data / f'{name}.tsv').write_text('\n'.join(['sentence\tlabel', *rows, '']), 'utf-8')
    flags = ['--work', 'programs', '--data_dir', data, '--epochs', '1', '--batch_size', '4']
    rows = benchmark('training', *flags, '--rounds', '1', '--json', path)['results']
    found = {(row['case'], row['contender']): row for row in rows}
    # a processor with units for bfloat16 has contenders that train with it
    contenders = {name for _, name in found}
    assert contenders - {'ours, bfloat16', 'transformers, bfloat16'} == {
        'ours', 'gluonnlp', 'transformers'
    }  # fmt: skip
    assert set(found) == {(case, name) for case in ('program', 'updates') for name in contenders}
    for name in contenders:
        assert 0 < found['updates', name]['best_s'] < found['program', name]['best_s']


@pytest.mark.parametrize(
    ('family', 'more', 'contenders'),
    [
        ('gpt2', ['--vocab_size', '1000'], {'ours', 'transformers', 'pytorch-pretrained-bert'}),
        ('transfo_xl', ['--mem_len', '8'], {'ours', 'pytorch-pretrained-bert'}),
    ],
)
def test_a_step_of_a_language_model(tmp_path, family, more, contenders):
    pytest.importorskip('pytorch_pretrained_bert')
    flags = ['--work', family, '--layers', '1', '--shapes', '1x8', *more, '--rounds', '1']
    rows = benchmark('training', *flags, '--json', tmp_path / 'figures.json')['results']
    assert {row['contender'] for row in rows} == contenders
    assert all(row['best_s'] > 0 for row in rows)


def test_inference(tmp_path):
    """The figures of all engines and peers go to the table."""
    table = tmp_path / 'speed.json'
    table.write_text('{"processors": {}}', encoding='utf-8')
    flags = ['--precision', 'int8', '--layers', '1', '--units', '192', '--shapes', '1x8']
    found = benchmark('inference', *flags, '--rounds', '1', '--table', table)
    (figures,) = found['processors'].values()
    assert set(figures['ours']['forward']['1x8']) == {'onnxruntime int8', 'openvino int8'}
    assert set(figures['peers']['forward']['1x8']) == {'torch int8', 'onnxruntime int8'}
    assert all(ms > 0 for ms in figures['ours']['forward']['1x8'].values())
