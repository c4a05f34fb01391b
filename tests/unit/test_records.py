"""`read_records` and `choose_columns`: one reader of rows, whatever they come from."""

import json

import pytest
from json_files import cases
from refusals import refuses

from model_zoo.errors import InputError
from model_zoo.records import PAIRS, TEXTS, choose_columns, read_records

ROWS = [{'Text': 'a, "b"', 'n': 1, 'tags': ['x']}, {'Text': '天 é', 'n': 2, 'tags': []}]


def written(folder, kind):
    """A source of `ROWS`."""
    path = folder / f'rows.{kind}'
    if kind == 'jsonl':
        path.write_text('\n\n'.join(map(json.dumps, ROWS)))
    elif kind == 'json':
        path.write_text(json.dumps(ROWS, indent=1))
    elif kind == 'parquet':
        pyarrow, parquet = (pytest.importorskip(f'pyarrow{part}') for part in ('', '.parquet'))
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif kind == 'DataFrame':
        return pytest.importorskip('pandas').DataFrame(ROWS)
    elif kind in ('Dataset', 'folder'):
        data = pytest.importorskip('datasets').Dataset.from_list(ROWS)
        if kind == 'Dataset':
            return data
        data.save_to_disk(str(folder / 'set'))
        return str(folder / 'set')
    elif kind == 'tuples':
        return [tuple(row.values()) for row in ROWS]
    else:
        return iter(ROWS)
    return path


@pytest.mark.parametrize(
    'kind', ['jsonl', 'json', 'parquet', 'DataFrame', 'Dataset', 'folder', 'tuples', 'dicts']
)
def test_the_same_rows_from_everywhere(tmp_path, kind):
    found = list(read_records(written(tmp_path, kind), {3: ('Text', 'n', 'tags')}, 'train'))
    assert [{**row, 'tags': list(row['tags'])} for _, row in found] == ROWS
    lines = [where.line for where, _ in found]
    assert lines == ([1, 3] if kind == 'jsonl' else [0, 1])
    assert str(found[1][0]).endswith('line 3' if kind == 'jsonl' else 'row 1')


WRITTEN = [
    'first;second;label\n"a;b";c, d;pos\n;"";neg\n'.replace(';"";', 'e, f;"";'),
    'first\tsecond\tlabel\n"a;b"\tc, d\tpos\ne, f\t\tneg\n',
    'first, second, label\n"a;b", "c, d", pos\n"e, f", , neg\n',
    'first,second,label\ra;b,"c, d",pos\r"e, f",,neg\r',
    'first,second,label\r\na;b,"c, d",pos\r\n"e, f",,neg'.encode('utf-16'),
]


@pytest.mark.parametrize('content', WRITTEN)
def test_csv_as_programs_write_it(tmp_path, content):
    path = tmp_path / 'train.csv'
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    rows = [tuple(fields.values()) for _, fields in read_records(path)]
    assert rows == [('a;b', 'c, d', 'pos'), ('e, f', '', 'neg')]


def test_csv_that_only_looks_like_it(tmp_path):
    path = tmp_path / 'train.csv'
    path.write_text('text\ngood; really\nbad\n')
    assert [fields['text'] for _, fields in read_records(path)] == ['good; really', 'bad']
    path.write_text('text,label\n' + 'long ' * 60000 + ',pos\n')  # over the csv module's limit
    assert len(next(read_records(path))[1]['text']) == 300000


@pytest.mark.parametrize('encoding', ['latin-1', 'utf-16', 'cp1252'])
@pytest.mark.parametrize('kind', ['csv', 'tsv', 'jsonl'])
def test_other_encodings(tmp_path, encoding, kind):
    path = tmp_path / f'rows.{kind}'
    rows = {'csv': 'text\ncafé\n', 'tsv': 'text\ncafé\n', 'jsonl': '{"text": "café"}\n'}
    path.write_text(rows[kind], encoding)
    assert [row for _, row in read_records(path, encoding=encoding)] == [{'text': 'café'}]
    if encoding != 'utf-16':  # whose mark says it
        with refuses(says='`encoding`'):
            list(read_records(path))
    with refuses('encoding'):
        list(read_records(path, encoding='latin-99'))


BAD = cases('records')['BAD']


@pytest.mark.parametrize('kind, content, line', BAD)
def test_bad_rows_have_a_place(tmp_path, kind, content, line):
    path = tmp_path / f'rows.{kind}'
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        list(read_records(path))
    assert caught.value.where[:2] == (str(path), line)


@pytest.mark.parametrize('name', ['a.csv', 'a.json', 'a.jsonl'])
def test_files_without_rows(tmp_path, name):
    (tmp_path / name).write_text({'a.csv': 'a,b\n', 'a.json': '[' * 100000, 'a.jsonl': ''}[name])
    with refuses(says=name):
        list(read_records(tmp_path / name))


def test_rows_without_a_header_have_numbers(tmp_path):
    path = tmp_path / 'rows.tsv'
    path.write_text('a\tb\n\nc\td\t\n')
    records = [row for _, row in read_records(path, header=False)]
    assert records == [{0: 'a', 1: 'b'}, {0: 'c', 1: 'd'}]
    kept = [row for _, row in read_records(path, header=False, keep_blank=True)]
    assert kept == [records[0], {0: '', 1: ''}, records[1]]
    path.write_text('x\tx\n1\t2\n')
    assert [row for _, row in read_records(path)] == [{'x': '1', 'x.1': '2'}]


def test_columns():
    def chosen(names, given=None):
        return choose_columns(names, given, (*PAIRS, *TEXTS), 'text_column')

    assert chosen(['ID', 'Text', 'Label']) == ('Text',)
    assert chosen(['Sentence1', 'id', 'Sentence2']) == ('Sentence1', 'Sentence2')
    assert (
        chosen(['a', 'B'], ['b']) == chosen(['a', 'B'], [1]) == chosen(['a', 'B'], ['1']) == ('B',)
    )
    assert chosen(['b', 'B'], ['B']) == ('B',)
    for names, given in ((['a', 'b'], None), (['a'], ['x']), (['a'], [1]), (['a;b'], None)):
        with refuses(says='`text_column`'):
            chosen(names, given)
