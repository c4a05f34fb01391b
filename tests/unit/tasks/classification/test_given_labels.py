"""Labels as the caller's rows have them, and what a training leaves of an earlier task."""

import json

import pytest
import tiny_models
from json_files import cases

import bert
from model_zoo import finetune

TEXTS = ['the cat', 'a dog', 'good film', 'bad film']
EARLIER = cases('classification')['EARLIER']


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A classifier for several labels a text."""
    folder = tmp_path_factory.mktemp('earlier')
    tiny_models.save_bert(folder, bert.BertForSequenceClassification, ['x', 'y'])
    config = json.loads((folder / 'config.json').read_text())
    (folder / 'config.json').write_text(json.dumps({**config, **EARLIER}))
    return str(folder)


def train(folder, labels, task='text-classification', **options):
    rows = list(zip(TEXTS, labels))
    options = {'test': rows, 'epochs': 1, 'max_length': 16, **options}
    return finetune(folder, task, rows, **options)


@pytest.mark.parametrize('labels', [[0, 1, 1, 0], [True, False] * 2, ['x', 'y'] * 2])
def test_predictions_are_labels_as_they_were_given(folder, labels):
    seen = []

    def metrics(predictions, expected):
        seen.append((predictions, expected))
        return {}

    rows = list(zip(TEXTS, labels))
    trained = train(folder, labels, dev=rows, metrics=metrics)
    assert {*map(repr, trained.predictions)} <= {*map(repr, labels)}
    assert all(expected == labels for _, expected in seen) and seen[0][0] == trained.predictions


def test_several_labels_and_tags_as_they_were_given(folder):
    trained = train(folder, [[0], [0, 1], [], [1]], multi_label=True)
    assert {label for row in trained.predictions for label in row} <= {0, 1}
    rows = [([word], [number]) for number, word in enumerate(TEXTS[0].split())]
    trained = finetune(folder, 'token-classification', rows, test=rows, epochs=1, max_length=16)
    assert trained.task.labels == ['x', 'y']
    assert {label for row in trained.predictions for label in row} <= {0, 1}


def test_classes_of_a_data_set_are_the_labels(tmp_path):
    datasets = pytest.importorskip('datasets')
    tiny_models.save_bert(tmp_path, bert.BertModel)
    feature = datasets.ClassLabel(names=['pos', 'none', 'neg'])
    features = datasets.Features(text=datasets.Value('string'), label=feature)
    rows = datasets.Dataset.from_dict({'text': TEXTS, 'label': [0, 2] * 2}, features=features)
    trained = finetune(str(tmp_path), 'text-classification', rows, epochs=1, max_length=16)
    assert list(trained.task.labels) == feature.names


ROWS_OF_TASKS = [
    ('text-classification', [('the cat', 'x'), ('a dog', 'y')]),
    ('token-classification', [(['the', 'cat'], ['x', 'y'])]),
    ('question-answering', [('where ?', 'in paris .', 'paris', 3)]),
]


@pytest.mark.parametrize('task, rows', ROWS_OF_TASKS)
def test_nothing_of_an_earlier_task_is_left(folder, tmp_path, task, rows):
    more = {'doc_stride': 4, 'max_query_length': 4} if task == 'question-answering' else {}
    trained = finetune(folder, task, rows, epochs=1, max_length=16, **more)
    trained.save(tmp_path / 'saved')
    fields = json.loads((tmp_path / 'saved' / 'config.json').read_text())
    assert not set(EARLIER) & set(fields)
    assert ('id2label' in fields) == (task != 'question-answering')
    if task == 'text-classification':
        scores = [answer['score'] for answer in trained('the cat', top_k=None)]
        assert sum(scores) == pytest.approx(1)
