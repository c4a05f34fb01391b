"""scripts/finetune_swag.py end to end, on a small random model."""

import functools
import json
import os

import mxnet as mx
import numpy as np
import pytest
import warm
from contract import swag as arguments
from script_runs import (
    ROOT,
    SCRIPTS,
    assert_two_workers_train_as_one,
    run,
)

from bert import BertForMultipleChoice

CASE = 'finetune_swag'
SCRIPT = SCRIPTS / 'finetune_swag.py'


def test_results_and_predictions(trained):
    results = json.loads((trained / 'results.json').read_text())
    assert results['choices'] == 3 and results['args']['epochs'] == 4
    assert results['predictions'] == ['dev_predictions.tsv', 'test_predictions.tsv']
    rows = [line.split('\t') for line in (trained / 'dev_predictions.tsv').read_text().splitlines()]
    assert rows[1][0] == 'val0' and len(rows) == 25
    right = [prediction == label for _, prediction, *_, label in rows[1:]]
    assert np.mean(right) == results['best']['dev']['accuracy']
    rows = [
        line.split('\t') for line in (trained / 'test_predictions.tsv').read_text().splitlines()
    ]
    assert len(rows) == 11 and {row[-1] for row in rows[1:]} == {''}
    config = json.loads((trained / 'best_model' / 'config.json').read_text())
    assert config['architectures'] == ['BertForMultipleChoice']
    assert config['finetuning_task'] == 'swag'


def test_the_best_model_takes_any_number_of_choices(trained):
    model = BertForMultipleChoice.from_pretrained(str(trained / 'best_model'))
    right, wrong = [2, 5, 3, 11, 6, 3], [2, 5, 3, 7, 6, 3]
    words = mx.nd.array([[wrong, right, wrong, wrong, wrong]], dtype='int32')
    types = mx.nd.array([[[0, 0, 0, 1, 1, 1]] * 5], dtype='int32')
    assert model(words, types).argmax(axis=-1).asscalar() == 1


def test_only_evaluation_of_a_folder(script, data, trained, tmp_path):
    argv = ['--bert_model', trained / 'best_model', '--do_eval', '--output_dir', tmp_path]
    argv += ['--max_seq_length', '32']
    assert run(script, *argv, '--data_dir', data) == 0
    inference = json.loads((tmp_path / 'inference.json').read_text())
    results = json.loads((trained / 'results.json').read_text())
    assert inference['dev']['dev']['loss'] == pytest.approx(results['best']['dev']['loss'], 1e-4)
    predictions = (trained / 'test_predictions.tsv').read_text()
    assert (tmp_path / 'test_predictions.tsv').read_text() == predictions
    os.remove(tmp_path / 'dev_predictions.tsv')
    assert run(script, *argv, '--test_file', data / 'test.csv') == 0
    assert json.loads((tmp_path / 'inference.json').read_text())['dev'] == {}
    assert not (tmp_path / 'dev_predictions.tsv').exists()


def without_total(data, output, *more):
    argv = arguments(data, output, *more)
    place = argv.index('--train_batch_size')
    return argv[:place] + argv[place + 2 :]


def test_two_workers_train_as_one(script, data, tmp_path):
    arguments_to = functools.partial(without_total, data)
    assert_two_workers_train_as_one(script, SCRIPT, arguments_to, tmp_path)


@pytest.mark.data
def test_overfits_the_ten_real_rows(script, data_dir, tmp_path):
    sample = data_dir / 'swag' / 'sample.json'
    argv = ['--do_train', '--train_file', sample, '--dev_file', sample, '--from_scratch']
    argv += ['--vocab_file', data_dir / 'vocab' / 'bert-uncased' / 'vocab.txt', '--hparams']
    argv += ['num_layers=1,units=32,num_heads=2,hidden_size=64,dropout=0', '--do_lower_case']
    argv += ['--output_dir', tmp_path]
    argv += ['--lr', '4e-3', '--batch_size', '5', '--epochs', '8', '--early_stop', '3']
    assert run(script, *argv) == 0
    results = json.loads((tmp_path / 'results.json').read_text())
    assert results['best']['dev']['accuracy'] == 1 and results['choices'] == 4
    log = results['training']['log']
    assert log[0]['loss'] > 0.5 and results['best']['dev']['loss'] < 0.05


def test_the_originals_command_line_is_understood(script, capsys):
    line = (
        '--bert_model bert-base-uncased --do_train --do_lower_case --do_eval --data_dir data '
        '--train_batch_size 16 --learning_rate 2e-5 --num_train_epochs 3.0 --max_seq_length 80 '
        '--output_dir /tmp/swag_output/ --gradient_accumulation_steps 4'
    )
    args = script.parse_arguments(line.split())
    assert (args.batch_size, args.accumulate, args.epochs, args.lr) == (4, 4, 3, 2e-5)
    assert args.dtype == 'float32' and args.warmup_ratio == 0.1 and args.seed == 42
    assert script.parse_arguments(['--do_eval', '--fp16']).dtype == 'float16'
    with pytest.raises(SystemExit):
        script.parse_arguments(['--do_eval', '--num_train_epochs', '2.5'])
    assert "'2.5' is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize('folder', ['.', 'scripts'])
def test_runs_from_the_root_and_from_scripts(folder, tmp_path):
    path = os.path.relpath(SCRIPT, ROOT / folder)
    done = warm.run([path, '--output_dir', tmp_path], ROOT / folder)
    assert done.returncode == 1 and 'error: nothing to do' in done.stderr
