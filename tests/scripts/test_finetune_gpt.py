"""scripts/finetune_gpt.py end to end, on a small random model and made-up stories."""

import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import string

import mxnet as mx
import numpy as np
import pytest

from gpt import OpenAIGPTDoubleHeadsModel
from gpt.tokenizer import OpenAIGPTTokenizer
from model_zoo.app import cli
from model_zoo.checkpoint import read_tensors

SCRIPT = pathlib.Path(__file__).parents[2] / 'scripts' / 'finetune_gpt.py'
HEADER = (
    'InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,'
    'RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding'
)


@pytest.fixture(scope='module')
def script():
    spec = importlib.util.spec_from_file_location('finetune_gpt', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A folder with a small vocabulary and stories; right endings have an a, wrong ones an x."""
    folder = tmp_path_factory.mktemp('data')
    symbols = [*string.ascii_lowercase, '.']
    tokens = ['<unk>', *symbols, *(f'{symbol}</w>' for symbol in symbols), 'th', 'the</w>']
    vocab = {token: number for number, token in enumerate(tokens)}
    (folder / 'vocab.json').write_text(json.dumps(vocab))
    (folder / 'merges.txt').write_text('#version: 0.2\nt h\nth e</w>\n')
    rng = random.Random(3)

    def sentence(*words):
        words = [*words, *rng.choices('bcd', k=rng.randint(1, 3))]
        rng.shuffle(words)
        return ' '.join(words) + ' .'

    for name, count in (('train', 160), ('eval', 24)):
        lines = [HEADER]
        for number in range(count):
            label = rng.randint(1, 2)
            endings = [sentence('a', 'a'), sentence('x', 'x')][:: 1 if label == 1 else -1]
            fields = [f'{name}-{number}', *(sentence() for _ in range(4)), *endings, str(label)]
            lines.append(','.join(fields))
        (folder / f'{name}.csv').write_text('\n'.join(lines) + '\n')
        unlabelled = '\n'.join(line.rpartition(',')[0] for line in lines)
        (folder / f'{name}_unlabelled.csv').write_text(unlabelled + '\n')
    return folder


def arguments(data, output, *more, evaluate=True):
    """The command line for the small model."""
    model = ['--from_scratch', '--vocab_file', data / 'vocab.json', '--hparams',
             'num_layers=1,units=32,num_heads=2,max_length=32,dropout=0']  # fmt: skip
    files = ['--train_dataset', data / 'train.csv']
    if evaluate:
        files += ['--do_eval', '--eval_dataset', data / 'eval.csv']
    options = ['--learning_rate', '3e-3', '--log_interval', '5', '--num_train_epochs', '4',
               '--lm_coef', '0.5']  # fmt: skip
    return ['--do_train', *files, *model, *options, '--output_dir', output, *more]


def run(script, argv):
    return cli.run(script.main, list(map(str, argv)))


def assert_equal(left, right):
    left, right = (read_tensors(path)[0] for path in (left, right))
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@pytest.fixture(scope='module')
def trained(script, data, tmp_path_factory):
    output = tmp_path_factory.mktemp('trained')
    assert run(script, arguments(data, output)) == 0
    return output


def test_training_learns_and_writes_its_files(trained):
    results = json.loads((trained / 'results.json').read_text())
    assert results['best']['dev']['accuracy'] >= 0.9
    assert results['stories'] == {'train': 160, 'dev': 24}
    assert results['predictions'] == ['predictions.tsv']
    assert results['args']['lr'] == 3e-3 and results['args']['optimizer'] == 'openaiadam'
    rates = [record['lr'] for record in results['training']['log']]
    assert rates[-1] == pytest.approx(0) and rates == sorted(rates, reverse=True)
    rows = [line.split('\t') for line in (trained / 'predictions.tsv').read_text().splitlines()]
    assert rows[0][:2] == ['InputStoryid', 'prediction'] and len(rows) == 25
    right = [prediction == label for _, prediction, _, _, label in rows[1:]]
    assert np.mean(right) == results['best']['dev']['accuracy']
    assert all(float(one) + float(two) == pytest.approx(1) for _, _, one, two, _ in rows[1:])


def test_the_best_model_has_the_special_tokens(trained, script, data):
    tokenizer = OpenAIGPTTokenizer.from_pretrained(trained / 'best_model')
    assert list(tokenizer.special_tokens) == list(script.SPECIAL_TOKENS)
    model = OpenAIGPTDoubleHeadsModel.from_pretrained(str(trained / 'best_model'))
    assert model.config.n_special == 3
    context = 'b c . d d . c . b .'
    story = [57, *tokenizer.encode(context), 58, *tokenizer.encode('a b a .'), 59]
    wrong = [57, *tokenizer.encode(context), 58, *tokenizer.encode('x b x .'), 59]
    words = mx.nd.array([[story, wrong]], dtype='int32')
    _, scores = model(words, mx.nd.array([[len(story) - 1] * 2], dtype='int32'))
    assert scores.shape == (1, 2) and scores[0, 0].asscalar() > scores[0, 1].asscalar()


def test_only_evaluation_of_a_folder(script, data, trained, tmp_path):
    argv = ['--model_name', trained / 'best_model', '--do_eval', '--output_dir', tmp_path]
    assert run(script, [*argv, '--eval_dataset', data / 'eval.csv']) == 0
    inference = json.loads((tmp_path / 'inference.json').read_text())
    results = json.loads((trained / 'results.json').read_text())
    assert inference['dev']['dev']['loss'] == pytest.approx(results['best']['dev']['loss'])
    predictions = (trained / 'predictions.tsv').read_text()
    assert (tmp_path / 'predictions.tsv').read_text() == predictions
    assert run(script, [*argv, '--eval_dataset', data / 'eval_unlabelled.csv']) == 0
    assert json.loads((tmp_path / 'inference.json').read_text())['dev'] == {}
    found = (tmp_path / 'predictions.tsv').read_text().splitlines()
    wanted = [line[:-1] for line in predictions.splitlines()]
    assert found[1:] == wanted[1:]


def test_parameters_of_an_epoch_go_into_a_new_model(script, data, trained, tmp_path):
    best = json.loads((trained / 'results.json').read_text())['best']
    argv = arguments(data, tmp_path)
    argv.remove('--do_train')
    argv[argv.index('--from_scratch')] = '--model_parameters'
    argv.insert(argv.index('--model_parameters') + 1, trained / best['parameters'])
    assert run(script, argv) == 0
    inference = json.loads((tmp_path / 'inference.json').read_text())
    assert inference['dev']['dev']['loss'] == pytest.approx(best['dev']['loss'])


def test_interrupted_and_resumed_is_as_unbroken(script, data, tmp_path, monkeypatch, capsys):
    whole, broken = tmp_path / 'whole', tmp_path / 'broken'
    options = ['--n_valid', 120, '--batch_size', 4, '--epochs', 2]
    assert run(script, arguments(data, whole, *options, evaluate=False)) == 0
    assert json.loads((whole / 'results.json').read_text())['stories'] == {'train': 40, 'dev': 120}
    assert not (whole / 'predictions.tsv').exists()
    batch_loss, calls = script.batch_loss, []

    def interrupting(*args):
        calls.append(1)
        if len(calls) == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return batch_loss(*args)

    monkeypatch.setattr(script, 'batch_loss', interrupting)
    assert run(script, arguments(data, broken, *options, evaluate=False)) == 130
    assert '--resume' in capsys.readouterr().err and len(calls) == 13
    argv = arguments(data, broken, *options, '--resume', evaluate=False)
    assert run(script, [*argv, '--lm_coef', '0.9']) == 1
    assert '--lm_coef is 0.9 and was 0.5' in capsys.readouterr().err
    assert run(script, argv) == 0
    for name in ('model_story_cloze_1.params', 'best_model/model.params'):
        assert_equal(whole / name, broken / name)


def test_without_the_language_models_loss(script, data, tmp_path):
    argv = arguments(data, tmp_path, '--lm_coef', '0', '--training_steps', '3')
    assert run(script, argv) == 0
    log = json.loads((tmp_path / 'results.json').read_text())['training']['log']
    assert log[0]['loss'] < 1  # of two endings, about log 2


@pytest.mark.parametrize(
    ('argv', 'message'),
    [
        (['--output_dir', 'OUT'], 'nothing to do: give --do_train, --do_eval or both'),
        (['--do_train'], '--do_train needs --train_dataset'),
        (['--do_eval'], '--do_eval needs --eval_dataset'),
        (['--do_train', '--train_dataset', 'none.csv'], "--train_dataset 'none.csv': no such file"),
        (['--do_train', '--train_dataset', 'TRAIN'], '--n_valid 374: .* has 160 stories'),
        (['--do_train', '--train_dataset', 'TRAIN', '--n_valid', '0'], '--n_valid 0: give 1'),
        (['--do_train', '--train_dataset', 'NO_LABELS', '--n_valid', '9'], 'has no answers'),
        (['--do_eval', '--eval_dataset', 'TRAIN', '--resume'], '--resume continues a training'),
        (['--do_eval', '--eval_dataset', 'TRAIN', '--lm_coef', '-1'], '--lm_coef -1.0: give'),
        (['--do_eval', '--eval_dataset', 'TRAIN', '--max_grad_norm', '0'], '--max_grad_norm 0.0'),
        (['--do_eval', '--eval_dataset', 'VOCAB'], 'its first line lacks InputStoryid'),
        (
            ['--do_eval', '--eval_dataset', 'TRAIN', '--hparams', 'num_layers=1,max_length=4'],
            'a length of 4 is too small',
        ),
    ],
)
def test_bad_input_is_one_clear_line(script, data, tmp_path, capsys, argv, message):
    names = {
        'OUT': tmp_path,
        'TRAIN': data / 'train.csv',
        'NO_LABELS': data / 'train_unlabelled.csv',
        'VOCAB': data / 'vocab.json',
    }
    argv = [names.get(word, word) for word in argv]
    model = ['--from_scratch', '--vocab_file', data / 'vocab.json', '--output_dir', tmp_path]
    assert run(script, [*model, *argv]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(lines) == 1
    assert re.search(message, lines[0])
