"""scripts/finetune_swag.py end to end, on a small random model."""

import os

import mxnet as mx
import numpy as np
import pytest
import warm
from script_runs import ROOT, SCRIPTS, read_json, run

from bert import BertForMultipleChoice

CASE = 'finetune_swag'
SCRIPT = SCRIPTS / 'finetune_swag.py'


def test_results_and_predictions(trained):
    results = read_json(trained)
    assert results['choices'] == 3 and results['args']['epochs'] == 4
    assert results['predictions'] == ['dev_predictions.tsv', 'test_predictions.tsv']
    rows = [line.split('\t') for line in (trained / 'dev_predictions.tsv').read_text().splitlines()]
    assert rows[1][0] == 'val0' and len(rows) == 25
    right = [prediction == label for _, prediction, *_, label in rows[1:]]
    assert np.mean(right) == results['best']['dev']['accuracy']
    lines = (trained / 'test_predictions.tsv').read_text().splitlines()
    assert len(lines) == 11 and all(line.endswith('\t') for line in lines[1:])
    assert read_json(trained / 'best_model', 'config.json')['finetuning_task'] == 'swag'


def test_the_best_model_takes_any_number_of_choices(trained):
    model = BertForMultipleChoice.from_pretrained(str(trained / 'best_model'))
    right, wrong = [2, 5, 3, 11, 6, 3], [2, 5, 3, 7, 6, 3]
    words = mx.nd.array([[wrong, right, wrong, wrong, wrong]], dtype='int32')
    types = mx.nd.array([[[0, 0, 0, 1, 1, 1]] * 5], dtype='int32')
    assert model(words, types).argmax(axis=-1).asscalar() == 1


def test_only_evaluation_of_a_folder(script, data, trained, tmp_path):
    argv = ['--bert_model', trained / 'best_model', '--do_eval', '--output_dir', tmp_path]
    argv += ['--max_seq_length', 32]
    assert run(script, *argv, '--data_dir', data) == 0
    found, expected = read_json(tmp_path, 'inference.json')['dev'], read_json(trained)['best']
    assert found['dev']['loss'] == pytest.approx(expected['dev']['loss'], 1e-4)
    predictions = (trained / 'test_predictions.tsv').read_text()
    assert (tmp_path / 'test_predictions.tsv').read_text() == predictions
    os.remove(tmp_path / 'dev_predictions.tsv')
    assert run(script, *argv, '--test_file', data / 'test.csv') == 0
    assert read_json(tmp_path, 'inference.json')['dev'] == {}
    assert not (tmp_path / 'dev_predictions.tsv').exists()


@pytest.mark.data
def test_overfits_the_ten_real_rows(script, data_dir, tmp_path):
    sample = data_dir / 'swag' / 'sample.json'
    argv = ['--do_train', '--train_file', sample, '--dev_file', sample, '--from_scratch']
    argv += ['--vocab_file', data_dir / 'vocab' / 'bert-uncased' / 'vocab.txt', '--hparams']
    argv += ['num_layers=1,units=32,num_heads=2,hidden_size=64,dropout=0', '--do_lower_case']
    argv += ['--output_dir', tmp_path]
    argv += ['--lr', '4e-3', '--batch_size', '5', '--epochs', '8', '--early_stop', '3']
    assert run(script, *argv) == 0
    results = read_json(tmp_path)
    assert results['best']['dev']['accuracy'] == 1 and results['choices'] == 4
    log = results['training']['log']
    assert log[0]['loss'] > 0.5 and results['best']['dev']['loss'] < 0.05


def test_flags_of_the_original(script, capsys):
    assert script.parse_arguments(['--do_eval', '--fp16']).dtype == 'float16'
    with pytest.raises(SystemExit):
        script.parse_arguments(['--do_eval', '--num_train_epochs', '2.5'])
    assert "'2.5' is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize('folder', ['.', 'scripts'])
def test_runs_from_the_root_and_from_scripts(folder, tmp_path):
    path = os.path.relpath(SCRIPT, ROOT / folder)
    done = warm.run([path, '--output_dir', tmp_path], ROOT / folder)
    assert done.returncode == 1 and 'error: nothing to do' in done.stderr
