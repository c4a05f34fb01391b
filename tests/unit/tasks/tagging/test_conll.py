"""CoNLL files are read, and written back with a column more."""

import pytest
from json_files import cases
from refusals import refuses

from model_zoo.tasks.tagging import Sentence, read_conll, write_conll

TEXT = """\
-DOCSTART- -X- O O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

-DOCSTART- -X- O O

# . O O
"""


def write(folder, text, name='in.txt'):
    path = folder / name
    path.write_bytes(text.encode('utf-8'))
    return path


def test_columns(tmp_path):
    path = write(tmp_path, TEXT)
    expected = [Sentence(('EU', 'rejects'), ('B-ORG', 'O'), 3), Sentence(('#',), ('O',), 8)]
    assert read_conll(path) == expected
    assert read_conll(path, 0, 3) == read_conll(path, -4, -1) == expected
    assert [each.labels for each in read_conll(path, 0, 1)] == [('NNP', 'VBZ'), ('.',)]
    assert read_conll(path, 1, None)[0] == Sentence(('NNP', 'VBZ'), None, 3)


SEPARATED = [
    'a x\nb y\n\nc z',  # without a last newline
    '\ufeffa x\r\nb y\r\n \r\n\r\nc z\r\n',
    'a\tx\nb\ty\n\t\nc\tz\n\n\n',
    'a  x \nb x\n'.replace('b x', 'b   y') + '\nc z\n',
    '-DOCSTART-\na x\nb y\n-DOCSTART-\nc z\n',  # no empty lines, one column
]


@pytest.mark.parametrize('text', SEPARATED)
def test_what_separates(tmp_path, text):
    sentences = read_conll(write(tmp_path, text))
    assert [each.words for each in sentences] == [('a', 'b'), ('c',)]
    assert [each.labels for each in sentences] == [('x', 'y'), ('z',)]


def test_spaces_within_words(tmp_path):
    """No-break and other spaces don't part columns; nor do spaces where there are tabs."""
    (sentence,) = read_conll(write(tmp_path, '10\u00a0000 N\n\u2028 N\nde facto\tA\n'))
    assert sentence.words == ('10\u00a0000', '\u2028', 'de facto')
    assert sentence.labels == ('N', 'N', 'A')


BAD = cases('conll')['BAD']


@pytest.mark.parametrize('text, columns, place', BAD)
def test_bad_files_are_named(tmp_path, text, columns, place):
    with refuses(says=place):
        read_conll(write(tmp_path, text), *columns)


def test_written_back(tmp_path):
    path = write(tmp_path, TEXT)
    out = tmp_path / 'out.txt'
    write_conll(str(out), path, [['B-PER', 'O'], ['B-LOC']])
    lines = out.read_text().splitlines()
    assert lines[2:4] == ['EU NNP B-NP B-ORG B-PER', 'rejects VBZ B-VP O O']
    assert lines[0] == '-DOCSTART- -X- O O O' and lines[-1] == '# . O O B-LOC'
    assert [line.rpartition(' ')[0] for line in lines] == TEXT.splitlines()
    assert [each.labels for each in read_conll(out)] == [('B-PER', 'O'), ('B-LOC',)]
    # the documents' lines repeat their own label
    write_conll(str(out), path, [['N', 'V'], ['.']], label_column=1)
    assert out.read_text().splitlines()[0] == '-DOCSTART- -X- O O -X-'


def test_written_back_with_tabs(tmp_path):
    out = tmp_path / 'out.txt'
    write_conll(str(out), write(tmp_path, 'de facto\tA\r\nx\tB\r\n\r\ny\tC'), [['1', '2'], ['3']])
    assert out.read_bytes() == b'de facto\tA\t1\nx\tB\t2\n\ny\tC\t3\n'
