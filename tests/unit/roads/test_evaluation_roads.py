"""What a training says of its dev and test sets is what its folder answers on every road."""

import csv
import json
import pathlib

import numpy as np
import pytest
import tiny
from script_runs import assert_next_runs, load_script, run

import model_zoo
from model_zoo.inference.engines import is_installed
from model_zoo.inference.server import build_app
from model_zoo.util.choices import ENGINES

TEXTS = (pathlib.Path(__file__).parents[2] / 'fixtures' / 'sentences.txt').read_text('utf-8')
TEXTS = TEXTS.splitlines()
NEXT = [*TEXTS[1:], TEXTS[0]]
NUMBERS, ANSWERS = range(len(TEXTS)), [text.split()[-1] for text in TEXTS]
KINDS = [ord(text[0]) % 3 for text in TEXTS]
#: of two texts each, which is several windows
CONTEXTS = [f'{first}  \n{second}' for first, second in zip(TEXTS, NEXT)]


def asked(number):
    """A question about a text; each third one has no answer in it."""
    context, answer = CONTEXTS[number], ANSWERS[number]
    answer = (None, None) if number % 3 == 0 else (answer, context.index(answer))
    return (f'What — about n° {number}?', context, *answer)


def label_of(result):
    return result['label']


CLASSIFY, LINEAR = 'text-classification', {'method': 'linear'}
ROADS = {
    'classes': (CLASSIFY, [(TEXTS[n], 'abc'[KINDS[n]]) for n in NUMBERS], LINEAR),
    'pairs': (CLASSIFY, [(TEXTS[n], NEXT[n], 'abc'[KINDS[n]]) for n in NUMBERS], LINEAR),
    'numbers': (CLASSIFY, [(TEXTS[n], n / 8) for n in NUMBERS], {'regression': True}),
    'several': (
        CLASSIFY,
        [(TEXTS[n], ['x'] * (KINDS[n] > 0) + ['y'] * (n % 2)) for n in NUMBERS],
        {'multi_label': True, **LINEAR},
    ),
    'choices': ('multiple-choice', [(TEXTS[n], [NEXT[n], TEXTS[-n]], n % 2) for n in NUMBERS], {}),
    'vectors': ('sentence-similarity', [(TEXTS[n], NEXT[n], n % 5 / 4) for n in NUMBERS], {}),
    'questions': (
        'question-answering',
        [asked(n) for n in NUMBERS],
        {'version_2': True, 'max_query_length': 12, 'doc_stride': 30, 'max_length': 60},
    ),
}
#: the pipeline's item of a row; else its text
ITEMS = {
    'pairs': lambda row: row[:2],
    'choices': lambda row: {'text': row[0], 'choices': row[1]},
    'vectors': lambda row: row[:2],
    'questions': lambda row: {'question': row[0], 'context': row[1]},
}
#: the prediction that a pipeline's result is; else its label
PREDICTIONS = {
    'numbers': lambda result: result['score'],
    'several': lambda result: sorted(each['label'] for each in result),
    'vectors': float,
    'questions': lambda result: result['answer'],
}


@pytest.fixture(scope='module')
def start(tmp_path_factory):
    """The folder of a BERT whose pieces are characters, so that most texts are too long for it."""
    folder, letters = tmp_path_factory.mktemp('start'), sorted({*''.join(TEXTS).lower()} - {' '})
    pieces = [*letters, *(f'##{letter}' for letter in letters), 'the', '##er', 'in', '##ed']
    sizes = dict.fromkeys(('hidden_dropout_prob', 'attention_probs_dropout_prob'), 0.0)
    tiny.save_bert(folder, pieces, scale=0.2, max_position_embeddings=64, **sizes)
    return str(folder)


def same(found, expected):
    if isinstance(expected[0], float):
        return np.allclose(found, expected, atol=2e-5)
    return found == expected


