"""The table of tasks, and tasks of the user's own."""

import pytest
from gluonnlp.data import classification

from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tasks.classification import METRICS
from model_zoo.tasks.classification_data import custom_task, get_task, list_tasks


@pytest.mark.parametrize('name', list_tasks())
def test_labels_pairs_and_aliases_are_those_of_gluonnlp(name):
    task, theirs = get_task(name), classification.get_task(name)
    assert task.labels == (theirs.class_labels and tuple(theirs.class_labels))
    assert task.regression == (theirs.class_labels is None)
    assert task.num_labels == (1 if theirs.class_labels is None else len(theirs.class_labels))
    assert task.is_pair == theirs.is_pair
    for alias, label in (theirs.label_alias or {}).items():
        assert task.parse_label(alias) == label


def test_names_in_any_case_and_aliases():
    assert get_task('mrpc') is get_task('MRPC')
    assert get_task('SST') is get_task('sst-2') is get_task('SST-2')
    assert get_task('chnsenticorp').name == 'ChnSentiCorp'
    with pytest.raises(UnknownNameError):
        get_task('MRPCC')


def test_every_task_is_consistent():
    for task in map(get_task, list_tasks()):
        assert set(task.metrics) <= set(METRICS)
        assert set(task.submissions) == set(task.test_segments)
        assert len({len(layout.text) for layout in task.layouts}) == 1
        assert set(task.label_aliases.values()) <= set(task.labels or ())
        assert 'train' in task.segments
        assert task.dev_segments


def test_submission_files_are_named_as_glue_wants_them():
    names = {
        name
        for task in ('CoLA', 'MNLI', 'MRPC', 'QNLI', 'QQP', 'RTE', 'SST', 'STS-B', 'WNLI')
        for name in get_task(task).submissions.values()
    }
    assert names == {
        *('CoLA.tsv', 'MNLI-m.tsv', 'MNLI-mm.tsv', 'MRPC.tsv', 'QNLI.tsv', 'QQP.tsv'),
        *('RTE.tsv', 'SST-2.tsv', 'STS-B.tsv', 'WNLI.tsv'),
    }
    assert get_task('MNLI').submission_file('test_mismatched') == 'MNLI-mm.tsv'
    with pytest.raises(UnknownNameError):
        get_task('MNLI').submission_file('test')


def test_format_prediction():
    assert get_task('RTE').format_prediction(1) == 'entailment'
    assert get_task('MRPC').format_prediction(0) == '0'
    assert get_task('STS-B').format_prediction(3.14159) == '3.142'
    assert get_task('STS-B').format_prediction(5.2) == '5.000'
    assert get_task('STS-B').format_prediction(-1) == '0.000'


def test_parse_label():
    assert get_task('ChnSentiCorp').parse_label('positive') == '1'
    assert get_task('RTE').label_id(get_task('RTE').parse_label(' entailment ')) == 1
    assert get_task('STS-B').parse_label('4.750') == 4.75
    with pytest.raises(InputError):
        get_task('RTE').parse_label('maybe')
    for bad in ('5.1', '-0.1', 'nan', 'inf', '', 'five'):
        with pytest.raises(InputError):
            get_task('STS-B').parse_label(bad)


def test_custom_task():
    task = custom_task(['a', 'b'], 'y', labels=['no', 'yes', 'unsure'], files={'test': 'T.tsv'})
    assert task.is_pair
    assert task.num_labels == 3
    assert task.metrics == ('accuracy',)
    assert task.submission_file('test') == 'custom.tsv'
    assert custom_task(['a'], 'y', labels=['no', 'yes']).metrics == ('accuracy', 'f1')
    assert custom_task(['a'], 'y', regression=True).metrics == ('pearson', 'spearman')
    assert custom_task(['a'], 'y', regression=True).num_labels == 1
    assert custom_task(['a'], 'y', regression=True).parse_label('-7e3') == -7000
    assert custom_task(['0'], '2').text_columns == (0,)  # digits from a command line
    assert not custom_task(['0'], '2').header
    assert custom_task([0], 'y').header
    with pytest.raises(InputError):
        _ = custom_task(['a'], 'y').num_labels


@pytest.mark.parametrize(
    'arguments',
    [
        *({'text_columns': columns} for columns in ([], ['a', 'b', 'c'], ['a', 'a'], [-1])),
        {'text_columns': ['a'], 'label_column': 'a'},
        {'text_columns': ['a'], 'header': False},
        {'text_columns': ['a'], 'labels': ['x', 'y'], 'regression': True},
        {'text_columns': ['a'], 'labels': ['x']},
        {'text_columns': ['a'], 'files': {'train': 'T'}},
    ],
)
def test_custom_task_refuses(arguments):
    with pytest.raises(InputError):
        custom_task(**arguments)
