"""Pairs, triplets and scored pairs: reading, losses and scores."""

import mxnet as mx
import numpy as np
import pytest
import tiny

import model_zoo
from model_zoo.app.evaluator import Evaluator
from model_zoo.batches import Batch
from model_zoo.errors import InputError
from model_zoo.layers.losses import cosine_error, in_batch_negatives, triplet_loss
from model_zoo.tasks import sentences
from model_zoo.tasks.sentences import SentenceExample, read_sentences
from model_zoo.tasks.task import Data


def test_kinds(tmp_path):
    (tmp_path / 'a.tsv').write_text('anchor\tpositive\tnegative\na\tb\tc\n')
    assert read_sentences(str(tmp_path / 'a.tsv')) == [(('a', 'b', 'c'), None)]
    pairs = read_sentences(str(tmp_path / 'a.tsv'), ['anchor', 'positive'])
    assert pairs.kind == 'pairs' and pairs == [(('a', 'b'), None)]


def test_rows_without_a_text_are_skipped_and_counted(caplog):
    rows = [{'anchor': 'a', 'positive': 'b'}] * 3
    assert len(read_sentences(rows, skip_empty=True)) == 3 and not caplog.records
    rows[1] = {'anchor': 'a', 'positive': ' '}
    assert len(read_sentences(rows, skip_empty=True)) == 2
    assert [record.args[1] for record in caplog.records] == [1]


TWO = 'sentence1\tsentence2'


BAD = [
    (f'{TWO}\n', {}, 'a.tsv'),
    ('one\ttwo\na\tb\n', {}, 'one, two'),
    (f'{TWO}\na\t \n', {}, 'line 2'),
    (f'{TWO}\tscore\na\tb\tnan\n', {}, 'line 2'),
    (f'{TWO}\na\tb\n', {'score_column': 'grade'}, "'grade'"),
    (f'{TWO}\na\tb\n', {'text_columns': ['a', 'b']}, "'a'"),
    ('a\n', {'text_columns': ['a']}, 'text_columns'),
]


@pytest.mark.parametrize('text, options, place', BAD)
def test_bad_files(tmp_path, text, options, place):
    (tmp_path / 'a.tsv').write_text(text)
    with pytest.raises(InputError) as caught:
        read_sentences(str(tmp_path / 'a.tsv'), **options)
    assert place in str(caught.value)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def rows(count, texts, seed=0):
    return np.random.RandomState(seed).randn(count, texts, 6).astype(np.float32)


@pytest.mark.parametrize('texts', [2, 3])
def test_in_batch_negatives(texts):
    vectors = rows(5, texts)
    units = unit(vectors)
    others = np.concatenate([units[:, place] for place in range(1, texts)])
    scores = 20 * units[:, 0] @ others.T
    wanted = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(5), np.arange(5)]
    loss = in_batch_negatives(mx.nd, mx.nd.array(vectors))
    assert loss.shape == (1,)
    np.testing.assert_allclose(loss.asscalar(), wanted.mean(), rtol=1e-4)


#: rows of a batch, and for each how many texts its match is compared with, itself included
EQUAL = [
    ([('a', 'b'), ('c', 'd'), ('e', 'f'), ('g', 'h')], [4, 4, 4, 4]),
    ([(text, 'h') for text in 'abcdefgg'], [1] * 8),
    ([('a', 'b'), ('a', 'c'), ('d', 'e')], [2, 2, 3]),
    ([('a', 'b'), ('b', 'c')], [2, 1]),
    ([('a', 'b', 'c'), ('d', 'e', 'b')], [3, 4]),
]


@pytest.mark.parametrize('examples, counts', EQUAL)
def test_equal_texts_are_no_negatives(tmp_path, examples, counts):
    tiny.save_bert(tmp_path / 'model', 'abcdefgh')
    options = {'loss': 'in_batch', 'scale': 1e-9, 'lr': 0, 'batch_size': len(counts)}
    trained = model_zoo.finetune(tmp_path / 'model', 'sentence-similarity', examples, **options)
    assert trained.history[0]['train_loss'] == pytest.approx(np.log(counts).mean(), abs=1e-5)


