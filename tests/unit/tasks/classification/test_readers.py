"""TSV files of all layouts to examples, and what is said of files that can't be used."""

import logging

import pytest
from gluonnlp.data import classification
from json_files import cases
from refusals import refuses

from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tasks.classification_data import (
    Example,
    custom_task,
    get_task,
    has_segment,
    infer_labels,
    read_examples,
)

STSB = 'index genre filename year old_index source1 source2 sentence1 sentence2'
XNLI = 'language gold_label sentence1_binary_parse sentence1 sentence2 promptID'
MRPC = '#1 ID | #2 ID | #1 String | #2 String'


def tsv(*rows):
    """Rows given as fields separated by ' | ', or as a header's names separated by spaces."""
    rows = (row.split(' | ' if ' | ' in row else ' ') for row in rows)
    return ''.join('\t'.join(row) + '\n' for row in rows)


def read(folder, task, content, segment='train', name=None):
    task = get_task(task) if isinstance(task, str) else task
    content = content if isinstance(content, bytes) else content.encode('utf-8')
    (folder / (name or f'{segment}.tsv')).write_bytes(content)
    return read_examples(task, folder, segment)


#: task, segment, columns, a row of the texts a and b, its number and its label
LAYOUTS = cases('classification')['LAYOUTS']


@pytest.mark.parametrize(('task', 'segment', 'columns', 'row', 'guid', 'label'), LAYOUTS)
def test_layouts(tmp_path, task, segment, columns, row, guid, label):
    second = 'b' if '| b' in row else None
    content = tsv(*filter(None, [columns, row]))
    assert read(tmp_path, task, content, segment) == [Example(guid, 'a', second, label)]


def test_texts_are_taken_as_they_are(tmp_path):
    """The byte-order mark is no part of the first name; no quotes; lines end at newlines only."""
    content = '\ufeff' + tsv(f'Quality | {MRPC}') + '1\t7\t8\t" a b\tc "d\n'
    assert read(tmp_path, 'MRPC', content) == [Example('0', '" a b', 'c "d', '1')]
    content = 'sentence\tlabel\r\na\u2028b\x85c\x0bd\t1\r\n\u4ed6\u8bf4\t0'
    examples = read(tmp_path, 'SST', content)
    assert [each.text_a for each in examples] == ['a\u2028b\x85c\x0bd', '\u4ed6\u8bf4']


def test_rows_of_other_languages_are_left_out(tmp_path):
    rows = 'ar | neutral | x | c | d | 0', 'zh | entailment | x | a | b | 1'
    assert read(tmp_path, 'XNLI', tsv(XNLI, *rows), 'dev') == [Example('0', 'a', 'b', 'entailment')]


def test_folder_of_the_task_or_above_it(tmp_path):
    folder = tmp_path / 'SST-2'
    folder.mkdir()
    (folder / 'dev.tsv').write_text(tsv('sentence label', 'good | 1'))
    task = get_task('SST')
    assert read_examples(task, tmp_path, 'dev') == read_examples(task, folder, 'dev')
    assert has_segment(task, tmp_path, 'dev')
    assert not has_segment(task, tmp_path, 'test')


def test_missing_files_and_unknown_segments(tmp_path):
    for folder in (tmp_path, tmp_path / 'nowhere'):
        with refuses(says='train.tsv'):
            read_examples(get_task('MRPC'), folder)
    with pytest.raises(UnknownNameError):
        read_examples(get_task('MNLI'), tmp_path, 'dev')


BAD = [
    ('SST', 'sentence\tlabel\n', ''),
    ('SST', 'text\tlabel\na\t1\n', 'line 1'),
    ('SST', 'sentence\tlabel\na\t1\nb 0\n', 'line 3'),
    ('SST', 'sentence\tlabel\na\t1\n\nb\t0\n', 'line 3'),
    ('SST', 'sentence\tlabel\na\t2\n', 'line 2'),
    ('SST', 'sentence\tlabel\n \t1\n', 'line 2'),
    ('SST', b'sentence\tlabel\nok\t1\ncaf\xe9\t1\n', 'line 3'),
    ('CoLA', 'gj04\t1\t\tA\ngj04\t1\tB\n', 'line 2'),
    ('CoLA', tsv('index sentence', '0 | Bill left.'), ''),  # no labels to train with
    ('STS-B', tsv(f'{STSB} score', '0 | g | f | y | i | n | n | a | b | 6'), "'6'"),
    ('XNLI', tsv(XNLI, 'ar | neutral | x | c | d | 0'), 'no rows'),
]


@pytest.mark.parametrize('task, content, place', BAD)
def test_bad_files(tmp_path, task, content, place):
    with pytest.raises(InputError) as caught:
        read(tmp_path, task, content)
    assert str(tmp_path / 'train.tsv') in str(caught.value) and place in str(caught.value)


