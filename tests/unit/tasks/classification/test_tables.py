"""CSV, JSON lines and folders of `datasets` to examples, and bad rows."""

import json

import pytest
from json_files import cases
from refusals import refuses

from model_zoo.records import class_names, find_splits
from model_zoo.tasks.classification_data import custom_task, infer_labels, read_examples
from model_zoo.tasks.rows import fit_to_rows
from model_zoo.tasks.settings import ClassificationSettings, SentenceSettings, TaggingSettings

ROWS = [('good, "really"', 'a b', 'pos'), ('bad\nfilm', 'c', 'neg'), ('天', 'd', 'pos')]
CSV = 'first,label,second\n"good, ""really""",pos,a b\n"bad\nfilm",neg,c\n\n天,pos,d\n'


def task_of(path, **options):
    options = {'labels': ['neg', 'pos'], **options}
    return custom_task(['first', 'second'], 'label', files={'train': path}, **options)


def rows_of(examples):
    return [(each.text_a, each.text_b, each.label) for each in examples]


def write_lines(path, rows):
    path.write_text('\n'.join(map(json.dumps, rows)) + '\n', encoding='utf-8')
    return path


def objects():
    return [dict(zip(('first', 'second', 'label'), row)) for row in ROWS]


def test_columns_by_name(tmp_path):
    path = tmp_path / 'train.CSV'
    path.write_text('\ufeff' + CSV, encoding='utf-8')
    assert rows_of(read_examples(task_of(path))) == ROWS
    assert infer_labels(task_of(path, labels=None)).labels == ('neg', 'pos')


def test_numbers_and_truth_values_are_labels(tmp_path):
    rows = [{'first': 'a', 'second': 'b', 'label': label} for label in (1, 0, 1)]
    task = task_of(write_lines(tmp_path / 'x.jsonl', rows), labels=None)
    assert infer_labels(task).labels == ('0', '1')
    for row in rows:
        row['label'] = bool(row['label'])
    task = infer_labels(task_of(write_lines(tmp_path / 'y.jsonl', rows), labels=None))
    assert [each.label for each in read_examples(task)] == ['true', 'false', 'true']


def test_names_of_classes_and_splits_of_datasets(tmp_path):
    datasets = pytest.importorskip('datasets')
    features = datasets.Features(
        {name: datasets.Value('string') for name in ('first', 'second')},
        label=datasets.ClassLabel(names=['neg', 'pos']),
    )
    rows = [{**row, 'label': int(row['label'] == 'pos')} for row in objects()]
    train = datasets.Dataset.from_list(rows, features=features)
    sets = datasets.DatasetDict({'train': train, 'validation': train, 'other': train})
    sets.save_to_disk(str(tmp_path / 'all'))
    splits = find_splits(str(tmp_path / 'all'))
    assert set(splits) == {'train', 'dev'} and splits['dev'].endswith('validation')
    assert rows_of(read_examples(task_of(splits['dev']))) == ROWS
    assert infer_labels(task_of(splits['train'], labels=None)).labels == ('neg', 'pos')
    assert class_names(train.rename_column('label', 'x'), 'x') == ['neg', 'pos']
    without = train.map(lambda row: {'label': -1})
    without.save_to_disk(str(tmp_path / 'none'))
    with refuses(line=0):
        read_examples(task_of(tmp_path / 'none'))


BAD = cases('classification')['BAD_TABLES']


@pytest.mark.parametrize('name, content, place', BAD)
def test_bad_tables_are_told_with_their_place(tmp_path, name, content, place):
    path = tmp_path / name
    path.write_text(content)
    with refuses(says=place):
        read_examples(task_of(path))


def test_an_empty_label_is_no_label_of_its_own(tmp_path):
    (tmp_path / 'a.tsv').write_text('first\tsecond\tlabel\na\tb\tpos\na\tb\tneg\na\tb\t\n')
    with refuses(line=4):
        infer_labels(task_of(tmp_path / 'a.tsv', labels=None))


def test_rows_without_a_text_or_a_label_may_be_left_out(tmp_path):
    path = tmp_path / 'a.tsv'
    path.write_text('first\tsecond\tlabel\n\tb\tpos\na\tb\tneg\nc\td\t \ne\tf\tpos\n')
    examples = read_examples(task_of(path, skip_empty=True))
    assert rows_of(examples) == [('a', 'b', 'neg'), ('e', 'f', 'pos')]
    assert [each.guid for each in examples] == ['1', '3']


UPDATES = [
    *((60, {}, (16, 8)), (300, {}, (7, 16)), (1500, {}, (3, 16)), (5000, {}, (3, 32))),
    *((300, {name: 3}, (3, 16)) for name in ('epochs', 'training_steps')),
    (300, {'epochs': 3, 'batch_size': 32}, (3, 32)),
    *((300, {'batch_size': 4}, (3, 4)), (300, {'batch_size': 32}, (13, 32))),
    *((300, {'accumulate': 2}, (13, 16)), (300, {'batch_tokens': 1024}, (4, 32))),
]


@pytest.mark.parametrize('count, given, expected', UPDATES)
def test_small_data_has_more_updates_unless_they_are_given(count, given, expected):
    settings = ClassificationSettings(**given)
    settings = settings.with_defaults(**fit_to_rows(settings, count))
    assert (settings.epochs, settings.batch_size) == expected


@pytest.mark.parametrize('kind, epochs', [(TaggingSettings, 4), (SentenceSettings, 1)])
def test_the_epochs_of_many_rows_are_the_original_s(kind, epochs):
    chosen = [fit_to_rows(kind(), count) for count in (1920, 2001)]
    assert chosen == [{'epochs': epochs, 'batch_size': 16}, {}]
