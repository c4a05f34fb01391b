"""What a training minimizes: a sum of means."""

from typing import Callable, NamedTuple, Optional, Tuple

__all__ = ['Objective', 'mean_over_examples']


class Objective(NamedTuple):
    """A sum of terms, each the mean of a loss over things that are counted before it is computed.

    An update's gradient is that of the means over all that its batches hold together, in whatever
    parts they come: one after another (accumulation), or to several workers (Horovod). So each
    part's mean has to be weighted with its share of the things, which is known only when all parts
    have been counted; hence the counts come first, and from the host.

    Parameters
    ----------
    terms : callable
        ``terms(batch) -> list of NDArray``, each of shape (1,): the mean of each term over this
        batch, called in ``autograd.record()``. With `accuracies` as many arrays follow: how many
        of the things that a term is the mean over were predicted right.
    counts : callable
        ``counts(batch) -> tuple of numbers``: over how many things each term is the mean.
    names : tuple of str
        Of the terms. With more than one, records have a loss (and an accuracy) for each.
    accuracies : bool
    tokens : callable, optional
        ``tokens(batch) -> int``, for logs.
    unit : str
        What the last term is the mean over, for logs and records: ``words_per_second``.
    """

    terms: Callable
    counts: Callable
    names: Tuple[str, ...] = ('loss',)
    accuracies: bool = False
    tokens: Optional[Callable] = None
    unit: str = 'samples'

    @property
    def num_sums(self):
        """How many arrays `terms` returns."""
        return len(self.names) * (2 if self.accuracies else 1)


def mean_over_examples(loss):
    """The objective of most tasks.

    Parameters
    ----------
    loss : callable
        ``loss(batch) -> NDArray`` of shape (1,), the mean over the ``len(batch.indices)`` examples
        of a batch.

    Returns
    -------
    Objective
    """
    return Objective(lambda batch: [loss(batch)], lambda batch: (len(batch.indices),))
