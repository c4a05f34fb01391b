"""scripts/finetune_swag.py end to end, on a small random model."""

import functools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest
from script_runs import (
    ROOT,
    SCRIPTS,
    assert_same_model,
    assert_two_workers_train_as_one,
    load_script,
    run,
)

from bert import BertForMultipleChoice

SCRIPT = SCRIPTS / 'finetune_swag.py'
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
SIZE = ['--hparams', 'num_layers=1,units=32', 'hidden_size=64,num_heads=2,max_length=40,dropout=0']


@pytest.fixture(scope='module')
def script():
    return load_script('finetune_swag')


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A folder with a vocabulary and sets of three endings; that with an x is right."""
    folder = tmp_path_factory.mktemp('data')
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL, *'abcdefx', '.']) + '\n')
    rng = random.Random(3)

    def text(*words):
        words = [*words, *rng.choices('abcdef', k=rng.randint(0, 5))]
        rng.shuffle(words)
        return ' '.join(words) + ' .'

    for name, count in (('train', 150), ('val', 24), ('test', 10)):
        rows = [',video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2']
        rows[0] += ',label' if name != 'test' else ''
        for number in range(count):
            label = rng.randrange(3)
            endings = [text('x') if place == label else text() for place in range(3)]
            row = [str(number), 'v', f'{name}{number}', 's', text(), 'a', 'gold', *endings]
            rows.append(','.join([*row, str(label)] if name != 'test' else row))
        (folder / f'{name}.csv').write_text('\n'.join(rows) + '\n')
    return folder


def arguments(data, output, *more):
    model = ['--from_scratch', '--vocab_file', data / 'vocab.txt', *SIZE]
    options = ['--learning_rate', '4e-3', '--train_batch_size', '16', '--max_seq_length', '32']
    return ['--do_train', '--data_dir', data, *model, *options, '--output_dir', output, *more]


@pytest.fixture(scope='module')
def trained(script, data, tmp_path_factory):
    output = tmp_path_factory.mktemp('trained')
    assert run(script, *arguments(data, output, '--do_eval', '--num_train_epochs', '4.0')) == 0
    return output


def test_training_learns_and_writes_its_files(trained):
    results = json.loads((trained / 'results.json').read_text())
    assert results['best']['dev']['accuracy'] >= 0.9
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
    assert (trained / 'curves.png').exists() and (trained / 'log_swag.txt').exists()
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


def test_interrupted_and_resumed_is_as_unbroken(script, data, tmp_path, monkeypatch, capsys):
    whole, broken = tmp_path / 'whole', tmp_path / 'broken'
    options = ['--epochs', 2, '--gradient_accumulation_steps', 2]
    assert run(script, *arguments(data, whole, *options)) == 0
    log = json.loads((whole / 'results.json').read_text())['args']
    assert (log['batch_size'], log['accumulate']) == (8, 2)
    call, calls = BertForMultipleChoice.__call__, []

    def interrupting(self, *inputs):
        calls.append(1)
        if len(calls) == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return call(self, *inputs)

    monkeypatch.setattr(BertForMultipleChoice, '__call__', interrupting)
    assert run(script, *arguments(data, broken, *options)) == 130
    assert '--resume' in capsys.readouterr().err
    monkeypatch.undo()
    other = tmp_path / 'other'
    other.mkdir()
    for name in ('train.csv', 'val.csv'):
        shutil.copy(data / 'val.csv', other / name)
    argv = arguments(data, broken, *options, '--resume')
    assert run(script, *argv, '--train_file', other / 'train.csv') == 1
    assert "train_file is '24 examples with checksum" in capsys.readouterr().err
    assert run(script, *argv) == 0
    assert_same_model(whole, broken)


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
    argv += ['--vocab_file', data_dir / 'vocab' / 'bert-uncased' / 'vocab.txt', *SIZE[:-1]]
    argv += ['num_heads=2,hidden_size=64,dropout=0', '--do_lower_case', '--output_dir', tmp_path]
    argv += ['--lr', '4e-3', '--batch_size', '5', '--epochs', '8', '--early_stop', '3']
    assert run(script, *argv) == 0
    results = json.loads((tmp_path / 'results.json').read_text())
    assert results['best']['dev']['accuracy'] == 1 and results['choices'] == 4
    log = results['training']['log']
    assert log[0]['loss'] > 0.5 and log[-1]['loss'] < 0.05


@pytest.mark.parametrize(
    ('argv', 'message'),
    [
        ([], 'nothing to do: give --do_train, --do_eval or both'),
        (['--do_train'], 'there is no train set: give --train_file, or --data_dir'),
        (['--do_eval'], 'there is no dev set'),
        (['--do_eval', '--data_dir', 'OUT'], "--data_dir '.*' has none of train.csv"),
        (['--do_train', '--train_file', 'none.csv'], "--train_file 'none.csv': no such file"),
        (['--do_train', '--train_file', 'TEST', '--dev_file', 'VAL'], 'has no labels: training'),
        (['--do_train', '--train_file', 'VAL'], 'there is no dev set'),
        (['--do_eval', '--dev_file', 'VOCAB'], 'there is no sent1, sent2'),
        (['--do_eval', '--dev_file', 'VAL', '--resume'], '--resume continues a training'),
        (['--do_eval', '--dev_file', 'VAL', '--max_seq_length', '4'], 'a length of 4 is too small'),
        (['--do_eval', '--dev_file', 'VAL', '--max_seq_length', '41'], 'takes 40 tokens at most'),
        (
            ['--do_eval', '--train_batch_size', '5', '--accumulate', '2'],
            '--train_batch_size 5 cannot be divided into --gradient_accumulation_steps 2',
        ),
    ],
)
def test_bad_input_is_one_clear_line(script, data, tmp_path, capsys, argv, message):
    names = {
        'OUT': tmp_path,
        'TEST': data / 'test.csv',
        'VAL': data / 'val.csv',
        'VOCAB': data / 'vocab.txt',
    }
    argv = [names.get(word, word) for word in argv]
    model = ['--from_scratch', '--vocab_file', data / 'vocab.txt', *SIZE, '--output_dir', tmp_path]
    assert run(script, *model, *argv) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(lines) == 1
    assert re.search(message, lines[0])


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
    done = subprocess.run(
        [sys.executable, path, '--output_dir', str(tmp_path)],
        cwd=ROOT / folder,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and 'error: nothing to do' in done.stderr
