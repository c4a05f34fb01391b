"""scripts/train_lm.py end to end: each family on a made-up text, tiny models."""

import numpy as np
import pytest
from contract import lm as arguments
from halves import HALVES
from script_runs import read_json, run

CASE = 'train_lm gpt'


def test_vocabulary_and_cutoffs_of_transformer_xl(script, data, tmp_path):
    more = ['--learn_vocab', '9', '--cutoffs', '3', '6', '--training_steps', '2', '--ext_len', '4']
    assert run(script, *arguments(data, tmp_path, 'transfo_xl', *more)) == 0
    config = read_json(tmp_path / 'best_model', 'config.json')
    assert (config['vocab_size'], config['cutoffs'], config['ext_len']) == (8, [3, 6], 4)


@pytest.mark.parametrize('dtype', HALVES)
def test_transformer_xl_in_half_precision(script, data, tmp_path, dtype):
    losses = []
    for name, more in (('full', []), ('half', ['--dtype', dtype])):
        more += ['--training_steps', '6', '--log_interval', '1']
        assert run(script, *arguments(data, tmp_path / name, 'transfo_xl', *more)) == 0
        training = read_json(tmp_path / name)['training']
        losses.append(np.array([record['loss'] for record in training['log']]))
    scaled = dtype == 'float16'
    assert [record.get('skipped') for record in training['log']] == [0 if scaled else None] * 6
    full, half = losses
    assert 0 < np.abs(half - full).max() < (1e-3 if scaled else 1e-2) * full[0]
