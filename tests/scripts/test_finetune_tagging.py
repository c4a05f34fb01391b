"""scripts/finetune_tagging.py end to end, on a small random model and made-up sentences."""

import functools
import json
import os
import random
import re
import signal
import sys

import mxnet as mx
import numpy as np
import pytest
from script_runs import (
    SCRIPTS,
    assert_same_model,
    assert_two_workers_train_as_one,
    load_script,
    run,
)

from bert import BertForTokenClassification
from model_zoo.tasks.tagging import read_conll

SCRIPT = SCRIPTS / 'finetune_tagging.py'
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
SIZE = ['--hparams', 'num_layers=1,units=32', 'hidden_size=64,num_heads=2,max_length=64,dropout=0']


@pytest.fixture(autouse=True)
def seqeval():
    return pytest.importorskip('seqeval')


@pytest.fixture(scope='module')
def script():
    return load_script('finetune_tagging')


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """Names begin with n and go on with m; of three or four pieces, in short and long sentences."""
    folder = tmp_path_factory.mktemp('data')
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL, *'abcdenm', '##x', '##y']) + '\n')
    rng = random.Random(3)
    for name, count in (('train', 240), ('valid', 30), ('test', 12)):
        lines = ['-DOCSTART- -X- O', '']
        for number in range(count):
            size = 70 if number == 3 else rng.randint(1, 9)
            while size > 0:
                if rng.random() < 0.3:
                    words = ['n', *'m' * rng.randint(0, 2)]
                    labels = ['B-PER', *['I-PER'] * (len(words) - 1)]
                else:
                    words, labels = [rng.choice('abcde')], ['O']
                for word, label in zip(words, labels):
                    word += 'xyx'[: rng.randint(0, 3)]
                    lines.append(f'{word} {word[0].upper()} {label}')
                size -= len(words)
            lines.append('')
        (folder / f'{name}.txt').write_text('\n'.join(lines))
    return folder


def arguments(data, output, *more):
    model = ['--from_scratch', '--vocab_file', data / 'vocab.txt', *SIZE]
    options = ['--learning-rate', '5e-3', '--batch-size', '16', '--seq-len', '24']
    return ['--data_dir', data, *model, *options, '--output_dir', output, *more]


def last_column(text):
    return [line.split()[-1] for line in text.splitlines() if line]


@pytest.fixture(scope='module')
def trained(script, data, tmp_path_factory):
    pytest.importorskip('seqeval')
    output = tmp_path_factory.mktemp('trained')
    assert run(script, *arguments(data, output, '--num-epochs', '3')) == 0
    return output


def test_training_learns_and_writes_its_files(trained, data):
    results = json.loads((trained / 'results.json').read_text())
    assert results['labels'] == ['O', 'B-PER', 'I-PER']
    assert results['best']['dev']['f1'] >= 0.95
    assert results['best_model']['dev']['f1'] == results['best']['dev']['f1']
    assert results['best_model']['test']['f1'] >= 0.95
    assert results['predictions'] == ['dev_predictions.txt', 'test_predictions.txt']
    words = sum(len(each.words) for each in read_conll(data / 'train.txt'))
    examples = results['training']['words_per_second'] * results['training']['seconds']
    assert examples == pytest.approx(3 * words)  # each word once an epoch, in windows or not


@pytest.mark.parametrize(('segment', 'name'), [('dev', 'valid.txt'), ('test', 'test.txt')])
def test_predictions_are_in_conlls_form(trained, data, segment, name):
    lines = (trained / f'{segment}_predictions.txt').read_text().splitlines()
    source = (data / name).read_text().splitlines()
    assert [line.rpartition(' ')[0] for line in lines] == source
    rows = [line.split() for line in lines if line and not line.startswith('-DOCSTART-')]
    metrics = json.loads((trained / 'results.json').read_text())['best_model'][segment]
    right = np.mean([row[-1] == row[-2] for row in rows])
    assert right == pytest.approx(metrics['accuracy']) and right > 0.95


