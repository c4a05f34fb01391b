"""Batches of samples for pre-training, and workers that share them."""

import concurrent.futures
import threading
import types

import numpy as np


def arrays(batch):
    """In the order in which the model and its losses take them."""
    return [
        *batch.inputs,
        batch.masked_positions,
        batch.masked_ids,
        batch.masked_weights,
        batch.next_sentence_labels,
    ]


def assert_same(one, other):
    assert (one.indices == other.indices).all()
    assert (one.num_masked, one.num_tokens) == (other.num_masked, other.num_tokens)
    for mine, want in zip(arrays(one), arrays(other)):
        assert mine.shape == want.shape and mine.dtype == want.dtype
        assert (mine.asnumpy() == want.asnumpy()).all()


class Together:
    """Workers that are threads of this process."""

    def __init__(self, size):
        self.size, self.ints = size, [0] * size  # how many numbers each has received
        self._barrier, self._given = threading.Barrier(size, timeout=300), [None] * size

    def run(self, work):
        """``work(worker)`` of each, or its error."""
        with concurrent.futures.ThreadPoolExecutor(self.size) as pool:
            done = [pool.submit(work, self._worker(rank)) for rank in range(self.size)]
        return [each.exception() or each.result() for each in done]

    def _worker(self, rank):
        def exchange(parts):
            assert len(parts) == self.size
            assert all(each.dtype == np.int32 and each.ndim == 1 for each in parts)
            got = [each[rank].copy() for each in self._all(rank, parts)]
            self.ints[rank] += sum(map(len, got))
            return got

        def add(values):
            return np.sum(self._all(rank, values), axis=0)

        return types.SimpleNamespace(rank=rank, size=self.size, exchange=exchange, sum=add)

    def _all(self, rank, given):
        self._given[rank] = given
        self._barrier.wait()
        found = list(self._given)
        self._barrier.wait()
        return found
