"""What rows come through: tables that read back, splits of any classes, labels in every form."""

import collections
import json
import pathlib
import re
import textwrap

import hypothesis
import hypothesis.strategies as st
import mxnet as mx
import numpy as np
import pytest
import tiny
from hostile import quick
from refusals import refuses
from script_runs import ROOT, load_script, run

import model_zoo
from bert import BertForSequenceClassification
from model_zoo.errors import InputError
from model_zoo.records import read_records
from model_zoo.tasks.classification import ClassificationTask
from model_zoo.tasks.settings import ClassificationSettings
from model_zoo.tasks.tables import table_lines
from model_zoo.tasks.task import Task
from model_zoo.tasks.text_task import split_text
from model_zoo.training.settings import TrainingSettings

CLASSIFY = 'text-classification'
SMALL = {'epochs': 1, 'batch_size': 8, 'seed': 1, 'max_length': 16}
TEXTS = ['a b', 'c d', 'e f', 'g h'] * 3


# -- tables ----------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def classifier(tmp_path_factory):
    path = tmp_path_factory.mktemp('tiny') / 'classifier'
    tiny.save_bert(path, list('abcdefgh'), BertForSequenceClassification, ['bad', 'good'])
    return str(path)


def predict(classifier, path, output, *flags):
    argv = [classifier, '--file', path, '--output', output, *flags]
    assert run(load_script('predict'), *argv) == 0
    return [row for _, row in read_records(output)]


ROWS = [
    {'text': 'a, "b"', 'price': 1e-06, 'tags': ['x', 'y'], 'more': {'n': None}, 'is': True},
    {'id': 7, 'text': 'c d', 'label': 'mine', 'score': 0.1 + 0.2},
    {'text': ' ', 'note': ' a;b\u2028c'},
]
CELLS = [
    {'price': '1e-06', 'tags': '["x", "y"]', 'more': '{"n": null}', 'is': 'true'},
    {'id': '7', 'label': 'mine', 'score': '0.30000000000000004'},
    {'note': ' a;b\u2028c'},
]


def test_rows_with_different_columns_read_back(classifier, tmp_path):
    path = tmp_path / 'in.jsonl'
    path.write_text('\n'.join(map(json.dumps, ROWS)), 'utf-8')
    lines = predict(classifier, path, tmp_path / 'out.jsonl')
    for row, line in zip(ROWS, lines, strict=True):
        assert {name: line[name] for name in row} == row
        assert line.keys() - row == {'predicted_label', 'predicted_score'}
    for name in ('out.csv', 'out.tsv'):
        table = predict(classifier, path, tmp_path / name)
        assert list(table[0])[-2:] == ['predicted_label', 'predicted_score']
        for row, cells, given in zip(table, CELLS, ROWS, strict=True):
            blank = dict.fromkeys(set().union(*CELLS), '')
            assert row == {**row, **blank, **cells, 'text': given['text']}
        for row, line in zip(table[:2], lines):
            assert row['predicted_label'] == line['predicted_label']
            assert float(row['predicted_score']) == line['predicted_score']
        again = predict(classifier, tmp_path / name, tmp_path / f'2{name}', '--all_scores')
        third = predict(classifier, tmp_path / f'2{name}', tmp_path / f'3{name}', '--all_scores')
        for before, after in ((table, again), (again, third)):
            assert [{name: row[name] for name in before[0]} for row in after] == before
            assert len(after[0]) == len(before[0]) + 2


@pytest.mark.parametrize('content', ['\ufefftext;n\r\na;1,0\r\nb;2\r\n', 'text\tn\na\t"1\t0"\n'])
def test_csv_keeps_its_form(classifier, tmp_path, content):
    path, output = tmp_path / 'in.csv', tmp_path / 'out.csv'
    path.write_bytes(content.encode())
    predict(classifier, path, output)
    for line, old in zip(output.read_bytes().splitlines(True), content.encode().splitlines(True)):
        assert line.startswith(old.rstrip()) and line.endswith(b'\r\n') == old.endswith(b'\r\n')


