"""`model_zoo.finetune`: each task with each kind of data, and what a caller keeps."""

import json
import logging
import os
import random
import sys
import types
import warnings
from typing import NamedTuple

import mxnet as mx
import numpy as np
import pytest
import tiny
import toy_data
from contract import lm
from refusals import refuses
from script_runs import load_script, read_json, run

import model_zoo
from model_zoo.batches import Sample
from model_zoo.errors import CheckpointError, InputError, UnknownNameError
from model_zoo.tasks.classification import ClassificationSettings
from model_zoo.tasks.task import Task
from model_zoo.training.callbacks import Callback
from model_zoo.training.settings import FinetuneSettings, setting

ROWS = [('a b', 'yes'), ('c d', 'no'), ('a a b', 'yes'), ('d c c', 'no')] * 6
SMALL = {'epochs': 2, 'batch_size': 8, 'lr': 3e-3, 'seed': 1, 'max_length': 12}


def as_table(folder, rows):
    path = folder / f'{len(rows)}.csv'
    path.write_text('text,label\n' + ''.join(f'{text},{label}\n' for text, label in rows))
    return path


@pytest.mark.parametrize('is_new', [True, False])
def test_a_failed_start_leaves_nothing(letters, tmp_path, is_new):
    place = tmp_path / 'runs' / 'first'
    if not is_new:
        place.mkdir(parents=True)
        (place / 'notes.txt').write_text('mine')
    options = {'output_dir': place, 'regression': True}
    with refuses(says='decimal'):
        model_zoo.finetune(letters, 'text-classification', [('a', '1,5')] * 4, **options)
    assert {path.name for path in tmp_path.rglob('*')} - {'.lock'} == (
        set() if is_new else {'runs', 'first', 'notes.txt'}
    )


