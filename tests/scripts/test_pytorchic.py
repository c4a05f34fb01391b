"""Pytorchic BERT's classify.py and pretrain.py: they end where the original's scripts do."""

import json
import pathlib
import shutil
import string

import numpy as np
import pytest
from arrays import assert_equal, part, stored
from script_runs import SCRIPTS, load_script, parameters, read_json, refusal, run
from test_original_commands import COMMANDS

from bert import BertForPreTraining, BertForSequenceClassification
from mxnet_pytorchic_bert.models import CONFIG_FIELDS
from mxnet_pytorchic_bert.training import linear_rate

FOLDER = pathlib.Path(__file__).parents[1] / 'fixtures' / 'pytorchic'
HERE = SCRIPTS / 'originals' / 'pytorchic_bert'
SAID = read_json(FOLDER, 'expected.json')
COMMON = ['--model_cfg', FOLDER / 'model.json', '--vocab', FOLDER / 'vocab.txt']


@pytest.fixture(scope='module')
def classify():
    return load_script('classify', HERE)


@pytest.fixture(scope='module')
def pretrain():
    return load_script('pretrain', HERE)


def parsed(script, *words):
    return script.parse_arguments(list(map(str, words)))


@pytest.fixture(scope='module')
def expected():
    return stored(FOLDER / 'expected.npz')


def classify_words(*more):
    files = ['--data_file', FOLDER / 'mrpc.tsv', '--train_cfg', FOLDER / 'classify.json']
    return [*COMMON, *files, '--max_len', 20, *more]


def pretrain_words(folder, *more):
    files = ['--data_file', FOLDER / 'corpus.txt', '--train_cfg', FOLDER / 'pretrain.json']
    files += ['--model_file', FOLDER / 'pretrained.pt', '--save_dir', folder]
    return [*COMMON, *files, '--max_len', 32, '--max_pred', 5, '--log_dir', folder / 'runs', *more]


def step_files(folder):
    return sorted(path.name for path in folder.glob('model_steps_*.pt'))


def assert_as_recorded(folder, script, expected, atol):
    names = {name.split('/')[1] for name in expected if name.startswith(f'{script}/')}
    assert len(names) == 2
    for file in names:
        assert_equal(parameters(folder / file), part(expected, script, file), atol)


def test_classify_trains_as_the_original(classify, expected, tmp_path, capsys):
    words = classify_words('--save_dir', tmp_path, '--model_file', FOLDER / 'classifier.pt')
    assert run(classify, *words) == 0
    assert step_files(tmp_path) == SAID['classify']
    assert_as_recorded(tmp_path, 'classify', expected, 1e-4)
    results = read_json(tmp_path)
    assert results['training']['steps'] == 7 and results['args']['epochs'] == 9
    assert BertForSequenceClassification.from_pretrained(str(tmp_path / 'best_model'))
    capsys.readouterr()
    trained = tmp_path / 'model_steps_7.pt'
    assert run(classify, *classify_words('--mode', 'eval', '--model_file', trained)) == 0
    accuracy = float(capsys.readouterr().out.splitlines()[-1].partition('Accuracy: ')[2])
    assert accuracy == pytest.approx(float(SAID['accuracy'].partition(': ')[2]))


def test_pretrain_trains_as_the_original(pretrain, expected, tmp_path, without):
    pytest.importorskip('tensorboard')
    without('tensorflow')  # which tensorboard would load, if it is there
    assert run(pretrain, *pretrain_words(tmp_path, '--log_interval', 1)) == 0
    assert step_files(tmp_path) == SAID['pretrain']
    losses = [record['loss'] for record in read_json(tmp_path)['training']['log']]
    np.testing.assert_allclose(losses, expected['losses'], rtol=2e-4)
    assert_as_recorded(tmp_path, 'pretrain', expected, 5e-4)  # after 46 updates of Adam
    assert list((tmp_path / 'runs').iterdir())
    assert BertForPreTraining.from_pretrained(str(tmp_path / 'best_model')).config.hidden_size == 16


def test_fine_tuning_begins_with_a_pretrained_file(classify, tmp_path):
    words = classify_words('--pretrain_file', FOLDER / 'pretrained.pt')
    words += ['--epochs', 1, '--save_dir', tmp_path]
    assert run(classify, *words) == 0
    assert step_files(tmp_path) == ['model_steps_1.pt']
    ours, theirs = map(parameters, (tmp_path / 'model_steps_1.pt', FOLDER / 'pretrained.pt'))
    # the first update has a rate of 0
    name = 'transformer.blocks.1.pwff.fc1.weight'
    np.testing.assert_array_equal(ours[name], theirs[name])
    assert not np.allclose(ours['fc.weight'], theirs['fc.weight'])  # random, as in the original


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A folder in the place of /path/to, with Google's checkpoint of a tiny BERT."""
    folder = tmp_path_factory.mktemp('world')
    shutil.copytree(FOLDER.parent / 'checkpoints' / 'bert_tensorflow', folder / 'pretrain')
    (folder / 'glue' / 'MRPC').mkdir(parents=True)
    for name in ('train', 'dev'):
        shutil.copy(FOLDER / 'mrpc.tsv', folder / 'glue' / 'MRPC' / f'{name}.tsv')
    shutil.copy(FOLDER / 'corpus.txt', folder / 'corpus')
    (folder / 'config').mkdir()
    google = read_json(folder / 'pretrain', 'bert_config.json')
    small = {name: google[ours] for name, (ours, _) in CONFIG_FIELDS.items() if name != 'n_seg'}
    (folder / 'config' / 'bert_base.json').write_text(json.dumps(small))
    short = {'batch_size': 4, 'n_epochs': 1, 'save_steps': 4, 'total_steps': 5}
    (folder / 'config' / 'pretrain.json').write_text(json.dumps(short))
    return folder


