"""Pairs, triplets and scored pairs: reading, losses and scores."""

import math

import mxnet as mx
import numpy as np
import pytest
from json_files import cases
from refusals import refuses

from model_zoo.app.evaluator import Evaluator
from model_zoo.batches import Batch
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


BAD = cases('sentences')['BAD']


@pytest.mark.parametrize('text, options, place', BAD)
def test_bad_files(tmp_path, text, options, place):
    (tmp_path / 'a.tsv').write_text(text)
    with refuses(says=place):
        read_sentences(str(tmp_path / 'a.tsv'), **options)


# vectors in the plane of the first two axes, of several lengths: of 0.6 and 0.8 with each axis
X, Y, NEAR_Y, NEAR_X = np.array([[1, 0, 0], [0, 2, 0], [1.5, 2, 0], [8, 6, 0]], np.float32)
Z = np.array([0, 0, 3], np.float32)


def loss_of(loss, rows, *more, **options):
    found = loss(mx.nd, mx.nd.array(rows), *more, **options)
    assert found.shape == (1,)
    return found.asscalar()


def test_in_batch_negatives():
    """Each text has the scores 12 and 16 with its match and with the other's, and the reverse."""
    e = math.e
    for rows, best in (([(X, NEAR_Y), (Y, NEAR_X)], False), ([(X, NEAR_X), (Y, NEAR_Y)], True)):
        expected = math.log1p(e**-4) + 4 * (not best)
        assert loss_of(in_batch_negatives, rows) == pytest.approx(expected, rel=1e-4)
    # the third texts are negatives of all: of the scores 20 and 0, and 0 and 0
    found = loss_of(in_batch_negatives, [(X, NEAR_Y, X), (Y, NEAR_X, Z)])
    first, second = math.log(e**12 + e**16 + e**20 + 1) - 12, math.log(e**12 + e**16 + 2) - 12
    assert found == pytest.approx((first + second) / 2, rel=1e-4)
    assert loss_of(in_batch_negatives, [(X, X)]) == pytest.approx(0, abs=1e-5)


def test_cosine_error_and_triplet_loss():
    labels = mx.nd.array([1, 0, 0.5])
    found = loss_of(cosine_error, [(X, NEAR_Y), (X, -X), (Y, Z)], labels)
    assert found == pytest.approx((0.4**2 + 1 + 0.5**2) / 3, rel=1e-4)
    # 0.8 - 0.6 + margin, and what is further away than the margin counts nothing
    for margin, expected in ((0.3, 0.25), (1.5, (1.7 + 0.5) / 2)):
        found = loss_of(triplet_loss, [(X, NEAR_Y, NEAR_X), (Y, Y, Z)], margin=margin)
        assert found == pytest.approx(expected, rel=1e-4)


class Loader:
    """One batch of all samples."""

    def __init__(self, count):
        self.num_samples = count

    def __iter__(self):
        yield Batch(mx.nd.zeros((self.num_samples, 1)), indices=np.arange(self.num_samples))


def evaluator(kind, examples, vectors):
    rows = sentences.SentenceSet(kind, examples)
    task = sentences.SentenceTask(sentences.SentenceSettings(pooling='mean'))
    task.prepare({'dev': rows})
    sets = {'dev': Data(rows, (), Loader(len(examples)))}
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
