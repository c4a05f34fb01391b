"""Settings that small data needs: frozen layers, schedules, and what chooses the best epoch."""

import html
import json
import logging

import numpy as np
import pytest
from arrays import tensors_of
from refusals import refuses

import model_zoo
from model_zoo.errors import UnknownNameError
from model_zoo.tasks.linear import predict_from_words
from model_zoo.training import Callback

ROWS = [('a b', 'yes'), ('c d', 'no'), ('a a b', 'yes'), ('d c c', 'no')] * 4


def train(folder, **options):
    options = {'epochs': 2, 'batch_size': 8, 'lr': 1e-2, 'seed': 1, **options}
    return model_zoo.finetune(folder, 'text-classification', ROWS, ROWS, **options)


@pytest.mark.parametrize('freeze', ['encoder', '1', 1])
def test_frozen_layers_keep_their_parameters(letters, freeze):
    before = tensors_of(model_zoo.open_model(letters, 'classification')[0])
    after = tensors_of(train(letters, freeze=freeze).model)
    changed = {name for name in after if not np.array_equal(before[name], after[name])}
    assert {'pooler.weight', '^classifier.weight'} <= changed
    layers = {name.split('.')[2] for name in changed if name.startswith('encoder.layers.')}
    total = len({name.split('.')[2] for name in after if name.startswith('encoder.layers.')})
    frozen = total if freeze == 'encoder' else 1
    assert layers == {str(number) for number in range(frozen, total)}
    assert 'word_embed.weight' not in changed


BAD = [('freeze', 'all'), ('freeze', '-1'), ('freeze', 99)]
BAD += [('class_weights', each) for each in ({'maybe': 1}, {'yes': -1}, {'yes': 'much'}, 'even')]


@pytest.mark.parametrize('field, value', BAD)
def test_bad_values(letters, field, value):
    with refuses(field):
        train(letters, **{field: value})


class Records(Callback):
    """Keeps what is logged."""

    def __init__(self):
        self.kept = []

    def on_log(self, loop, record):
        self.kept.append(record)


def test_schedules(letters):
    rates = {}
    for name in ('linear', 'cosine', 'constant'):
        log = Records()
        options = {'lr_schedule': name, 'warmup_ratio': 0.5, 'log_interval': 1, 'epochs': 4}
        train(letters, **options, callbacks=[log])
        rates[name] = [record['lr'] for record in log.kept]
    assert rates['linear'][5] < rates['cosine'][5] < rates['constant'][5]
    assert rates['cosine'][7] < rates['linear'][7]
    assert rates['linear'][:4] == rates['cosine'][:4] == rates['constant'][:4]
    assert rates['constant'][-1] == pytest.approx(1e-2)


@pytest.mark.parametrize('form', ['classes', 'pairs', 'numbers', 'several labels'])
def test_a_linear_classifier_of_a_frozen_encoder(letters, form, tmp_path):
    """It is fitted, saved, opened, exported and served as any other."""
    rows, options = ROWS, {}
    if form == 'pairs':
        rows = [(text, 'b', label) for text, label in ROWS]
    elif form == 'numbers':
        rows = [(text, float(label == 'yes')) for text, label in ROWS]
        options = {'regression': True}
    elif form == 'several labels':
        rows = [(text, [label, 'all'] if label == 'yes' else [label]) for text, label in ROWS]
        options = {'multi_label': True}
    trained = model_zoo.finetune(
        letters, 'text-classification', rows, rows, method='linear', output_dir=tmp_path, **options
    )
    assert len(trained.history) == 1
    assert trained.scores[trained.task.metric] > 0.9
    (log,) = [path.read_text('utf-8') for path in tmp_path.glob('log_*.txt')]
    said = log + (tmp_path / 'report.html').read_text('utf-8').partition('<summary>')[0]
    fitted = 'ridge' if form == 'numbers' else 'logistic'
    assert f'{fitted} regression, C = ' in said and 'lr=' not in said and 'epoch</span>' not in said
    assert '<img' not in trained._repr_html_()
    first = [rows[0][:-1] if form == 'pairs' else rows[0][0]]
    opened = model_zoo.pipeline('text-classification', str(tmp_path / 'best_model'))
    assert opened.block.pooling == 'mean'
    for answer, again in zip(*(np.ravel(use(first)) for use in (trained, opened)), strict=True):
        assert answer['label'] == again['label']
        assert answer['score'] == pytest.approx(again['score'], abs=1e-5)
    before = tensors_of(model_zoo.open_model(letters, 'classification')[0])
    after = tensors_of(trained.model)
    changed = {name for name in after if not np.array_equal(before[name], after[name])}
    assert changed == {'^classifier.weight', '^classifier.bias'}