@pytest.mark.parametrize('kernel', [{}, {'kernel': True}], ids=['script', 'notebook'])
def test_what_a_program_shows(letters, monkeypatch, capsys, kernel):
    shell = types.SimpleNamespace(**kernel)
    monkeypatch.setitem(sys.modules, 'IPython', types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(logging.getLogger(), 'handlers', [])  # pytest's
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        model_zoo.finetune(letters, 'text-classification', ROWS, dev=ROWS[:4], **SMALL)
    out, err = capsys.readouterr()
    kinds = [each.category for each in warned]
    if kernel:  # all in one place, and nothing in red
        assert not err and 'only 6 updates' in out and UserWarning not in kinds
    else:
        assert err.startswith('training: 6 steps') and 'dev: accuracy' in err and not out
        assert {each.filename for each in warned if 'updates' in str(each.message)} == {__file__}


def test_decimal_commas(letters):
    def train(rows, decimal):
        options = {'method': 'linear', 'regression': True, 'decimal': decimal, 'dev': rows}
        return model_zoo.finetune(letters, 'text-classification', rows, **options)

    points = [('a b', '1.5'), ('c d', '-2.25'), ('a d', '0')] * 4
    commas = [(text, label.replace('.', ',')) for text, label in points]
    assert train(commas, ',').scores == train(points, '.').scores
    with refuses(line=0, says='1.234'):  # a point that may part thousands
        train([('a b', '1.234'), *commas], ',')


def test_a_file_to_predict_has_the_columns_of_the_training(letters, tmp_path, capsys):
    rows = [{'text': 'a', 'Comment (1)': text, 'verdict': label} for text, label in ROWS]
    trained = model_zoo.finetune(
        letters, 'text-classification', rows, method='linear', text='Comment (1)', label='verdict'
    )
    trained.save(tmp_path)
    file = tmp_path / 'new.csv'
    file.write_text('text,Comment (1)\na,c d\na,a b\n')
    assert run(load_script('predict'), str(tmp_path), '--file', str(file), '--format', 'json') == 0
    labels = [row['label'] for row in json.loads(capsys.readouterr().out)]
    assert labels == [answer['label'] for answer in trained(['c d', 'a b'])]


def best_of(folder, segment):
    """The best scores that a script has left, and all of its results."""
    results = json.loads((folder / 'results.json').read_text())
    scores = results['best'][segment].items()
    return {name: value for name, value in scores if not name.endswith('_per_second')}, results


def test_nothing_is_left_and_the_callers_state_is_kept(letters, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    monkeypatch.setattr('tempfile.tempdir', None)
    random.seed(5)
    np.random.seed(5)
    expected = random.Random(5).random(), np.random.RandomState(5).rand()
    trained = model_zoo.finetune(letters, 'text-classification', ROWS, **SMALL)
    assert (random.random(), np.random.rand()) == expected
    assert not list(tmp_path.iterdir())
    assert trained.scores == {} and trained.folder is None and len(trained.history) == 2
    assert trained('a b')[0]['label'] in ('yes', 'no')
    assert '<table' in trained._repr_html_() and 'custom' in repr(trained)


def test_an_output_folder_has_the_scripts_files_and_is_gone_on_with(letters, tmp_path):
    out = tmp_path / 'out'
    options = {**SMALL, 'dev': 0.25, 'output_dir': out, 'keep_state': True}
    trained = model_zoo.finetune(letters, 'text-classification', ROWS, **options)
    assert {'results.json', 'curves.png', 'best_model', 'report.html'} <= set(os.listdir(out))
    assert trained.folder == out and 'accuracy' in trained.scores
    with refuses(says='overwrite_output_dir'):
        model_zoo.finetune(letters, 'text-classification', ROWS, **options)
    longer = model_zoo.finetune(
        letters, 'text-classification', ROWS, resume=True, **{**options, 'epochs': 3}
    )
    assert len(longer.history) == 3 and longer.history[:2] == trained.history
    for name in ('epochs', 'batch_size'):  # what isn't given again is the run's
        del options[name]
    again = model_zoo.finetune(letters, 'text-classification', ROWS, resume=True, **options)
    assert again.history == longer.history


def test_a_test_set_is_scored_and_predicted(letters):
    def metrics(found, labels):
        return {'alike': np.mean([a == b for a, b in zip(found, labels)])}

    sets = ROWS, ROWS, ROWS[:4]
    labelled = model_zoo.finetune(letters, 'text-classification', *sets, **SMALL, metrics=metrics)
    assert labelled.test_scores['accuracy'] == labelled.test_scores['alike']
    assert len(labelled.predictions) == 4 and set(labelled.predictions) <= {'yes', 'no'}


def test_a_block_is_trained_in_place(letters):
    block, tokenizer, _ = model_zoo.open_model(letters, 'classification', num_labels=2)
    before = block.classifier.weight.data().asnumpy()
    trained = model_zoo.finetune(block, 'text-classification', ROWS, tokenizer=tokenizer, **SMALL)
    assert trained.model is block
    assert (block.classifier.weight.data().asnumpy() != before).any()
    with refuses('model'):
        model_zoo.finetune(block, 'text-classification', ROWS, **SMALL)
    three = [(text, f'{label}{len(text)}') for text, label in ROWS]
    with refuses('model'):
        model_zoo.finetune(block, 'text-classification', three, tokenizer=tokenizer, **SMALL)


class Stop(Callback):
    def on_step(self, loop):
        if loop.state.step == 4:
            os.kill(os.getpid(), 2)


def test_ctrl_c_leaves_the_best_model_so_far_and_the_run_goes_on(letters, tmp_path):
    words = letters, 'text-classification', ROWS, ROWS
    options = {**SMALL, 'epochs': 3, 'output_dir': tmp_path}
    trained = model_zoo.finetune(*words, callbacks=[Stop()], **options)
    assert trained.interrupted and len(trained.history) == 1 and trained('a b')
    best = model_zoo.pipeline(str(tmp_path / 'best_model'))
    assert best('a b') == trained('a b')
    results = read_json(tmp_path)
    assert results['interrupted'] == {'step': 4, 'of': 9} and results['best']['epoch'] == 1
    done = model_zoo.finetune(*words, resume=True, **options)
    assert len(done.history) == 3 and 'interrupted' not in read_json(tmp_path)


def test_nothing_of_the_texts_is_beside_the_model(letters, tmp_path):
    rows = [(f'{text} verysecret', label) for text, label in ROWS]
    options = {**SMALL, 'dev': 0.25, 'epochs': 1, 'output_dir': tmp_path}
    model_zoo.finetune(letters, 'text-classification', rows, example='my own', **options)
    files = [path for path in (tmp_path / 'best_model').rglob('*') if path.is_file()]
    assert not any(b'verysecret' in path.read_bytes() for path in files)
    assert '- text: my own' in (tmp_path / 'best_model' / 'README.md').read_text('utf-8')


WRONG = [
    *(('dev', value) for value in (1.5, 20, 'none.csv')),
    *{'batch_size': 0, 'epochs': 'many', 'wramup_ratio': 0.1, 'dtype': 'float8'}.items(),
    *{'test': 0.2, 'resume': True}.items(),
]


@pytest.mark.parametrize('name, value', WRONG)
def test_wrong_settings_name_the_keyword(letters, name, value):
    with refuses(says=name, kind=(InputError, UnknownNameError)):
        model_zoo.finetune(letters, 'text-classification', ROWS, **{**SMALL, name: value})


def test_a_classifier_of_other_labels_is_told_apart(letters, tmp_path):
    trained = model_zoo.finetune(letters, 'text-classification', ROWS, **SMALL)
    trained.save(tmp_path)
    rows = [(text, f'{label}{number % 3}') for number, (text, label) in enumerate(ROWS)]
    with pytest.raises(CheckpointError):
        model_zoo.finetune(str(tmp_path), 'text-classification', rows, **SMALL)


BAD_ROWS = [
    ('text-classification', [('a', 'x'), ('', 'y')], ['row 1', "'text'"]),
    ('text-classification', [{'text': 'a', 'label': ['x']}], ['row 0', "'label'"]),
    ('text-classification', [('a', 'x'), (float('nan'), 'y')], ['row 1', "'text'"]),
    ('text-classification', [{'a': 'a', 'b': 'x'}], ['a, b', '`text`']),
    ('text-classification', ['a', 'b'], ['`label`']),
    ('text-classification', [('a', 'x'), ('a', 'b', 'c', 'd')], ['row 1']),
    ('text-classification', [], ['train']),
    ('text-classification', 'none.csv', ['train', 'none.csv']),
    ('question-answring', ROWS, ['question-answering']),
    ('question-answering', [('a', 'b', 'c', 0)], ['row 0']),
    ('multiple-choice', [('a', 'b', 0)], ['row 0', 'choices']),
    ('text-generation', ['a'], ['fill-mask']),
]


@pytest.mark.parametrize('task, rows, places', BAD_ROWS)
def test_errors_in_rows_name_row_and_column(letters, task, rows, places):
    with pytest.raises((InputError, UnknownNameError)) as caught:
        model_zoo.finetune(letters, task, rows, epochs=1)
    assert all(place in str(caught.value) for place in places)


def test_no_model_is_refused_and_lists_may_be_texts():
    with refuses('model'):
        model_zoo.finetune(None, 'text-classification', ROWS, from_scratch=True)
    with refuses(says='text_column', kind=UnknownNameError):
        model_zoo.finetune('all-MiniLM-L6-v2', 'multiple-choice', ROWS, text='a')
    for hparams in ('num_layers=1, units=32', {'num_layers': 1, 'units': 32}):
        assert FinetuneSettings(hparams=hparams).hparams == ['num_layers=1', 'units=32']
    assert ClassificationSettings(labels=[1, 5]).labels == ['1', '5']


class RatingSettings(FinetuneSettings, lr=3e-3):
    max_length: int = setting(12)
    steps: int = setting(3, 'number of ratings', at_least=2)


class RatingTask(Task):
    """An ordinal rating: the outputs are the chances to be above each step."""

    settings_class, name, head, metric = RatingSettings, 'rating', 'classification', 'closeness'

    def read(self, source, segment):
        return [Row(*row) for row in source]

    def model_options(self):
        return {'num_labels': self.settings.steps - 1}

    def encode(self, rows, tokenizer):
        encoded = tokenizer.encode_batch([row.text for row in rows], pad=False)
        return [
            Sample(ids, types, float(row.label))
            for ids, types, row in zip(encoded.input_ids, encoded.token_types, rows)
        ]

    def loss(self, model, batch):
        above = batch.labels.expand_dims(1) > mx.nd.arange(self.settings.steps - 1).expand_dims(0)
        return mx.gluon.loss.SigmoidBCELoss()(model(*batch.inputs), above).mean()

    def decode(self, data, outputs):
        return (outputs > 0).sum(axis=1).tolist()

    def score(self, data, outputs):
        right = [row.label for row in data.rows]
        return {'closeness': -float(np.abs(np.subtract(right, self.decode(data, outputs))).mean())}


class Row(NamedTuple):
    text: str
    label: int


def test_a_task_of_ones_own(letters):
    rows = [('a', 0), ('b b', 1), ('c c c', 2)] * 8
    trained = model_zoo.finetune(letters, RatingTask, rows, rows, epochs=12, batch_size=6, lr=1e-2)
    assert trained.scores['closeness'] > -0.5


def test_an_object_of_a_task(letters, tmp_path):
    """Its settings hold where no keyword says otherwise, and stay its own."""
    rows = [('a', 0), ('b b', 1), ('c c c', 2), ('a a a', 3)] * 2
    task = RatingTask(RatingSettings(steps=4, epochs=1, model='none', output_dir='never'))
    out = tmp_path / 'out'
    trained = model_zoo.finetune(letters, task, rows, rows, epochs=2, output_dir=out)
    assert len(trained.history) == 2 and trained.model.config.num_labels == 3
    assert (out / 'results.json').exists() and not os.path.exists('never')
    assert task.settings == RatingSettings(steps=4, epochs=1, model='none', output_dir='never')
    with pytest.raises(UnknownNameError):
        model_zoo.finetune(letters, task, rows, epoch=2)


def test_several_labels_a_text(letters, tmp_path):
    rows = [('a b', ['x', 'y']), ('c d', []), ('a', 'x'), ('b b', ['y'])] * 6
    out = tmp_path / 'out'
    options = {**SMALL, 'epochs': 20, 'multi_label': True, 'output_dir': out}
    trained = model_zoo.finetune(letters, 'text-classification', rows, rows, rows[:4], **options)
    assert trained.scores.keys() == {'macro_f1', 'micro_f1', 'accuracy', 'loss'}
    assert trained.scores['macro_f1'] > 0.7
    assert trained.history[-1]['loss'] < 0.6 * trained.history[0]['loss']
    config = json.loads((out / 'best_model' / 'config.json').read_text())
    assert config['problem_type'] == 'multi_label_classification'
    examined = json.loads((out / 'results.json').read_text())['examination']['dev']
    per_class = examined['tables']['Scores per label']
    assert [part['label'] for part in per_class] == ['x', 'y'] and per_class[0]['examples'] == 12
    with refuses('multi_label'):
        model_zoo.finetune(letters, 'text-classification', rows, regression=True, **options)


@pytest.mark.parametrize('keep_state', [False, True])
def test_the_folder_of_a_run_stands_for_its_best_epoch(letters, tmp_path, keep_state):
    numbers = iter([0.9, 0.5])
    trained = model_zoo.finetune(
        *(letters, 'text-classification', ROWS, ROWS),
        **{**SMALL, 'keep_state': keep_state, 'output_dir': tmp_path / 'run', 'best_by': 'mine'},
        metrics=lambda predictions, labels: {'mine': next(numbers)},
    )
    argv = ['--checkpoint', f'{tmp_path}/run', '--dev_file', str(as_table(tmp_path, ROWS))]
    argv += ['--only_inference', '--max_length', '12', '--output_dir', f'{tmp_path}/use']
    assert run(load_script('finetune_classifier'), *argv) == 0
    used = json.loads((tmp_path / 'use' / 'inference.json').read_text())['dev']['dev']
    losses = [record['loss'] for record in trained.history]
    assert used['loss'] == trained.scores['loss'] == losses[0] != losses[1]


TEXTS = ['a b c d\ne f g h', 'a b c\nd e f', 'b c d e\nf g h', 'c d\ne f\ng h'] * 4
MASKED = {**SMALL, 'max_predictions_per_seq': 3}


def test_masked_words_of_a_text_as_the_script_trains_them(letters, tmp_path):
    train, dev = tmp_path / 'train.txt', tmp_path / 'dev.txt'
    train.write_text('\n\n'.join(TEXTS) + '\n')
    dev.write_text('\n\n'.join(TEXTS[:6]) + '\n')
    argv = (
        f'--train_file {train} --dev_file {dev} --masked_lm_only --model {letters} '
        '--epochs 2 --batch_size 8 --lr 3e-3 --seed 1 --max_length 12 --num_workers 0 '
        f'--max_predictions_per_seq 3 --output_dir {tmp_path}/out'
    ).split()
    assert run(load_script('finetune_lm'), *argv) == 0
    best, _ = best_of(tmp_path / 'out', 'eval')
    for sets in ((train, dev), (iter(TEXTS), [{'text': text} for text in TEXTS[:6]])):
        trained = model_zoo.finetune(letters, 'fill-mask', *sets, **MASKED)
        assert trained.scores == best
    assert trained('a b [MASK] d')[0]['token_str']
    assert 'mlm_loss' in model_zoo.finetune(letters, 'fill-mask', TEXTS, dev=0.25, **MASKED).scores


@pytest.mark.parametrize(
    'task, rows', [('fill-mask', TEXTS), ('text-classification', ROWS), ('text-generation', TEXTS)]
)
def test_a_part_of_an_epoch_is_the_same_for_every_task(letters, tmp_path, task, rows):
    options = {'batch_size': 2, 'lr': 0, 'seed': 1, 'max_length': 5}
    tiny.save_gpt2(tmp_path / 'gpt2')
    model = tmp_path / 'gpt2' if task == 'text-generation' else letters
    steps = [
        model_zoo.finetune(model, task, rows, epochs=epochs, **options).history[-1]['step']
        for epochs in (0.01, 0.5, 1, 1.5, 2)
    ]
    one = steps[2]
    assert one > 4 and steps == [1, int(one / 2), one, int(1.5 * one), 2 * one]


@pytest.mark.parametrize('family', ['gpt2', 'transfo_xl'])
def test_a_language_model_as_the_script_trains_it(tmp_path, family):
    toy_data.write_texts(tmp_path)
    texts = f'--train_file {tmp_path}/train.txt --dev_file {tmp_path}/eval.txt --batch_size 4'
    argv = lm(tmp_path, tmp_path / 'first', family, '--training_steps', 2)
    assert run(load_script('train_lm'), *argv) == 0
    model = str(tmp_path / 'first' / 'best_model')
    train, dev = tmp_path / 'train.txt', tmp_path / 'eval.txt'
    argv = (
        f'--model {model} {texts} --training_steps 3 --lr 1e-3 --seed 1 --output_dir {tmp_path}/out'
    ).split()
    assert run(load_script('train_lm'), *argv) == 0
    best, _ = best_of(tmp_path / 'out', 'dev')
    options = {'training_steps': 3, 'batch_size': 4, 'lr': 1e-3, 'seed': 1}
    for source in (train, train.read_text().splitlines()):
        trained = model_zoo.finetune(model, 'text-generation', source, dev, dev, **options)
        assert trained.scores == trained.test_scores == best and trained.predictions is None
    held_out = model_zoo.finetune(model, 'text-generation', train, dev=0.2, **options)
    assert held_out.scores['perplexity'] > 1
