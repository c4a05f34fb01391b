"""The objective that a training minimizes, and a block's outputs over a data set."""

from collections.abc import Callable
from typing import NamedTuple

import mxnet as mx
import numpy as np


class Objective(NamedTuple):
    """A sum of terms. Each is the mean of a loss over things that are counted in advance.

    The batches of an update may come one after another (accumulation) or go to several workers
    (Horovod). Its gradient is the gradient of the means over all batches, so each part's mean is
    weighted with its share of the things. The shares are known only when all parts have been
    counted: hence the counts come first, and from the host.

    Parameters
    ----------
    terms : callable
        ``terms(batch) -> list of NDArray``, each of shape (1,): the mean of each term over this
        batch, called in ``autograd.record()``. With `accuracies`, one more array follows for each
        term: its number of right predictions.
    counts : callable
        ``counts(batch) -> tuple of numbers``: the number of things of each term.
    tokens : callable, optional
        ``tokens(batch) -> int``, for logs.
    """

    terms: Callable
    counts: Callable
    names: tuple[str, ...] = ('loss',)
    accuracies: bool = False
    tokens: Callable | None = None
    unit: str = 'samples'

    @property
    def num_sums(self):
        """Number of arrays that `terms` returns."""
        return len(self.names) * (2 if self.accuracies else 1)

    def named(self, sums, counts):
        """Return the means of the terms' losses and accuracies by name, from their sums."""
        kinds = ('loss', 'acc')[: 1 + self.accuracies]
        names = [f'{name}_{kind}' for kind in kinds for name in self.names]
        means = np.reshape(sums, (-1, len(counts))) / np.maximum(counts, 1)
        return dict(zip(names, means.ravel().tolist()))

    def count(self, batches):
        """Number of things of each term, batch by batch: (batches, terms); None has none."""
        counts = np.zeros((len(batches), len(self.names)))
        for row, batch in zip(counts, batches):
            row[:] = 0 if batch is None else self.counts(batch)
        return counts

    def backward(self, batches, counts, totals, scale=1.0):
        """Compute the gradients of some batches' share of the objective."""
        sums = []
        for batch, batch_counts in zip(batches, counts):
            if batch is None:
                continue
            with mx.autograd.record():
                arrays = [array.reshape((1,)) for array in self.terms(batch)]
                # their share of the means over all parts: a lone part's is 1, and changes nothing
                weights = scale * batch_counts / np.maximum(totals, 1)
                shares = zip(arrays, weights.tolist())
                head = mx.nd.add_n(*[term if w == 1 else term * w for term, w in shares])
            head.backward()
            factors = [*batch_counts.tolist(), *[1.0] * (len(arrays) - len(batch_counts))]
            arrays = [each.detach().astype('float32').as_in_context(mx.cpu()) for each in arrays]
            sums.append(mx.nd.concat(*[n * each for n, each in zip(factors, arrays)], dim=0))
        return mx.nd.add_n(*sums) if sums else mx.nd.zeros(self.num_sums)


def mean_over_examples(loss):
    """The objective of most tasks, of ``loss(batch)``, (1,), the mean over a batch's examples."""
    return Objective(lambda batch: [loss(batch)], lambda batch: (len(batch.indices),))


def predict(forward, loader, guard=None):
    """Run `forward` over the batches of a loader.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, ...), the same for all but the first axis.
    loader : model_zoo.batches.SampleLoader
        Its batches' `indices` say where the rows belong.
    guard : InterruptGuard, optional
        Asked before each batch.

    Returns
    -------
    numpy.ndarray, shape (num_samples, ...)
    """
    result = None
    for batch, rows in outputs_of(forward, loader, guard):
        rows = rows.asnumpy()
        if result is None:
            result = np.zeros((loader.num_samples, *rows.shape[1:]), rows.dtype)
        result[batch.indices] = rows
    return result


def outputs_of(forward, batches, guard=None):
    """Yield each batch with its outputs, while the device works on the next batch."""
    previous = None
    for batch in batches:
        if guard is not None:
            guard.check()
        current = batch, forward(batch)
        if previous is not None:
            yield previous
        previous = current
    if previous is not None:
        yield previous