def test_class_weights(letters):
    rows = [('a b', 'yes')] * 2 + [('c d', 'no')] * 14
    options = {'labels': ['no', 'yes'], 'epochs': 1, 'lr': 0, 'log_interval': 1}

    options.update(batch_size=len(rows), seed=1)

    def loss(**more):
        log = Records()
        more.update(options, callbacks=[log])
        model_zoo.finetune(letters, 'text-classification', rows, **more)
        return log.kept[0]['loss']

    yes, no = loss(class_weights={'yes': 1, 'no': 0}), loss(class_weights={'yes': 0, 'no': 1})
    assert loss() == pytest.approx(yes + no, rel=1e-4)
    assert loss(class_weights='balanced') == pytest.approx(4 * yes + no * 8 / 14, rel=1e-4)


def test_the_best_epoch_by_any_score_and_early_stopping(letters):
    trained = train(letters, best_by='loss', epochs=3)
    assert len(train(letters, early_stopping=1, epochs=4, lr=0).history) == 2
    assert trained.scores['loss'] == min(record['loss'] for record in trained.history)
    with pytest.raises(UnknownNameError):
        train(letters, best_by='bleu')


FEW = {
    'text-classification': ('a b', 'yes'),
    'token-classification': (['a', 'b'], ['X', 'O']),
    'question-answering': ('a b', 'c d', 'd', 2),
    'multiple-choice': ('a', ['b', 'c d'], 1),
    'sentence-similarity': ('a b', 'b a', 0.5),
    'fill-mask': 'a b c d\na a b',
}


@pytest.mark.parametrize('task', FEW)
def test_few_rows_get_more_updates_unless_they_are_given(letters, task, tmp_path):
    rows = [FEW[task]] * 7 + ROWS[3:4] * (task == 'text-classification')
    found = {}
    for name, given in (('none', {}), ('epochs', {'epochs': 2}), ('size', {'batch_size': 2})):
        options = {'max_length': 12, 'seed': 1, 'output_dir': tmp_path / name, **given}
        options.update({'max_query_length': 4} if task == 'question-answering' else {})
        settings = model_zoo.finetune(letters, task, rows, **options).task.settings
        found[name] = settings.epochs, settings.batch_size
    assert found == {'none': (20, 8), 'epochs': (2, 8), 'size': (20, 2)}


TICKETS = [(f'{"a b" * 2} {"abcd"[i % 4]} {"abcd"[i // 4]}', 'Log in') for i in range(12)]
TICKETS += [('c d', 'Bill'), ('c d', 'Bill'), ('d c c', 'Bill'), ('d d', 'Bill'), ('a', 'login')]