@pytest.mark.parametrize('number', ['01', '02', '03'])
def test_the_readmes_commands(world, classify, pretrain, monkeypatch, capsys, number):
    command = next(each for each in COMMANDS if each['id'] == f'pytorchic-{number}')
    paths = command['exports'].items()
    values = {name: path.replace('/path/to', str(world)) for name, path in paths}
    if number == '03':
        values['SAVE_DIR'] += '_pretrained'  # another training than that of 01
    words = [string.Template(word).substitute(values) for word in command['argv']]
    words = [word.replace('model_steps_345', 'model_steps_3') for word in words]  # of 12 rows
    script = {'classify.py': classify, 'pretrain.py': pretrain}[command['script']]
    monkeypatch.chdir(world)  # train_mrpc.json is beside the script
    assert run(script, *words, '--max_len', 12) == 0
    if number == '02':
        assert float(capsys.readouterr().out.splitlines()[-1].partition('Accuracy: ')[2]) >= 0
    else:
        last = 'model_steps_3.pt' if number == '01' else 'model_steps_6.pt'
        assert (pathlib.Path(values['SAVE_DIR']) / last).stat().st_size > 0


def test_the_originals_own_files_and_values_by_position(classify, tmp_path, monkeypatch):
    data = ['--data_file', FOLDER / 'mrpc.tsv', '--vocab', FOLDER / 'vocab.txt']
    args = parsed(classify, 'mrpc', 'config/train_mrpc.json', *data)
    assert (args.task, args.lr, args.seed, args.batch_size) == ('mrpc', 2e-5, 42, 32)
    assert (args.epochs, args.save_steps, args.total_steps, args.warmup_ratio) == (3, 100, 345, 0.1)
    assert (args.max_len, args.output_dir) == (128, '../exp/bert/mrpc')
    args = parsed(classify, *data, '--lr', 1e-3, '-max-len=30', '--nodata_parallel')
    assert (args.lr, args.max_len, args.data_parallel) == (1e-3, 30, False)


def test_the_schedule():
    rate = linear_rate(1.0, 0.25, 8)
    assert [rate(n) for n in range(1, 10)] == [0, 0.5, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0]


WRONG = [
    ({'train': '{"lr": 1, "total_step": 3}'}, 'total_step'),
    ({'train': '{"lr": "x"}'}, 'lr'),
    ({'train': '{"total_steps": 0}'}, '--total_steps'),
    ({'model': '{"dims": 3}'}, 'dims'),
    ({'words': ['--train_cfg', 'none.json']}, 'train_cfg'),
    ({'words': ['--mode', 'eval']}, 'model_file'),
    ({'words': ['--max_len', 41, '--model_file', FOLDER / 'classifier.pt']}, '41'),
    ({'words': ['--model_file', FOLDER / 'pretrained.pt']}, 'pretrained.pt'),
    ({'words': ['--gpus', '0,1']}, '--gpus'),
]


@pytest.mark.parametrize('edit, field', WRONG)
def test_what_is_wrong_is_said(classify, tmp_path, capsys, edit, field):
    words = classify_words('--save_dir', tmp_path / 'out')
    for name, flag in (('train', '--train_cfg'), ('model', '--model_cfg')):
        if name in edit:
            (tmp_path / name).write_text(edit[name])
            words += [flag, tmp_path / name]
    assert field in refusal(capsys, classify, *words, *edit.get('words', []))


def test_mnli_has_its_label_in_the_last_column(classify, tmp_path):
    names = [f'c{n}' for n in range(8)] + ['sentence1', 'sentence2', 'label1', 'gold_label']
    labels = 'neutral', 'entailment', 'contradiction'
    rows = [[*'01234567', 'the cat', 'a dog', 'x', label] for label in labels]
    (tmp_path / 'a.tsv').write_text('\n'.join('\t'.join(row) for row in [names, *rows]) + '\n')
    words = classify_words('--task', 'mnli', '--data_file', tmp_path / 'a.tsv')
    task = classify.read_task(parsed(classify, *words))
    examples = classify.read_examples(task)
    assert [task.target.number(example.label) for example in examples] == [2, 1, 0]
    assert examples[0][1:3] == ('the cat', 'a dog')