def test_only_inference_of_a_folder(script, trained, data, tmp_path):
    config = json.loads((trained / 'best_model' / 'config.json').read_text())
    assert config['id2label'] == {'0': 'O', '1': 'B-PER', '2': 'I-PER'}
    argv = ['--only_inference', '--bert_model', trained / 'best_model', '--output_dir', tmp_path]
    argv += ['--max_seq_length', '24']
    assert run(script, *argv, '--data_dir', data) == 0
    inference = json.loads((tmp_path / 'inference.json').read_text())
    results = json.loads((trained / 'results.json').read_text())
    for segment in ('dev', 'test'):
        for name in ('f1', 'loss'):
            one, other = inference['dev'][segment][name], results['best_model'][segment][name]
            assert one == pytest.approx(other, 1e-4)
    expected = (trained / 'test_predictions.txt').read_text()
    assert (tmp_path / 'test_predictions.txt').read_text() == expected
    # words only: nothing to evaluate
    words = tmp_path / 'words.txt'
    lines = (data / 'test.txt').read_text().splitlines()
    words.write_text('\n'.join(line.partition(' ')[0] for line in lines) + '\n')
    assert run(script, *argv, '--test_file', words, '--no_test_labels') == 0
    assert json.loads((tmp_path / 'inference.json').read_text())['dev'] == {}
    found = (tmp_path / 'test_predictions.txt').read_text()
    assert last_column(found) == last_column(expected)


def test_parameters_of_an_epoch_go_into_a_new_model(script, trained, data, tmp_path):
    best = json.loads((trained / 'results.json').read_text())['best']
    argv = arguments(data, tmp_path, '--only_inference', '--labels', 'O', 'B-PER', 'I-PER')
    argv[argv.index('--from_scratch')] = '--model_parameters'
    argv.insert(argv.index('--model_parameters') + 1, trained / best['parameters'])
    assert run(script, *argv) == 0
    inference = json.loads((tmp_path / 'inference.json').read_text())
    assert inference['dev']['dev']['f1'] == best['dev']['f1']


def test_any_column(script, data, tmp_path):
    """The second column repeats the words' first letters: no entities, so accuracy counts."""
    argv = arguments(data, tmp_path, '--label_column', '1', '--epochs', '1', '--dropout-prob', '0')
    assert run(script, *argv) == 0
    results = json.loads((tmp_path / 'results.json').read_text())
    assert results['labels'] == list('ABCDEMN')
    assert results['best']['dev']['accuracy'] >= 0.9 and 'f1' not in results['best']['dev']
    assert results['training']['epochs'][0]['score'] == results['best']['dev']['accuracy']


def test_interrupted_and_resumed_is_as_unbroken(script, data, tmp_path, monkeypatch, capsys):
    whole, broken = tmp_path / 'whole', tmp_path / 'broken'
    options = ['--epochs', 2, '--accumulate', 2]
    assert run(script, *arguments(data, whole, *options)) == 0
    call, calls = BertForTokenClassification.__call__, []

    def interrupting(self, *inputs):
        calls.append(1)
        if len(calls) == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return call(self, *inputs)

    monkeypatch.setattr(BertForTokenClassification, '__call__', interrupting)
    assert run(script, *arguments(data, broken, *options)) == 130
    monkeypatch.undo()
    argv = arguments(data, broken, *options, '--resume')
    assert run(script, *argv, '--label_column', '1') == 1
    assert '--label_column is 1 and was -1' in capsys.readouterr().err
    assert run(script, *argv) == 0
    assert_same_model(whole, broken)
    whole, broken = (json.loads((each / 'results.json').read_text()) for each in (whole, broken))
    assert whole['best']['dev']['loss'] == broken['best']['dev']['loss']


def test_missing_seqeval_is_said_before_the_training(script, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'seqeval.metrics.sequence_labeling', None)
    assert run(script, *arguments(data, tmp_path)) == 1
    assert 'gluon-transformer-zoo[tagging]' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_two_workers_train_as_one(script, data, tmp_path):
    arguments_to = functools.partial(arguments, data)
    assert_two_workers_train_as_one(script, SCRIPT, arguments_to, tmp_path)


@pytest.mark.data
def test_learns_from_real_sentences(script, data_dir, tmp_path):
    """A small model knows the commonest names of 60 sentences after some epochs."""
    text = (data_dir / 'conll2003' / 'train.txt').read_text('utf-8')
    part = tmp_path / 'train.txt'
    part.write_text('\n\n'.join(text.split('\n\n')[:60]) + '\n', 'utf-8')
    argv = ['--train_file', part, '--dev_file', part, '--from_scratch', '--output_dir', tmp_path]
    argv += ['--vocab_file', data_dir / 'vocab' / 'bert-uncased' / 'vocab.txt', *SIZE]
    argv += ['--seq-len', '32', '--lr', '5e-3', '--optimizer', 'openaiadam', '--batch-size', '4']
    argv += ['--epochs', '5']
    assert run(script, *argv) == 0
    results = json.loads((tmp_path / 'results.json').read_text())
    assert results['best']['dev']['f1'] > 0.6
    lines = (tmp_path / 'dev_predictions.txt').read_text('utf-8').splitlines()
    assert [line.rpartition(' ')[0] for line in lines] == part.read_text('utf-8').splitlines()


