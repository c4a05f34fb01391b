"""`BertEmbedding.similarity` and `search`, and the command ``search``."""

import json

import numpy as np
import pytest
from script_runs import load_script, run

from bert_embedding import BertEmbedding

TEXTS = ['we introduce bert', 'new language model', 'called bert', 'a new representation', 'stands']


@pytest.fixture(scope='module')
def embedding(tiny_dir):
    return BertEmbedding(str(tiny_dir))


# cosines with the first axis: 1, 0, 0.6, -0.8; the longest isn't the nearest
CORPUS = np.zeros((4, 16), np.float32)
CORPUS[:, :2] = [[2, 0], [0, 0.5], [30, 40], [-4, 3]]
COSINES = [[1, 0, 0.6, -0.8], [0.8, 0.6, 0.96, -0.28]]
QUERIES = np.zeros((2, 16), np.float32)
QUERIES[:, :2] = [[0.1, 0], [8, 6]]


def test_similarity(embedding):
    found = embedding.similarity(QUERIES, CORPUS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, COSINES, atol=1e-6)
    of_texts = embedding.similarity(TEXTS[:2], TEXTS)
    assert of_texts.shape == (2, 5) and (of_texts[0, 0], of_texts[1, 1]) == pytest.approx((1, 1))
    assert of_texts[0, 1] == pytest.approx(of_texts[1, 0], abs=1e-5) != pytest.approx(1, abs=1e-3)
    assert embedding.similarity(TEXTS[0], TEXTS).shape == (5,)
    assert embedding.similarity(TEXTS[0], TEXTS[0]) == pytest.approx(1, abs=1e-5)
    vectors = embedding.sentence_vectors(TEXTS)
    np.testing.assert_allclose(embedding.similarity(vectors[:2], vectors), of_texts, atol=1e-5)


def test_search(embedding):
    for count in (1, 3, 9):
        found = embedding.search(QUERIES, CORPUS, count)
        order = [[0, 2, 1, 3][:count], [2, 0, 1, 3][:count]]
        assert [[hit['corpus_id'] for hit in each] for each in found] == order
        scores = [[row[number] for number in each] for row, each in zip(COSINES, order)]
        np.testing.assert_allclose([[hit['score'] for hit in each] for each in found], scores, 1e-5)
    by_texts = embedding.search(TEXTS[:2], (text for text in TEXTS), 3)
    assert [each[0]['corpus_id'] for each in by_texts] == [0, 1]
    assert [len(each) for each in by_texts] == [3, 3]
    by_vectors = embedding.search(TEXTS[0], embedding.sentence_vectors(TEXTS), 3)
    assert [hit['corpus_id'] for hit in by_vectors] == [hit['corpus_id'] for hit in by_texts[0]]


def search(capsys, *argv):
    capsys.readouterr()
    assert run(load_script('search'), *argv) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize('is_json', [False, True])
def test_command(tiny_dir, tmp_path, capsys, is_json, monkeypatch):
    path = tmp_path / 'corpus'
    lines = [json.dumps({'text': text, 'id': 1}) if is_json else text for text in TEXTS]
    path.write_text('\n'.join([*lines[:2], '', *lines[2:]]) + '\n')
    argv = [tiny_dir, '--corpus', path, 'called bert', '--top_k', 2]
    hits = search(capsys, *argv)
    assert list(hits[0]) == ['score', 'line', 'query', 'text']
    assert (hits[0]['line'], hits[0]['text'], len(hits)) == (4, 'called bert', 2)
    assert hits[0]['score'] == pytest.approx(1, abs=1e-5)
    (kept,) = tmp_path.glob('corpus.*.npy')
    assert np.load(kept).shape == (5, 16)
    with monkeypatch.context() as patch:  # only the query is embedded now
        texts, method = [], BertEmbedding.iter_sentence_vectors

        def counting(self, sentences, *args, **options):
            return method(self, (texts.append(s) or s for s in sentences), *args, **options)

        patch.setattr(BertEmbedding, 'iter_sentence_vectors', counting)
        assert search(capsys, *argv) == hits and texts == ['called bert']
    path.write_text(path.read_text().replace('called', 'new'))
    assert search(capsys, *argv)[0]['text'] == 'new bert'
    assert len(list(tmp_path.glob('corpus.*.npy'))) == 1  # that of the old text is gone
    table = ['--pooling', 'cls', '--no_cache', '--format', 'tsv', '--output', tmp_path / 'hits.tsv']
    search(capsys, *argv, *table)
    assert (tmp_path / 'hits.tsv').read_text().startswith('score\tline\tquery\ttext\n')
    assert len(list(tmp_path.glob('corpus.*.npy'))) == 1


def test_columns_of_the_corpus_and_of_the_queries(tiny_dir, tmp_path, capsys):
    corpus, queries = tmp_path / 'corpus.csv', tmp_path / 'queries.csv'
    corpus.write_text('\n'.join(['id,body', *(f'1,{text}' for text in TEXTS)]))
    queries.write_text('question,id\ncalled bert,1\n')
    argv = [tiny_dir, '--corpus', corpus, '--top_k', 1, '--no_cache']
    hits = search(capsys, *argv, 'called bert', '--text_column', 'body')
    assert [hit['text'] for hit in hits] == ['called bert']
    assert search(capsys, *argv, 'called bert', '--text_field', 1) == hits
    named = ['--file', queries, '--text_column', 'question', '--text_field', 'body']
    assert search(capsys, *argv, *named) == hits