def test_odd_rows_are_warned_of_and_what_leads_chooses(letters, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    dev = [('a b b', 'Log in'), ('c c', 'Bill'), ('c d d', 'Bill')]
    trained = model_zoo.finetune(
        letters, 'text-classification', TICKETS, dev, epochs=3, seed=1, output_dir=tmp_path / 'run'
    )
    for said in (
        "differ only in case or blanks: 'Log in', 'login'",
        "of a single row: 'login'",
        "the dev set lacks, so that its scores say nothing of them: 'login'",
        '1 of 20 rows repeat the text of another row',
        'TF-IDF and logistic regression, for comparison: accuracy ',
        'frozen encoder (method linear), for comparison: accuracy ',
        'the best by macro_f1, ',
    ):
        assert caplog.text.count(said) == 1, said
    results = json.loads((tmp_path / 'run' / 'results.json').read_text('utf-8'))
    page = html.unescape((tmp_path / 'run' / 'report.html').read_text('utf-8'))
    assert len(results['warnings']) == 4 and 'lacks, so that' in results['warnings'][2]
    assert all(f'<li>{text}</li>' in page for text in results['warnings'])
    best = max(record['macro_f1'] for record in trained.history)
    assert trained.scores['macro_f1'] == best and next(iter(trained.scores)) == 'macro_f1'
    assert results['description']['metric'] == 'macro_f1' and len(results['baselines']['dev']) == 2


@pytest.mark.parametrize('kind', ['numbers', 'several labels', 'no words', 'one class'])
def test_words_alone_as_a_baseline(kind):
    texts, labels = ['good soup', 'bad soup', 'good', 'bad'] * 3, np.array([1, 0, 1, 0] * 3)
    several = np.stack([labels, 1 - labels, np.ones_like(labels)], axis=1)
    others = {'numbers': labels * 4.0, 'several labels': several, 'one class': labels * 0}
    texts, labels = list('abcd') * 3 if kind == 'no words' else texts, others.get(kind, labels)
    _, found = predict_from_words(texts, labels, texts)
    assert (found is None) == (kind in ('no words', 'one class'))
    if found is not None:
        np.testing.assert_allclose(found, labels, atol=1.2)


def test_a_training_warns_of_few_updates_and_of_texts_in_both_sets(letters, caplog):
    train(letters)
    assert 'only 4 updates' in caplog.text
    tags = [(['a', 'b'], ['O', 'B-x']), (['c', 'd'], ['O', 'O'])] * 4
    asked = [(f'{letter} b', 'a b c', letter, 'abc'.index(letter)) for letter in 'abc']
    model_zoo.finetune(letters, 'token-classification', tags, tags[:3], training_steps=1)
    sizes = {'max_length': 16, 'max_query_length': 4, 'doc_stride': 4}
    model_zoo.finetune(letters, 'question-answering', asked, asked, training_steps=1, **sizes)
    for said in ('16 of 16', '3 of 3 rows of the dev set are in the training set', '9 of 11 rows'):
        assert said in caplog.text


def test_a_new_head_is_a_warning_in_use_alone(letters, caplog):
    caplog.set_level(logging.INFO)
    train(letters, training_steps=1)
    assert 'has no classifier.weight, classifier.bias: new, and the training sets' in caplog.text
    assert 'random until trained' not in caplog.text
    model_zoo.open_model(letters, 'classification')
    (said,) = [each for each in caplog.records if 'random until trained' in each.getMessage()]
    assert said.levelno == logging.WARNING


QUESTIONS = [('a b', 'c d', 'd', 2), ('b', 'c c a', None, None)]


@pytest.mark.parametrize('count', [2, 10])
def test_few_questions_choose_no_threshold(letters, tmp_path, count, caplog):
    caplog.set_level(logging.INFO)
    options = {'version_2': True, 'max_length': 16, 'max_query_length': 4, 'epochs': 1}
    dev = QUESTIONS * count
    model_zoo.finetune(
        letters, 'question-answering', QUESTIONS * 4, dev, output_dir=tmp_path, **options
    )
    results = json.loads((tmp_path / 'results.json').read_text('utf-8'))
    few = [text for text in results['warnings'] if 'too few to choose' in text]
    assert bool(few) == (count < 10) and not (few and results['best']['dev']['threshold'])
    assert f'{count} questions with and {count} without an answer' in caplog.text


def test_a_frozen_encoder_of_float16(letters):
    given = letters, 'text-classification', TICKETS, TICKETS
    losses = [
        model_zoo.finetune(*given, method='linear', dtype=dtype).scores['loss']
        for dtype in ('float32', 'float16')
    ]
    assert losses[1] == pytest.approx(losses[0], abs=0.02)