@pytest.mark.parametrize(
    ('argv', 'message'),
    [
        ([], 'there is no train set: give --train_file, or --data_dir'),
        (['--train_file', 'TEST'], 'there is no dev set'),
        (['--only_inference'], 'there is no dev set'),
        (['--data_dir', 'OUT'], "--data_dir '.*' has none of train.txt, valid.txt or dev.txt"),
        (['--dev-path', 'none.txt'], "--dev_file 'none.txt': no such file"),
        (['--data_dir', 'DATA', '--label_column', '3'], 'line 3: there is no column 3 for'),
        (
            ['--data_dir', 'DATA', '--labels', 'O', 'B-PER', '--seq-len', '9'],
            "txt, line \\d+: the label 'I-PER' is none of those known: O, B-PER",
        ),
        (['--data_dir', 'DATA', '--labels', 'O', 'O'], 'two different ones are needed'),
        (['--data_dir', 'DATA', '--seq-len', '2'], 'a length of 2 is too small'),
        (['--data_dir', 'DATA', '--seq-len', '65'], '--max_seq_length 65: the model takes 64'),
        (['--data_dir', 'DATA', '--dropout_prob', '1'], '--dropout_prob 1.0: give a number'),
        (['--data_dir', 'DATA', '--only_inference'], 'does not say its labels: give --labels'),
        (['--data_dir', 'DATA', '--only_inference', '--resume'], '--resume continues a training'),
        (['--cased', '--bert_dataset', 'x'], '--cased and --bert_dataset both name the weights'),
    ],
)
def test_bad_input_is_one_clear_line(script, data, tmp_path, capsys, argv, message):
    names = {'OUT': tmp_path, 'TEST': data / 'test.txt', 'DATA': data}
    argv = [names.get(word, word) for word in argv]
    model = ['--from_scratch', '--vocab_file', data / 'vocab.txt', *SIZE, '--output_dir', tmp_path]
    assert run(script, *model, *argv) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(lines) == 1
    assert re.search(message, lines[0])


def test_labels_of_the_folder_are_kept(script, trained, data, tmp_path, capsys):
    argv = ['--data_dir', data, '--bert_model', trained / 'best_model', '--output_dir', tmp_path]
    assert run(script, *argv, '--labels', 'B-PER', 'O', 'I-PER') == 1
    assert 'has the labels O B-PER I-PER: leave out --labels' in capsys.readouterr().err
    # a further training, one of whose labels the data lack
    part = tmp_path / 'train.txt'
    part.write_text('a A O\nn N B-PER\n')
    argv += ['--train_file', part, '--seq-len', '24', '--epochs', '1', '--lr', '0']
    assert run(script, *argv) == 0
    results = json.loads((tmp_path / 'results.json').read_text())
    assert results['labels'] == ['O', 'B-PER', 'I-PER'] and results['best']['dev']['f1'] >= 0.95


def test_the_originals_command_line_is_understood(script):
    line = (
        '--train-path train.txt --dev-path valid.txt --test-path test.txt --gpu 0 '
        '--learning-rate 1e-5 --warmup-ratio 0 --batch-size 8 --num-epochs 10 --seq-len 200 '
        '--bert-model bert_24_1024_16 --save-checkpoint-prefix large_bert --seed 13531 --cased True'
    )
    args = script.parse_arguments(line.split())
    assert (args.lr, args.warmup_ratio, args.batch_size, args.epochs) == (1e-5, 0, 8, 10)
    assert args.bert_model == 'bert_24_1024_16' and args.output_dir == 'large_bert'
    assert args.bert_dataset == 'book_corpus_wiki_en_cased' and args.max_seq_length == 200
    assert script.parse_arguments(['--cased', 'false']).bert_dataset.endswith('uncased')


def test_the_best_model_is_one_of_ours(trained):
    model = BertForTokenClassification.from_pretrained(str(trained / 'best_model'))
    words = mx.nd.array([[2, 10, 11, 5, 3]], dtype='int32')  # n m a
    assert model(words)[0, 1:4].argmax(axis=-1).asnumpy().tolist() == [1, 2, 0]