def test_broken_rows_of_qqp_are_skipped_and_counted(tmp_path, caplog):
    rows = '1 | 1 | 2 | a | b | 0', '2 | 1', '3 | 1 | 2 | c | d | e', '4 | 1 | 2 | a |  | 1'
    content = tsv('id qid1 qid2 question1 question2 is_duplicate', *rows)
    with caplog.at_level(logging.WARNING):
        examples = read(tmp_path, 'QQP', content)
    assert [example.label for example in examples] == ['0', '1']
    assert examples[1].text_b == ''  # GLUE has such questions, and everybody keeps them
    assert 'skipped 2 broken rows of 4, the first at line 3' in caplog.text


def custom(folder, content, *columns, files=None, **kwargs):
    path = folder / 'mine.tsv'
    path.write_text(content)
    return custom_task(*columns, files=files or {'train': path}, **kwargs)


def test_custom_files_by_name_and_by_position(tmp_path):
    content = 'id\ty\twords\n1\tyes\ta\n2\tno\tb\n3\tyes\tc\n'
    named = infer_labels(custom(tmp_path, content, ['words'], 'y'))
    placed = infer_labels(custom(tmp_path, content, [2], 1, header=True))
    assert named.labels == placed.labels == ('no', 'yes')
    assert named.target.metrics[0] == 'accuracy'
    assert read_examples(named) == read_examples(placed)
    assert read_examples(named)[1] == Example('1', 'b', None, 'no')


def test_custom_test_file_needs_no_label(tmp_path):
    path = tmp_path / 'test.tsv'
    for content in ('a\nb\n', 'a\t?\nb\t-1\n'):  # placeholders
        path.write_text(content)
        task = custom_task([0], 1, labels=['x', 'y'], files={'test': path})
        assert [example.text_a for example in read_examples(task, segment='test')] == ['a', 'b']


def test_inferred_labels_are_sorted_by_number(tmp_path):
    content = 't\ty\n' + ''.join(f'text {label}\t{label}\n' for label in (10, 9, -1, 10))
    assert infer_labels(custom(tmp_path, content, ['t'], 'y')).labels == ('-1', '9', '10')


BAD_CUSTOM = cases('classification')['BAD_CUSTOM']


@pytest.mark.parametrize('content, columns, place', BAD_CUSTOM)
def test_custom_files_that_cannot_be_used(tmp_path, content, columns, place):
    with refuses(says=place):
        infer_labels(custom(tmp_path, content, *columns))


def test_custom_regression(tmp_path):
    task = custom(tmp_path, 't\ty\na\t-1e2\nb\t0.5\n', ['t'], 'y', regression=True)
    assert infer_labels(task) is task
    assert [example.label for example in read_examples(task)] == [-100.0, 0.5]


def fake_download(monkeypatch, name, result):
    """Let GluonNLP's task `name` give `result` for all segments, or raise it."""

    def get_dataset(self, segment='train'):
        print('Downloading ..., retrying')  # as MXNet's download does
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(type(classification.get_task(name)), 'get_dataset', get_dataset)


def test_gluonnlp_rows(monkeypatch):
    fake_download(monkeypatch, 'XNLI', [['a', 'b', 'contradictory'], ['c', 'd', 'neutral']])
    expected = [Example('0', 'a', 'b', 'contradiction'), Example('1', 'c', 'd', 'neutral')]
    assert read_examples(get_task('XNLI'), None, 'train') == expected
    fake_download(monkeypatch, 'SST', [['good']])
    assert read_examples(get_task('SST'), segment='test') == [Example('0', 'good', None, None)]
    fake_download(monkeypatch, 'SST', [['good', '7']])
    with refuses(line=0):
        read_examples(get_task('SST'))


def test_failed_download_says_how_to_do_without(monkeypatch, capsys):
    fake_download(monkeypatch, 'RTE', UserWarning('the content hash does not match'))
    with refuses(says='train.tsv'):
        read_examples(get_task('RTE'))
    assert capsys.readouterr().out == ''


def test_folder_from_the_environment(tmp_path, monkeypatch):
    folder = tmp_path / 'task_data' / 'xnli'
    folder.mkdir(parents=True)
    (folder / 'dev.tsv').write_text(tsv('text_a text_b label', 'a | b | neutral'))
    monkeypatch.setenv('BAIDU_ERNIE_DATA_DIR', str(tmp_path))
    assert read_examples(get_task('XNLI'), None, 'dev') == [Example('0', 'a', 'b', 'neutral')]


@pytest.mark.parametrize('folder', ['MRPC', 'glue_data/MRPC'])
def test_folder_of_glues_program(tmp_path, monkeypatch, folder):
    """Found in the working folder; a file of the same name that lies there isn't the task's."""
    monkeypatch.chdir(tmp_path)
    row = tsv(f'Quality | {MRPC}', '1 | 1 | 2 | a | b')
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / 'train.tsv').write_text(row)
    (tmp_path / 'dev.tsv').write_text(row)
    assert [each.text_a for each in read_examples(get_task('MRPC'))] == ['a']
    fake_download(monkeypatch, 'MRPC', [['c', 'd', '0']])
    assert read_examples(get_task('MRPC'), segment='dev') == [Example('0', 'c', 'd', '0')]