def commanded(name, folder, items, path):
    """The predictions of ``zoo predict`` or ``zoo ask`` for a table."""
    columns = {'pairs': ('sentence1', 'sentence2'), 'questions': ('question', 'context')}
    columns, script = columns.get(name, ('text',)), 'ask' if name == 'questions' else 'predict'
    with path.open('w', encoding='utf-8', newline='') as file:
        rows = [item.values() if isinstance(item, dict) else item for item in items]
        rows = [[row] if isinstance(row, str) else row for row in rows]
        csv.writer(file).writerows([columns, *rows])
    output = path.with_suffix('.jsonl')
    argv = [folder, '--file', path, '--output', output, '--engine', 'mxnet']
    assert run(load_script(script), *argv) == 0
    records = list(map(json.loads, output.read_text('utf-8').splitlines()))
    if name == 'several':
        return [list(filter(None, record['label'].split(','))) for record in records]
    key = {'questions': 'answer', 'numbers': 'score'}.get(name, 'label')
    return [record[key] for record in records]


def served(name, pipeline, items):
    """The predictions of a server."""
    testclient = pytest.importorskip('starlette.testclient')
    if name == 'pairs':
        items = [dict(zip(('text', 'text_pair'), item)) for item in items]
    elif name == 'vectors':
        items = [{'source_sentence': first, 'sentences': [second]} for first, second in items]
    with testclient.TestClient(build_app({'m': pipeline})) as client:
        found = client.post('/models/m', json={'inputs': items}).json()
    if name == 'several':
        return [sorted(each['label'] for each in row if each['score'] >= 0.5) for row in found]
    if name in ('classes', 'pairs', 'numbers'):  # all labels, the best first
        found = [row[0] for row in found]
    read = {'vectors': lambda row: row[0]}.get(name) or PREDICTIONS.get(name, label_of)
    return list(map(read, found))


@pytest.mark.parametrize('name', ROADS)
def test_a_set_is_predicted_as_it_was_scored(start, tmp_path, name):
    task, rows, more = ROADS[name]
    options = {'epochs': 5, 'batch_size': 8, 'lr': 5e-3, 'seed': 1, 'max_length': 40, **more}
    trained = model_zoo.finetune(
        start, task, rows, rows, test=rows, output_dir=str(tmp_path / 'run'), **options
    )
    expected, folder = trained.predictions, str(tmp_path / 'run' / 'best_model')
    assert len({*map(str, expected)}) > 1
    items = list(map(ITEMS.get(name, lambda row: row[0]), rows))
    trained.save(tmp_path / 'saved')
    pipeline = model_zoo.pipeline(task, str(tmp_path / 'saved'))
    engines = filter(is_installed, filter('auto'.__ne__, ENGINES))
    for use in (
        *(trained, pipeline),
        *(model_zoo.pipeline(task, folder, engine=engine) for engine in engines),
    ):
        found = list(map(PREDICTIONS.get(name, label_of), use(items)))
        assert same(found, expected), use
    assert same(served(name, pipeline, items), expected)
    if name not in ('choices', 'vectors'):
        assert same(commanded(name, folder, items, tmp_path / 'rows.csv'), expected)
    if name == 'pairs':  # one text is refused
        assert run(load_script('predict'), folder, 'A text.') == 1
    if name in ('classes', 'pairs', 'choices', 'vectors', 'questions'):
        assert_next_runs(tmp_path / 'run')


#: the names that the pipeline's items and results have
COLUMNS = {
    'classes': ('text', 'label'),
    'pairs': ('text', 'text_pair', 'label'),
    'choices': ('text', 'choices', 'label'),
    'vectors': ('text', 'text_pair', 'score'),
    'words': ('text',),
}


@pytest.mark.parametrize('name', COLUMNS)
def test_a_folder_of_splits_trains_as_its_rows(start, tmp_path, name):
    datasets = pytest.importorskip('datasets')
    task, rows, more = ROADS.get(name, ('fill-mask', [(text,) for text in TEXTS], {}))
    options = {'epochs': 1, 'batch_size': 8, 'seed': 1, 'max_length': 40, **more}
    rows = [dict(zip(COLUMNS[name], row)) for row in rows]
    data = datasets.Dataset.from_list(rows)
    datasets.DatasetDict({'train': data, 'validation': data}).save_to_disk(tmp_path)
    found = model_zoo.finetune(start, task, tmp_path, **options)
    assert found.scores == model_zoo.finetune(start, task, rows, rows, **options).scores
