"""scripts/memory.py on a small model."""

import json

import pytest
from script_runs import SCRIPTS, run

SCRIPT = SCRIPTS / 'memory.py'

CONFIG = {
    'vocab_size': 20000, 'hidden_size': 64, 'num_hidden_layers': 2, 'num_attention_heads': 2,
    'intermediate_size': 128, 'max_position_embeddings': 256,
}  # fmt: skip


def test_memory_grows_with_the_batch(script, tmp_path, capsys):
    config, output = tmp_path / 'config.json', tmp_path / 'memory.json'
    config.write_text(json.dumps(CONFIG))
    argv = ['--config_file', config, '--shapes', '1x256,16x256', '--output', output]
    assert run(script, *argv) == 0, capsys.readouterr().err
    first, second = json.loads(output.read_text())['rows']
    size = first['parameters']
    assert size == second['parameters'] and 1.3e6 < size < 1.5e6
    # weights, gradients and Adam's averages; and what the layers of a sample need at the least
    assert first['bytes'] > 16 * size
    assert second['bytes'] - first['bytes'] > 15 * 256 * 4 * 2 * (64 * 6 + 2 * 128)
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ['batch', 'length', 'parameters', 'step', 'a', 'sample', 'in', 'MB']
    assert len(rows[1].split()) == 4 and float(rows[2].split()[4]) > 0


def test_bad_shapes(script, capsys):
    with pytest.raises(SystemExit):
        run(script, '--shapes', '8')
    assert 'write batch x length' in capsys.readouterr().err