cells = st.text(max_size=6).map(lambda text: re.sub('[\0\ud800-\udfff]', '', text))


@pytest.mark.parametrize('delimiter', [',', ';', '\t', None])
@hypothesis.given(rows=st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1))
@quick(40)
def test_any_cells_read_back(tmp_path_factory, delimiter, rows):
    path = tmp_path_factory.getbasetemp() / ('cells.csv' if delimiter else 'cells.tsv')
    rows = [['x', *row] for row in rows]
    with open(path, 'w', encoding='utf-8', newline='') as file:
        file.writelines(table_lines([['n', 'a', 'b'], *rows], delimiter))
    found = [list(row.values()) for _, row in read_records(path)]
    if delimiter is None:
        rows = [[re.sub('[\t\r\n]', ' ', cell) for cell in row] for row in rows]
    assert found == rows


# -- splits ----------------------------------------------------------------------------------------


def split(rows, share, seed=2, **options):
    settings = ClassificationSettings(seed=seed, **options)
    task = ClassificationTask(settings)
    task.locate({'train': rows})
    return task.split(task.read(None, 'train'), share)


def classes(*sizes):
    return [f'class {number}' for number, size in enumerate(sizes) for _ in range(size)]


DRAWN = np.random.RandomState(3).rand(400, 6) < [0.5, 0.3, 0.2, 0.1, 0.05, 0.02]
SPLITS = {
    'two': (classes(80, 20), 0.1, 10),
    'five': (classes(150, 80, 40, 29, 1), 0.2, 60),
    '77 of 5': (classes(*[5] * 77), 0.1, 39),
    '77 of 4': (classes(*[4] * 77), 0.1, 31),
    'one row each': (classes(*[1] * 9, 11), 0.5, 10),
    'several': ([np.flatnonzero(row).tolist() for row in DRAWN], 0.1, 40),
    'numbers': ([float(number) for number in range(20)], 0.25, 5),
}


