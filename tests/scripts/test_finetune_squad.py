"""scripts/finetune_squad.py end to end, on a small random model and made-up questions."""

import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest

import export.export as export
from bert import BertConfig, BertForQuestionAnswering, BertForSequenceClassification
from bert.tokenizer import BertSPTokenizer
from model_zoo.app import cli
from model_zoo.checkpoint import read_tensors

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / 'scripts' / 'finetune_squad.py'

SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
COLOURS = ['red', 'green', 'blue', 'black', 'white', 'grey']
FILLERS = ['the', 'is', 'and', 'of', 'a', 'very', 'old', 'one', 'house']
SIZE = ['--hparams', 'num_layers=1,units=32', 'hidden_size=64,num_heads=2,max_length=48']
ANSWERS = ['predictions.json', 'nbest_predictions.json', 'null_odds.json']


@pytest.fixture(scope='module')
def script():
    spec = importlib.util.spec_from_file_location('finetune_squad', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_set(rng, count, name):
    """Paragraphs with a colour, or in a third of them none, and questions after it."""
    paragraphs = []
    for number in range(count):
        words = rng.choices(FILLERS, k=rng.randint(3, 30))
        colour, answers = rng.choice(COLOURS).title(), []
        if rng.random() < 0.67:
            words.insert(rng.randrange(len(words) + 1), colour)
            answers = [{'text': colour, 'answer_start': ' '.join(words).index(colour)}]
        context = ' '.join(words) + '.'
        entry = {'id': f'{name}{number}', 'question': 'What colour is it?'}
        entry.update(answers=answers, is_impossible=not answers)
        paragraphs.append({'context': context, 'qas': [entry]})
    return {'version': 'v2.0', 'data': [{'title': name, 'paragraphs': paragraphs}]}


def without_impossible(content):
    content = json.loads(json.dumps(content))
    for paragraph in content['data'][0]['paragraphs']:
        paragraph['qas'] = [entry for entry in paragraph['qas'] if entry['answers']]
    return content


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A folder with vocab.txt and train and dev sets of both versions."""
    folder = tmp_path_factory.mktemp('data')
    words = [*SPECIAL, *COLOURS, *FILLERS, 'what', 'colour', 'it', '.', '?']
    (folder / 'vocab.txt').write_text('\n'.join(words) + '\n', encoding='utf-8')
    rng = random.Random(1)
    for name, count in (('train', 400), ('dev', 40)):
        content = make_set(rng, count, name)
        (folder / f'{name}-2.json').write_text(json.dumps(content))
        (folder / f'{name}-1.json').write_text(json.dumps(without_impossible(content)))
    return folder


def arguments(data, output, *more, version=1):
    files = ['--train_file', data / f'train-{version}.json']
    files += ['--predict_file', data / f'dev-{version}.json']
    model = ['--from_scratch', '--vocab_file', data / 'vocab.txt', *SIZE]
    options = ['--batch_size', '16', '--lr', '5e-3', '--log_interval', '5', '--epochs', '4']
    options += ['--max_seq_length', '40', '--doc_stride', '12', '--max_query_length', '10']
    options += ['--version_2'] if version == 2 else []
    return [*map(str, [*files, *model, *options, '--output_dir', output, *more])]


def run(script, argv):
    return cli.run(script.main, list(map(str, argv)))


def load(argv, *more):
    return [word for word in argv if word != '--from_scratch'] + list(more)


def parameters(path):
    return read_tensors(path)[0]


def assert_equal(left, right):
    left, right = parameters(left), parameters(right)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def read(folder, name):
    return json.loads((folder / name).read_text(encoding='utf-8'))


@pytest.fixture(scope='module')
def trained(script, data, tmp_path_factory):
    """Output folder of a training on version 2.0."""
    output = tmp_path_factory.mktemp('trained')
    argv = arguments(data, output, '--epochs', '8', version=2)
    assert run(script, argv) == 0
    return output


def test_training_learns_and_writes_its_files(trained, data):
    results = read(trained, 'results.json')
    dev = results['best']['dev']
    assert dev['f1'] > 80  # always no answer: 35
    assert {'exact', 'total', 'HasAns_f1', 'NoAns_f1', 'best_f1', 'best_f1_thresh'} < set(dev)
    assert dev['best_f1'] >= dev['f1'] - 1e-9 and dev['total'] == 40
    assert results['predictions'] == ANSWERS and results['task'] == 'SQuAD 2.0'
    assert results['args']['epsilon'] == 1e-6 and results['args']['wd'] == 0
    best = results['best']['parameters']
    assert best == f'model_bert_squad_{results["best"]["epoch"] - 1}.params'
    assert_equal(trained / 'best_model' / 'model.params', trained / best)
    assert len(os.listdir(trained / 'checkpoints')) == 2
    assert len(os.listdir(trained / 'cache')) == 2
    log = (trained / 'log_squad.txt').read_text()
    assert 'loss=' in log and 'dev: exact' in log and 'train: 400 questions' in log
    assert mx.image.imread(str(trained / 'curves.png')).asnumpy().std() > 0


def test_answers_are_those_that_were_scored(trained, data):
    predictions, nbest, odds = (read(trained, name) for name in ANSWERS)
    content = json.loads((data / 'dev-2.json').read_text())
    entries = [(p['context'], q) for p in content['data'][0]['paragraphs'] for q in p['qas']]
    assert list(predictions) == list(nbest) == list(odds) == [entry['id'] for _, entry in entries]
    exact = 0
    for context, entry in entries:
        name = entry['id']
        assert predictions[name] in context
        assert predictions[name] == '' or odds[name] <= 0
        texts = [each['text'] for each in nbest[name]]
        assert len(texts) == len(set(texts)) <= 21 and '' in texts
        assert sum(each['probability'] for each in nbest[name]) == pytest.approx(1)
        right = [answer['text'] for answer in entry['answers']] or ['']
        exact += predictions[name].rstrip('.') in right
    assert exact / 40 * 100 == read(trained, 'results.json')['best']['dev']['exact']


def test_the_threshold_decides(script, trained, data, tmp_path):
    counts = []
    for threshold in ('-100', '100'):
        argv = load(arguments(data, tmp_path / threshold, version=2))
        argv += ['--model_parameters', trained / 'best_model' / 'model.params', '--only_predict']
        assert run(script, [*argv, '--null_score_diff_threshold', threshold]) == 0
        predictions = read(tmp_path / threshold, 'predictions.json')
        counts.append(sum(not text for text in predictions.values()))
        assert read(tmp_path / threshold, 'null_odds.json') == pytest.approx(
            read(trained, 'null_odds.json'), abs=1e-4
        )
    assert counts == [40, 0]


def only_predict(data, output, *more, version=2):
    """The command line of a prediction with a folder's or an exported model."""
    argv = ['--only_predict', '--predict_file', data / f'dev-{version}.json', '--version_2']
    argv += ['--max_seq_length', '40', '--doc_stride', '12', '--max_query_length', '10']
    return [*argv, '--output_dir', output, *more]


def test_saved_model_predicts_the_same(script, trained, data, tmp_path):
    argv = only_predict(data, tmp_path, '--bert_model', trained / 'best_model')
    assert run(script, [*argv, '--uncased', '--test_batch_size', '7', '--round_to', '8']) == 0
    assert read(tmp_path, 'predictions.json') == read(trained, 'predictions.json')
    metrics = read(tmp_path, 'inference.json')['dev']['dev']
    expected = read(trained, 'results.json')['best']['dev']
    assert {**metrics, 'samples_per_second': 0} == pytest.approx(
        {**expected, 'samples_per_second': 0}, abs=1e-3
    )
    assert BertForQuestionAnswering.from_pretrained(str(trained / 'best_model'))


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16'])
def test_precisions(script, trained, data, tmp_path, dtype):
    argv = only_predict(data, tmp_path, '--bert_model', trained / 'best_model', '--dtype', dtype)
    assert run(script, argv) == 0
    same = read(tmp_path, 'predictions.json').items() & read(trained, 'predictions.json').items()
    assert len(same) >= 38
    argv = arguments(data, tmp_path / 'train', '--dtype', dtype, '--training_steps', '20')
    assert run(script, argv) == 0
    log = read(tmp_path / 'train', 'results.json')['training']['log']
    losses = [record['loss'] for record in log]
    assert losses[-1] < losses[0] and np.isfinite(losses).all()


def export_to(folder, *more):
    argv = ['--output_dir', folder, '--seq_length', 40, *more]
    return cli.run(export.main, list(map(str, argv)))


def test_exported_model_predicts_the_same(script, trained, data, tmp_path, capsys):
    model = ['--model_name', trained / 'best_model']
    assert export_to(tmp_path, '--task', 'question_answering', *model) == 0
    argv = only_predict(data, tmp_path, '--bert_model', trained / 'best_model', '--deploy')
    argv += ['--model_prefix', tmp_path / 'question_answering']
    assert run(script, argv) == 0
    assert read(tmp_path, 'predictions.json') == read(trained, 'predictions.json')
    metrics = read(tmp_path, 'inference.json')['dev']['dev']
    assert metrics['f1'] == read(trained, 'results.json')['best']['dev']['f1']
    capsys.readouterr()
    assert run(script, [*argv, '--max_seq_length', '49']) == 1
    assert 'error: --max_seq_length 49: the exported model takes 48' in capsys.readouterr().err


def test_export_of_another_task_is_refused(script, trained, data, tmp_path, capsys):
    folder = str(trained / 'best_model')
    bert = BertForQuestionAnswering.from_pretrained(folder).bert
    model = BertForSequenceClassification(BertConfig.from_dict(bert.config.to_dict()))
    model.initialize()
    model.save_pretrained(str(tmp_path / 'classifier'))
    more = ['--task', 'classification', '--model_name', tmp_path / 'classifier']
    assert export_to(tmp_path, *more) == 0
    argv = only_predict(data, tmp_path, '--bert_model', folder, '--deploy')
    assert run(script, [*argv, '--model_prefix', tmp_path / 'classification']) == 1
    assert 'was it exported for another task?' in capsys.readouterr().err


def test_a_test_set_without_answers_is_predicted(script, trained, data, tmp_path):
    content = json.loads((data / 'dev-2.json').read_text())
    for paragraph in content['data'][0]['paragraphs']:
        for entry in paragraph['qas']:
            del entry['answers'], entry['is_impossible']
    (tmp_path / 'test.json').write_text(json.dumps(content))
    argv = only_predict(data, tmp_path / 'out', '--bert_model', trained / 'best_model')
    argv[argv.index('--predict_file') + 1] = tmp_path / 'test.json'
    assert run(script, argv) == 0
    assert read(tmp_path / 'out', 'predictions.json') == read(trained, 'predictions.json')
    assert read(tmp_path / 'out', 'inference.json')['dev'] == {}


def test_version_1_and_an_interrupted_training(script, data, tmp_path):
    """Ctrl-C in another process, started in scripts/, and --resume ends bit-equal; MXNet's adam."""
    more = ['--optimizer', 'adam', '--epochs', '2', '--accumulate', '2', '--batch_size', '8']
    assert run(script, arguments(data, tmp_path / 'whole', *more)) == 0
    results = read(tmp_path / 'whole', 'results.json')
    dev = results['best']['dev']
    assert set(dev) == {'exact_match', 'f1', 'samples_per_second'} and dev['f1'] > 5
    assert results['predictions'] == ANSWERS[:2] and results['task'] == 'SQuAD 1.1'
    assert results['args']['epsilon'] == 1e-8
    steps = results['training']['steps']

    argv = arguments(data, tmp_path / 'broken', *more)
    code = f"""
import os, signal, sys, runpy
from model_zoo.training import ProgressLogger
on_step = ProgressLogger.on_step
def interrupt(self, loop):
    on_step(self, loop)
    if loop.state.step == {steps - 5}:
        os.kill(os.getpid(), signal.SIGINT)
ProgressLogger.on_step = interrupt
sys.argv = {['x', *map(str, argv)]!r}
runpy.run_path('finetune_squad.py', run_name='__main__')
"""
    process = subprocess.run(
        [sys.executable, '-c', code],
        cwd=SCRIPT.parent,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    assert process.returncode == 130, process.stderr
    assert f'step {steps - 5} of {steps} is saved' in process.stderr.splitlines()[-1]
    assert run(script, [*argv, '--resume', '--doc_stride', '13']) == 1
    assert run(script, [*argv, '--resume']) == 0
    last = 'model_bert_squad_1.params'
    assert_equal(tmp_path / 'whole' / last, tmp_path / 'broken' / last)
    for name in ANSWERS[:2]:
        assert read(tmp_path / 'whole', name) == read(tmp_path / 'broken', name)


def environment(**changes):
    path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    return {**os.environ, 'PYTHONPATH': path, **changes}


def test_debug_takes_a_part(script, data, tmp_path, monkeypatch):
    monkeypatch.setattr(script, 'DEBUG_SIZES', {'train': 20, 'dev': 3})
    assert run(script, arguments(data, tmp_path, '--debug', '--epochs', '1')) == 0
    assert len(read(tmp_path, 'predictions.json')) == 3
    assert 'train: 20 questions' in (tmp_path / 'log_squad.txt').read_text()


def test_gluonnlps_files_without_local_ones(script, trained, data, tmp_path, monkeypatch):
    wanted = []

    def find(segment, version_2):
        wanted.append((segment, version_2))
        return str(data / f'{segment}-{1 + version_2}.json')

    monkeypatch.setattr(script, 'find_squad', find)
    argv = only_predict(data, tmp_path, '--bert_model', trained / 'best_model')
    place = argv.index('--predict_file')
    assert run(script, argv[:place] + argv[place + 2 :]) == 0
    argv = arguments(data, tmp_path, '--training_steps', '1')[4:]
    assert run(script, argv) == 0
    assert wanted == [('dev', True), ('dev', False), ('train', False)]


def test_sentencepiece(script, data, tmp_path):
    sentencepiece = pytest.importorskip('sentencepiece')
    words = (data / 'vocab.txt').read_text().split()[len(SPECIAL) :]
    (tmp_path / 'text').write_text('\n'.join(['The house is red.', ' '.join(words)] * 50))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / 'text'), model_prefix=str(tmp_path / 'sp'), vocab_size=60,
        user_defined_symbols='[CLS],[SEP],[MASK]', hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    argv = arguments(data, tmp_path / 'out', '--sentencepiece', tmp_path / 'sp.model', version=2)
    place = argv.index('--vocab_file')
    argv = argv[:place] + argv[place + 2 :]
    assert run(script, [*argv, '--epochs', '1']) == 0
    predictions = read(tmp_path / 'out', 'predictions.json')
    content = json.loads((data / 'dev-2.json').read_text())
    for paragraph in content['data'][0]['paragraphs']:
        assert predictions[paragraph['qas'][0]['id']] in paragraph['context']
    assert BertSPTokenizer.from_pretrained(tmp_path / 'out' / 'best_model')


def test_two_workers_train_as_one(data, tmp_path):
    pytest.importorskip('horovod.mxnet')
    horovodrun = pathlib.Path(sys.executable).with_name('horovodrun')
    more = ['--training_steps', '4', '--hparams', SIZE[1], SIZE[2] + ',dropout=0']
    argv = arguments(data, tmp_path / 'two', *more, '--comm_backend', 'horovod')
    argv[argv.index('--batch_size') + 1] = '8'
    command = [horovodrun, '--gloo', '-np', '2', '-H', 'localhost:2', sys.executable, SCRIPT]
    process = subprocess.run(
        [*map(str, command), *argv],
        env=environment(OMP_NUM_THREADS='1'),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stdout
    one = arguments(data, tmp_path / 'one', *more)
    command = [sys.executable, str(SCRIPT), *one]
    subprocess.run(command, env=environment(OMP_NUM_THREADS='1'), check=True, timeout=300)
    left, right = (
        parameters(tmp_path / name / 'model_bert_squad_0.params') for name in ('one', 'two')
    )
    for name in left:
        np.testing.assert_allclose(left[name], right[name], atol=1e-5, err_msg=name)


def change(argv, flag, *values):
    place = argv.index(flag)
    return [*argv[: place + 1], *values, *argv[place + 2 :]]


@pytest.mark.parametrize(
    ('edit', 'message'),
    [
        (lambda a, t: change(a, '--train_file', f'{t}/no.json'), "--train_file '.*': no such file"),
        (lambda a, t: change(a, '--predict_file', f'{t}'), '--predict_file .*is a directory'),
        (lambda a, t: change(a, '--train_file', f'{t}/text.json'), 'text.json is not JSON'),
        (lambda a, t: change(a, '--train_file', f'{t}/empty.json'), "the field 'data' is missing"),
        (lambda a, t: change(a, '--train_file', f'{t}/dev-2.json'), 'use --version_2'),
        (lambda a, t: change(a, '--predict_file', f'{t}/dev-2.json'), 'no answer: use --version_2'),
        (lambda a, t: change(a, '--train_file', f'{t}/shift.json'), 'not at its answer_start'),
        (lambda a, t: change(a, '--predict_file', f'{t}/test.json'), "lack the field 'answers'"),
        (lambda a, t: change(a, '--train_file', f'{t}/blank.json'), 'no paragraph with a word'),
        (lambda a, t: change(a, '--max_seq_length', '49'), '--max_seq_length 49: the model takes'),
        (lambda a, t: change(a, '--max_seq_length', '13'), 'max_seq_length 13: give more than'),
        (lambda a, t: change(a, '--doc_stride', '0'), '--doc_stride 0: give 1'),
        (lambda a, t: change(a, '--max_query_length', '0'), '--max_query_length 0: give 1'),
        (lambda a, t: [*a, '--n_best_size', '0'], '--n_best_size 0: give 1'),
        (lambda a, t: [*a, '--max_answer_length', '0'], '--max_answer_length 0: give 1'),
        (lambda a, t: [*a, '--test_batch_size', '0'], '--dev_batch_size 0: give 1'),
        (lambda a, t: [*a, '--gpu'], '--gpu 0'),
        (lambda a, t: [*a, '--gpu', '1'], '--gpu 1'),
        (lambda a, t: [*a, '--deploy'], '--deploy needs --only_'),
        (lambda a, t: [*a, '--sentencepiece', f'{t}/x.model'], '--sentencepiece and --vocab_file'),
        (
            lambda a, t: ['--sentencepiece', f'{t}/x.model'],
            '--sentencepiece: pretrained weights have a vocabulary of their own',
        ),
        (
            lambda a, t: ['--sentencepiece', f'{t}/x.model', '--from_scratch'],
            "--sentencepiece '.*x.model': no such file",
        ),
        (lambda a, t: ['--sentencepiece', f'{t}/v.txt'], 'ends in .model or .spiece'),
        (lambda a, t: [*a, '--cache_dir', f'{t}/text.json'], 'cannot write to directory'),
    ],
)
def test_bad_input_is_one_clear_line(script, data, tmp_path, capsys, edit, message):
    content = (data / 'dev-2.json').read_text()
    plain = (data / 'dev-1.json').read_text()
    (tmp_path / 'dev-2.json').write_text(content)
    (tmp_path / 'text.json').write_text('no JSON')
    (tmp_path / 'empty.json').write_text('{}')
    (tmp_path / 'shift.json').write_text(plain.replace('"answer_start": ', '"answer_start": 1'))
    (tmp_path / 'test.json').write_text(re.sub(r', "answers": .*?\]', '', plain).replace(
        ', "is_impossible": false', ''))  # fmt: skip
    question = {'id': 'x', 'question': 'x', 'answers': [{'text': '\x01', 'answer_start': 0}]}
    blank = {'data': [{'paragraphs': [{'context': '\x01', 'qas': [question]}]}]}
    (tmp_path / 'blank.json').write_text(json.dumps(blank))
    argv = edit(arguments(data, tmp_path / 'out'), tmp_path)
    assert run(script, argv) == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(errors) == 1
    assert re.search(message, errors[0]), errors[0]
    assert not list((tmp_path / 'out').glob('*.params'))


def test_uncased_is_checked(script, trained, data, tmp_path, capsys):
    config = tmp_path / 'model' / 'tokenizer_config.json'
    (tmp_path / 'model').mkdir()
    for path in (trained / 'best_model').iterdir():
        (tmp_path / 'model' / path.name).write_bytes(path.read_bytes())
    config.write_text(json.dumps({**json.loads(config.read_text()), 'do_lower_case': False}))
    argv = only_predict(data, tmp_path / 'out', '--bert_model', tmp_path / 'model', '--uncased')
    assert run(script, argv) == 1
    assert "--uncased: the model's vocabulary is cased" in capsys.readouterr().err


def test_prediction_by_random_parameters_warns(script, data, tmp_path):
    assert run(script, arguments(data, tmp_path, '--only_predict')) == 0
    assert 'the predictions are those of a random head' in (tmp_path / 'log_squad.txt').read_text()


def test_the_originals_command_lines_are_understood(script):
    adam = '--optimizer adam --lr 3e-5 --epochs 2 --gpu '
    large = '--bert_model bert_24_1024_16 '
    for line, size, accumulate in (
        (adam + '--batch_size 12', 12, None),
        (adam + '--accumulate 2 --batch_size 6', 6, 2),
        (adam + large + '--accumulate 6 --batch_size 4', 4, 6),
        (
            adam + large + '--accumulate 8 --batch_size 4 --null_score_diff_threshold -2.0 '
            '--version_2',
            4,
            8,
        ),
    ):
        args = script.parse_arguments(line.split())
        assert (args.gpu, args.batch_size, args.accumulate) == (0, size, accumulate)
        assert (args.lr, args.epochs, args.epsilon, args.wd) == (3e-5, 2, 1e-8, 0)
        assert args.null_score_diff_threshold == (-2.0 if args.version_2 else 0)
    args = script.parse_arguments([])
    assert (args.lr, args.epochs, args.batch_size, args.dev_batch_size) == (5e-5, 3, 32, 24)
    assert (args.max_seq_length, args.doc_stride, args.max_query_length) == (384, 128, 64)
    assert (args.n_best_size, args.max_answer_length, args.log_interval) == (20, 30, 50)
    assert (args.optimizer, args.warmup_ratio, args.gpu) == ('bertadam', 0.1, None)
    line = '--only_predict --model_parameters x --test_batch_size 8 --dtype float16 --round_to 8'
    args = script.parse_arguments(line.split())
    assert args.only_inference and args.dev_batch_size == 8


@pytest.mark.data
@pytest.mark.weights
def test_minilm_on_real_data(script, data_dir, minilm_dir, tmp_path):
    squad = data_dir / 'squad'
    argv = ['--train_file', squad / 'train-v2.0-part.json', '--version_2', '--debug']
    argv += ['--predict_file', squad / 'dev-v2.0-part.json', '--bert_model', 'bert_6_384_12']
    argv += ['--training_steps', '2', '--batch_size', '4', '--output_dir', tmp_path]
    assert run(script, [*argv, '--max_seq_length', '128', '--doc_stride', '32']) == 0
    assert read(tmp_path, 'results.json')['best']['dev']['total'] == 100
