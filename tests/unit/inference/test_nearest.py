"""The nearest vectors: exactly those of a whole sort, in flat memory."""

import numpy as np
import pytest
from refusals import refuses

from model_zoo.inference import nearest, unit_vectors
from model_zoo.inference import vectors as module


def vectors(count, units=8, seed=0):
    return np.random.RandomState(seed).randn(count, units).astype(np.float32)


@pytest.mark.parametrize('count', [3, 1000])
def test_finds_what_a_whole_sort_finds(count, monkeypatch):
    monkeypatch.setattr(module, 'BLOCK', 300)
    monkeypatch.setattr(module, 'QUERIES', 4)
    queries, corpus = vectors(9), vectors(count, seed=1)
    numbers, cosines = nearest(queries, corpus, 5)
    wanted = unit_vectors(queries) @ unit_vectors(corpus).T
    order = np.argsort(-wanted, axis=1)[:, :5]
    np.testing.assert_array_equal(numbers, order)
    np.testing.assert_allclose(cosines, np.take_along_axis(wanted, order, 1), atol=1e-6)
    blocks = iter([corpus[:2], corpus[2:2], corpus[2:]])
    np.testing.assert_array_equal(nearest(queries, blocks, 5)[0], order)


def test_bad_arguments():
    with refuses(says=('k', '0')):
        nearest(vectors(1), vectors(2), 0)