def test_cosine_error_and_triplet_loss():
    vectors, labels = rows(4, 3), np.array([0, 0.3, 0.6, 1], np.float32)
    units = unit(vectors)
    cosines = (units[:, :1] * units[:, 1:]).sum(axis=2)
    loss = cosine_error(mx.nd, mx.nd.array(vectors[:, :2]), mx.nd.array(labels))
    np.testing.assert_allclose(loss.asscalar(), ((cosines[:, 0] - labels) ** 2).mean(), rtol=1e-4)
    loss = triplet_loss(mx.nd, mx.nd.array(vectors), margin=0.3)
    wanted = np.maximum(cosines[:, 1] - cosines[:, 0] + 0.3, 0).mean()
    np.testing.assert_allclose(loss.asscalar(), wanted, rtol=1e-4)


class Loader:
    """One batch of all samples."""

    def __init__(self, count):
        self.num_samples = count

    def __iter__(self):
        yield Batch(mx.nd.zeros((self.num_samples, 1)), indices=np.arange(self.num_samples))


def evaluator(kind, examples, vectors, segment='dev'):
    rows = sentences.SentenceSet(kind, examples)
    task = sentences.SentenceTask(sentences.SentenceSettings(pooling='mean'))
    task.prepare({segment: rows})
    sets = {segment: Data(rows, (), Loader(len(examples)))}
    return task, Evaluator(task, lambda batch: mx.nd.array(vectors), sets)


def test_recalls():
    vectors = np.zeros((3, 3, 4), np.float32)
    vectors[0] = [[1, 0, 0, 0], [2, 0, 0, 0], [0, 1, 0, 0]]  # the match is the nearest
    vectors[1] = [[1, 0.1, 0, 0], [0, 3, 0, 0], [1, 0, 0, 0]]  # that of 0 and 2 is nearer
    vectors[2] = [[0, 1, 1, 0], [2, 0, 0, 0], [0, 0, 0, 1]]  # the same text as that of 0
    examples = [SentenceExample(texts) for texts in (('a', 'x'), ('b', 'y'), ('c', 'x'))]
    task, pairs = evaluator('pairs', examples, vectors[:, :2])
    score, report = pairs.evaluate()
    assert task.metric == 'recall_at_1' and score == report['dev']['recall_at_1']
    assert report['dev']['recall_at_1'] == pytest.approx(1 / 3)
    assert report['dev']['recall_at_5'] == 1
    _, triplets = evaluator('triplets', examples, vectors)
    assert triplets.evaluate()[1]['dev']['accuracy'] == pytest.approx(1 / 3)


def test_correlations_and_similarities(tmp_path):
    angles = np.array([0.1, 0.5, 1.0, 2.0])
    vectors = np.zeros((4, 2, 2), np.float32)
    vectors[:, 0, 0] = 3
    vectors[:, 1] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    examples = [SentenceExample(('a', 'b'), score) for score in (5, 4, 3, 1)]
    score, report = evaluator('scored', examples, vectors)[1].evaluate()
    assert score == report['dev']['spearman'] == pytest.approx(1)
    _, test = evaluator('scored', examples, vectors, 'test')
    assert test.predict(str(tmp_path)) == ['test_similarities.tsv']
    assert test.evaluate(segments=['test'])[1]['test']['spearman'] == pytest.approx(1)
    lines = (tmp_path / 'test_similarities.tsv').read_text().splitlines()
    assert lines[0] == 'index\tsimilarity' and len(lines) == 5
    assert float(lines[1].split('\t')[1]) == pytest.approx(np.cos(0.1), abs=1e-6)
    assert evaluator('scored', examples, vectors)[1].predict(str(tmp_path)) == []
