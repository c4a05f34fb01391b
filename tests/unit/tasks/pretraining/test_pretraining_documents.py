"""Text files as documents: each is in one part, however the corpus is divided."""

import random

import pytest
from refusals import refuses

from model_zoo.errors import InputError
from model_zoo.tasks.pretraining import text as text_module
from model_zoo.tasks.pretraining.text import Corpus, matching_files


def plain(paths):
    """What the originals make of files, except that a file's end ends a document."""
    found = []
    for path in paths:
        document = []
        for line in path.read_bytes().decode('utf-8-sig').split('\n'):
            if line.strip():
                document.append(line.strip())
            elif document:
                found.append(document)
                document = []
        if document:
            found.append(document)
    return found


def make_text(rng):
    """Lines of several lengths, with blank ones among them, of many kinds."""
    blank = ['', ' ', '\t', '\u3000', '\r']
    lines = []
    for _ in range(rng.randrange(40)):
        if rng.random() < 0.4:
            lines.append(rng.choice(blank))
        else:
            lines.append(rng.choice(' \t') * rng.randrange(3) + 'é海x'[: rng.randint(1, 3)] * 3)
    return rng.choice(['', '\ufeff']) + rng.choice(['\n', '\r\n']).join(lines)


@pytest.mark.parametrize('seed', range(6))
def test_parts_hold_each_document_once(seed, tmp_path):
    rng = random.Random(seed)
    paths = [tmp_path / f'{number}.txt' for number in range(4)]
    for path in paths:
        path.write_bytes(make_text(rng).encode('utf-8'))
    paths[0].write_bytes(b'a\n\n' + paths[0].read_bytes().replace(b'\xef\xbb\xbf', b''))
    corpus = Corpus(map(str, paths))
    want = plain(paths)
    for parts in (1, 2, 3, 7, 50, corpus.num_bytes, 3 * corpus.num_bytes):
        found = [list(corpus.documents(*corpus.span(n, parts))) for n in range(parts)]
        assert sum(found, []) == want


def test_what_cannot_be_read(tmp_path, monkeypatch):
    path = tmp_path / 'a.txt'
    path.write_bytes(b'')
    for pattern in (f'{tmp_path}/*.md', str(tmp_path), ','):
        with pytest.raises(InputError):
            matching_files(pattern)
    with refuses(says='b.txt'):
        Corpus([str(tmp_path / 'b.txt')])
    path.write_bytes(b'good\nb\xffd\n')
    with refuses(says='a.txt'):
        list(Corpus([str(path)]).documents(0, 100))
    monkeypatch.setattr(text_module, '_LONGEST_DOCUMENT', 100)
    for text in ('a line\n' * 30, 'no line at all ' * 20, 'short\n\n' + 'a line\n' * 30):
        path.write_text(text)
        with refuses(says='a.txt'):
            list(Corpus([str(path)]).documents(0, 10**6))
    path.write_text('a line\n\n' * 30)
    assert len(list(Corpus([str(path)]).documents(0, 10**6))) == 30


def test_wildcards(tmp_path, monkeypatch):
    for name in ('b.txt', 'a.txt', 'c.md'):
        (tmp_path / name).write_text(name)
    monkeypatch.setenv('HOME', str(tmp_path))
    found = matching_files(f'~/*.md, {tmp_path}/*.txt,{tmp_path}/a*')
    assert found == [str(tmp_path / name) for name in ('a.txt', 'b.txt', 'c.md')]
