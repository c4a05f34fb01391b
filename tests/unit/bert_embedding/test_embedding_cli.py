"""The command bert-embedding: what it prints and writes, and how it fails."""

import os
import re

import command_flags
import numpy as np
import pytest
from json_files import cases

from bert_embedding import BertEmbedding, cli
from model_zoo.app.cli import run

LINES = ['a b', '', 'caf\u00e9 xyz \u4f60\u597d', 'bert']
WORDS = [['a', 'b'], [], ['cafe', 'xyz', '\u4f60', '\u597d'], ['bert']]


@pytest.fixture
def tiny(tiny_dir):
    return BertEmbedding(model=tiny_dir)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / 'text.txt'
    path.write_bytes(b'\xef\xbb\xbf' + '\r\n'.join(LINES).encode())
    return path


@pytest.fixture
def call(tiny_dir, capsys):
    """Run the command with the small model; returns (status, output, errors)."""

    def call(*arguments):
        try:
            status = run(cli.main, ['--model', str(tiny_dir), *map(str, arguments)])
        except SystemExit as error:  # argparse
            status = error.code
        return (status, *capsys.readouterr())

    return call


def test_model_and_texts_come_first(tiny_dir, tmp_path, capsys):
    path, output = tmp_path / 'texts.csv', tmp_path / 'vectors.npz'
    path.write_text('id,text\n1,"a, bert"\n2,b\n')
    more = '--pooling', 'mean', '--output', output
    found = []
    for source in (['a, bert', 'b'], ['--file', path], ['a, bert', '--file', path]):
        assert run(cli.embed, [str(each) for each in (tiny_dir, *source, *more)]) == 0
        found.append(np.load(output)['vectors'])
    assert found[0].shape == (2, 16) and found[2].shape == (3, 16)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-5)
    capsys.readouterr()
    parser = command_flags.parser_of
    assert parser(cli.embed).get_default('model') == 'all-MiniLM-L6-v2'
    assert parser(cli.main).get_default('model') == 'bert_12_768_12'


def test_prints_as_the_original(call, tiny):
    status, output, _ = call('--sentences', 'a bert', 'b')
    assert status == 0
    with np.printoptions(threshold=5, legacy='1.21'):
        expected = [str(vectors) for _, vectors in tiny(['a bert', 'b'])]
    assert output == (
        f'Text: a bert\nTokens embedding: {expected[0]}\nText: b\nTokens embedding: {expected[1]}\n'
    )
    number = r'\s*-?\d\.\d*(e-\d+)?\s*'
    one = rf'array\(\[({number},){{3}}\s*\.\.\.,({number},){{2}}{number}\], dtype=float32\)'
    assert re.fullmatch(rf'\[{one}, {one}\]', expected[0])


def test_prints_sentence_vectors(call, tiny):
    status, output, _ = call('--sentences', 'A  Bert', '--pooling', 'max', '--normalize')
    assert status == 0
    vector = tiny.sentence_vectors(['A  Bert'], 'max', normalize=True)[0]
    with np.printoptions(threshold=5, legacy='1.21'):
        assert output == f'Text: A  Bert\nSentence embedding: {vector!r}\n'


def test_zoo_prints_all_numbers_but_on_a_terminal(tiny_dir, capsys, monkeypatch):
    words = [str(tiny_dir), 'a bert', '--pooling', 'mean']
    assert run(cli.embed, words) == 0
    vector = np.array(eval(capsys.readouterr().out.partition('array(')[2].partition(', dtype')[0]))
    assert vector.ndim == 1 and len(vector) > 6
    monkeypatch.setattr('sys.stdout.isatty', lambda: True)
    assert run(cli.embed, words) == 0
    assert len(capsys.readouterr().out.partition('...')[0].rpartition('[')[2]) <= 3 * 9


def test_reads_a_file_line_by_line(call, text):
    status, output, errors = call('--file', text)
    assert status == 0
    assert errors.count('1 of 4 sentences have no words') == 1
    lines = [line for line in output.splitlines() if line.startswith('Text:')]
    assert lines == [f'Text: {line.strip()}' for line in text.read_text('utf-8-sig').splitlines()]
    assert 'Tokens embedding: []' in output


def test_npz_of_words(call, text, tmp_path, tiny):
    path = tmp_path / 'out.npz'
    status, output, _ = call('--file', text, '--output', path, '--batch_size', 2)
    assert (status, output) == (0, '')
    with np.load(path) as file:
        assert sorted(file) == ['offsets', 'tokens', 'vectors']
        tokens, offsets, vectors = file['tokens'], file['offsets'], file['vectors']
    assert (vectors.shape, vectors.dtype) == ((7, 16), np.float32)
    assert offsets.tolist() == [0, 2, 2, 6, 7]
    for number, (words, expected) in enumerate(tiny(LINES)):
        part = slice(offsets[number], offsets[number + 1])
        assert tokens[part].tolist() == words == WORDS[number]
        np.testing.assert_allclose(vectors[part], np.reshape(expected, (-1, 16)), atol=1e-5)
    assert sorted(os.listdir(tmp_path)) == ['out.npz', 'text.txt']
    assert call('--file', text, '--output', path, '--pooling', 'mean')[0] == 0
    with np.load(path) as file:
        assert list(file) == ['vectors']
        np.testing.assert_allclose(file['vectors'], tiny.sentence_vectors(LINES), atol=1e-5)
    text.write_text('\n\n')
    assert call('--file', text, '--output', path)[0] == 0
    with np.load(path) as file:
        assert file['offsets'].tolist() == [0, 0, 0] and len(file['vectors']) == 0


BAD_ARGUMENTS = cases('embedding')['BAD_ARGUMENTS']


@pytest.mark.parametrize('arguments, status', BAD_ARGUMENTS)
def test_bad_arguments(call, arguments, status, tmp_path, here):
    (tmp_path / 'empty').write_bytes(b'')
    (tmp_path / 'no utf-8').write_bytes(b'a\nb\xff\nc\n')
    (tmp_path / 'folder.npz').mkdir()
    code, output, errors = call(*arguments)
    assert code == status and errors and not output and 'Traceback' not in errors
    assert status == 2 or errors.count('\n') == 1
    assert len(os.listdir(tmp_path)) == 3