@pytest.mark.parametrize('name', SPLITS)
def test_a_split_holds_out_the_share_of_each_label(name):
    labels, share, count = SPLITS[name]
    options = {'multi_label': name == 'several', 'regression': name == 'numbers'}
    rows = [(f'text {number}', label) for number, label in enumerate(labels)]
    train, dev = split(rows, share, **options)
    assert len(dev) == count and len(train) + len(dev) == len(rows)
    assert dev == split(rows, share, **options)[1] != split(rows, share, seed=3, **options)[1]
    whole, held = (
        collections.Counter(np.hstack([row.label for row in part])) for part in (train + dev, dev)
    )
    if name == 'numbers':
        assert sorted(int(number // 4) for number in held) == [0, 1, 2, 3, 4]
        return
    for label, number in whole.items():
        assert held[label] < number
        assert name == 'one row each' or abs(held[label] - share * number) < 1.5


ROUNDED = [(13, 0.1, 1), (16, 0.1, 2), (14, 0.25, 4), (11, 0.3, 3), (17, 0.3, 5)]


@pytest.mark.parametrize('count, share, expected', ROUNDED)
def test_the_nearest_number_of_rows_is_held_out(tmp_path, count, share, expected):
    """Of rows with classes, of others, and of a text's lines."""
    labelled = [(f'text {number}', 'xy'[number % 2]) for number in range(count)]
    assert len(split(labelled, share)[1]) == expected
    (tmp_path / 'text.txt').write_text('a\n' * count)
    _, dev = split_text(tmp_path / 'text.txt', share, tmp_path)
    if (share * count) % 1 != 0.5:  # which the others round to an even number
        parts = Task(TrainingSettings()).split(list(range(count)), share)
        assert [len(part) for part in parts] == [count - expected, expected]
        assert len(pathlib.Path(dev).read_text().splitlines()) == expected


def test_equal_texts_stay_on_one_side():
    rows = [(f'text {number % 40}', 'xy'[number % 2]) for number in range(60)]
    train, dev = split(rows, 0.2)
    assert abs(len(dev) - 12) <= 1
    assert not {row.text_a for row in train} & {row.text_a for row in dev}


@pytest.mark.parametrize('end', ['\n', '\r\n'])
def test_a_text_is_split_as_it_is(tmp_path, end):
    text = end.join(['', 'a', 'b', ' ', 'c', '', '', 'd\u2028e', ''])
    (tmp_path / 'text.txt').write_bytes(text.encode())
    for by_documents, first in ((True, 'd'), (False, 'c')):
        paths = split_text(tmp_path / 'text.txt', 0.4, tmp_path, by_documents)
        parts = [pathlib.Path(path).read_bytes().decode() for path in paths]
        assert ''.join(parts) == text and parts[1][0] == first


# -- sets that are read ----------------------------------------------------------------------------

PAIRS = [(text, 'yes' if text < 'd' else 'no') for text in TEXTS]


def test_a_label_of_a_test_set_is_an_error_as_in_a_dev_set(letters, tmp_path):
    path = tmp_path / 'set.csv'
    path.write_text('text,label\na,yes\nb,nope\n')
    for name in ('dev', 'test'):
        with pytest.raises(InputError) as caught:
            model_zoo.finetune(letters, CLASSIFY, PAIRS, **{name: path}, **SMALL)
        said = str(caught.value)
        assert 'set.csv, line 3' in said and "'nope'" in said and 'them with `labels`' in said


UNLABELLED = {
    'a.csv': 'text\na\nb\n',
    'b.csv': 'text,label\na,\nb,\n',
    'c.csv': 'text,label\na,?\nb,?\n',
    'd.jsonl': '{"text": "a", "id": {"n": 1}}\n{"text": "b", "id": null}\n',
}


@pytest.mark.parametrize('name', UNLABELLED)
def test_a_test_set_needs_no_labels(letters, tmp_path, name):
    path = tmp_path / name
    path.write_text(UNLABELLED[name])
    options = {'test': path, 'output_dir': tmp_path / 'out', **SMALL}
    trained = model_zoo.finetune(letters, CLASSIFY, PAIRS, **options)
    assert len(trained.predictions) == 2 and not trained.test_scores
    assert [row['index'] for _, row in read_records(tmp_path / 'out' / 'custom.tsv')] == ['0', '1']


def test_the_rows_that_are_held_out_are_predicted(letters, tmp_path):
    options = {'dev': 0.25, 'output_dir': tmp_path, **SMALL}
    trained = model_zoo.finetune(letters, CLASSIFY, PAIRS, **options)
    rows = [row for _, row in read_records(tmp_path / 'dev_predictions.tsv')]
    assert len(rows) == round(len(PAIRS) / 4)
    right = [row['prediction'] == PAIRS[int(row['index'])][1] for row in rows]
    assert np.mean(right) == trained.scores['accuracy']
    for row, (_, shares) in zip(rows, read_records(tmp_path / 'dev_probabilities.tsv')):
        assert row['index'] == shares['index'] and float(shares[row['prediction']]) >= 0.5


@pytest.mark.parametrize('label', [None, 'maybe'])
def test_a_dev_label_of_a_task_of_ones_own(letters, label):
    """The task is the one of the page of the design."""
    block = (ROOT / 'docs' / 'design.rst').read_text('utf-8').split('.. code-block:: python\n')[1]
    lines = re.match(r'(?:(?: {8}.*)?\n)*', block)[0]
    names = {'__name__': 'lines'}
    exec(textwrap.dedent(lines), names)
    with pytest.raises(InputError) as caught:
        model_zoo.finetune(letters, names['LineTask'], PAIRS, [*PAIRS, ('a', label)], **SMALL)
    assert f'row {len(PAIRS)}' in str(caught.value) and repr(label) in str(caught.value)


# -- labels ----------------------------------------------------------------------------------------

VECTORS = [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]] * 3
EXPECTED = [('x', 'z'), ('y',), (), ('x', 'y', 'z')] * 3
NAMED = {'labels': ['x', 'y', 'z']}


def frame(*columns):
    pandas = pytest.importorskip('pandas')
    table = pandas.DataFrame(VECTORS, columns=['x', 'y', 'z'])
    return table.assign(text=TEXTS, labels=VECTORS)[['text', *columns]]


def dataset(labels=VECTORS):
    datasets = pytest.importorskip('datasets')
    names = datasets.Sequence(datasets.ClassLabel(names=['x', 'y', 'z']))
    features = datasets.Features(text=datasets.Value('string'), labels=names)
    return datasets.Dataset.from_dict({'text': TEXTS, 'labels': labels}, features=features)


def rows(labels):
    return list(zip(TEXTS, labels))


#: form -> what makes the rows, and settings
FORMS = {
    'lists': (lambda _: rows(VECTORS), NAMED),
    'floats': (lambda _: rows([tuple(map(float, vector)) for vector in VECTORS]), NAMED),
    'truth values': (lambda _: rows(np.array(VECTORS, bool)), NAMED),
    'without names': (lambda _: rows(np.array(VECTORS)), {}),
    'frame with a column': (lambda _: frame('labels'), NAMED),
    'frame with columns': (lambda _: frame('x', 'y', 'z'), NAMED),
    'a.csv': (lambda path: frame('x', 'y', 'z').to_csv(path, index=False), NAMED),
    'a.jsonl': (lambda path: frame('labels').to_json(path, orient='records', lines=True), NAMED),
    'a.parquet': (lambda path: frame('labels').to_parquet(path), {}),
    'data set': (lambda _: dataset(), {}),
    'data set of numbers': (lambda _: dataset([[0, 2], [1], [], [0, 1, 2]] * 3), {}),
    'sets': (lambda _: rows(map(set, EXPECTED)), {}),
    'names': (lambda _: rows(map(np.array, EXPECTED)), {}),
}


@pytest.mark.parametrize('form', FORMS)
def test_labels_in_any_form(letters, tmp_path, form):
    make, options = FORMS[form]
    source = make(tmp_path / form)
    source = tmp_path / form if source is None else source
    given = dict.fromkeys(('train', 'test'), source)
    files = {f'{name}_file': source for name in given if isinstance(source, pathlib.Path)}
    task = ClassificationTask(ClassificationSettings(multi_label=True, **files, **options))
    task.locate(given)
    found = [row.label for row in task.read(source, 'train')]
    names = dict(zip(task.labels, 'xyz'))
    assert [tuple(names[label] for label in labels) for labels in found] == EXPECTED
    assert [row.label for row in task.read(source, 'test')] == found
    if form in ('lists', 'without names', 'names'):
        trained = model_zoo.finetune(
            letters, CLASSIFY, source, test=source, multi_label=True, **options, **SMALL
        )
        likely = [{each['label'] for each in labels} for labels in trained(TEXTS)]
        for given, labels in zip(trained.predictions, likely, strict=True):
            vector = [int(name in labels) for name in task.labels]
            assert given == vector if form != 'names' else {*given} == labels


BAD = [[['x', None]], [['x', ['y']]], [['x', '']], [[0.5, 1]], [[1, 0, 1], [0, 1]], [[0, 0], [2]]]


@pytest.mark.parametrize('labels', BAD)
def test_what_is_no_label_is_refused_by_name(labels):
    with refuses(says='train, row 0'):
        split([('a', label) for label in (*labels, ['x'], ['y'])], 0.5, multi_label=True)


def test_sets_have_the_form_of_the_first(letters):
    """Otherwise a dev set of two positions would have vectors."""
    train = rows([[0], [0, 1], [], [1]] * 3)
    dev = [('a', [0, 1]), ('b', [0, 1])]
    trained = model_zoo.finetune(letters, CLASSIFY, train, dev, multi_label=True, **SMALL)
    assert [row.label for row in trained.task.read(None, 'dev')] == [('0', '1')] * 2
    with refuses(line=0):
        model_zoo.finetune(letters, CLASSIFY, rows(VECTORS), dev, multi_label=True, **SMALL)


def test_names_with_commas_come_back(letters, tmp_path):
    train = rows([['Wine, beer'], ['tea'], [], ['Wine, beer', 'tea']] * 3)
    trained = model_zoo.finetune(letters, CLASSIFY, train, multi_label=True, **SMALL)
    assert trained.task.labels == ('Wine, beer', 'tea')
    trained.model.classifier.bias.set_data(mx.nd.array([9, 9]))
    trained.save(tmp_path / 'saved')
    (tmp_path / 'in.csv').write_text('text\na b\n')
    (row,) = predict(str(tmp_path / 'saved'), tmp_path / 'in.csv', tmp_path / 'out.csv')
    again = split([('a', row['label']), ('b', 'tea')], 0.5, multi_label=True)
    assert ('Wine, beer', 'tea') in {row.label for part in again for row in part}


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(('method', 'unit'), [('full', 1e5), ('linear', 1e-6)])
def test_numbers_have_the_users_unit_on_every_road(letters, tmp_path, unit, method):
    prices = [(text, unit * (2 + 'aceg'.index(text[0]))) for text in TEXTS]
    out, saved = tmp_path / 'out', tmp_path / 'out' / 'best_model'
    options = dict(SMALL, epochs=12, batch_size=4, lr=3e-3, regression=True, method=method)
    trained = model_zoo.finetune(
        letters, CLASSIFY, prices, prices, prices, output_dir=out, **options
    )
    assert trained.scores['r2'] > 0.5
    expected = np.array(trained.predictions)
    assert abs(expected - [price for _, price in prices]).max() < 2 * unit

    def assert_same(numbers):
        np.testing.assert_allclose(np.array(numbers, float), expected, rtol=1e-4)

    assert_same([answer['score'] for answer in trained(TEXTS)])
    opened = model_zoo.pipeline(CLASSIFY, str(saved))
    assert_same([answer['score'] for answer in opened(TEXTS)])
    assert_same([row['prediction'] for _, row in read_records(out / 'custom.tsv')])
    path = tmp_path / 'test.csv'
    path.write_text('text\n' + '\n'.join(TEXTS) + '\n')
    assert_same([row['score'] for row in predict(str(saved), path, tmp_path / 'out.csv')])
    parameters = out / json.loads((out / 'results.json').read_text())['best']['parameters']
    argv = ['--regression', '--test_file', path, '--only_inference', '--max_length', 16]
    parts = [['--model', letters, '--model_parameters', parameters]] * (method == 'full')
    for more in (['--model', saved], *parts):
        last = tmp_path / str(len(more))
        assert run(load_script('finetune_classifier'), *argv, *more, '--output_dir', last) == 0
        assert_same([row['prediction'] for _, row in read_records(last / 'custom.tsv')])
    if method == 'full':  # a training continues from there
        for start, tokenizer in ((str(saved), None), (trained.model, trained.tokenizer)):
            again = model_zoo.finetune(
                start, CLASSIFY, prices, prices, tokenizer=tokenizer, **{**options, 'lr': 0.0}
            )
            assert again.scores == pytest.approx(trained.scores, rel=1e-4)
            assert_same([answer['score'] for answer in again(TEXTS)])


def test_a_run_of_numbers_is_resumed(letters, tmp_path):
    prices = [(text, 1e5 * 'aceg'.index(text[0])) for text in TEXTS]
    options = {**SMALL, 'regression': True, 'keep_state': True, 'lr_schedule': 'constant'}
    options, scores = {**options, 'lr': 1e-3, 'warmup_ratio': 0.0}, []
    for name, steps in (('whole', [2]), ('parts', [1, 2])):
        for epochs in steps:
            more = {'epochs': epochs, 'output_dir': tmp_path / name, 'resume': epochs != steps[0]}
            trained = model_zoo.finetune(letters, CLASSIFY, prices, prices, **{**options, **more})
        scores.append(trained.history[-1]['r2'])
    assert scores[0] == scores[1] != 0
