"""Which samples make a batch: similar lengths, in an order that seed and epoch determine."""

import copy
import warnings

import gluonnlp as nlp
import numpy as np

#: the fixed cost of a batch, in tokens: calls, and products of few rows
BATCH_COST = 64


def random_state(seed, epoch):
    """NumPy's generator of an epoch."""
    return np.random.RandomState(np.random.SeedSequence([seed % 2**32, epoch]).generate_state(1)[0])


def longest_first(lengths, batch_size, max_tokens=None, batch_cost=BATCH_COST):
    """Return the batches of all samples by their lengths.

    With `max_tokens` they are those whose tokens are fewest, with `batch_cost` of each counted in.
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind='stable')
    if max_tokens is None:
        return [order[at : at + batch_size] for at in range(0, len(order), batch_size)]
    count = len(order)
    costs, sizes = np.zeros(count + 1), np.zeros(count, dtype=np.int64)
    # the best way to cut the samples behind each one is found from the end
    for start in range(count - 1, -1, -1):
        longest = max(1, lengths[order[start]])
        most = max(1, min(batch_size, max_tokens // longest, count - start))
        choices = batch_cost + longest * np.arange(1, most + 1)
        choices = choices + costs[start + 1 : start + most + 1]
        sizes[start] = 1 + choices.argmin()
        costs[start] = choices[sizes[start] - 1]
    batches, start = [], 0
    while start < count:
        batches.append(order[start : start + sizes[start]])
        start += sizes[start]
    return batches


def bucket_batches(lengths, batch_size, num_buckets, max_tokens=None):
    """Make a sampler of random batches from buckets: GluonNLP's `FixedBucketSampler`."""
    # four batches a bucket, or more
    most, ratio, scheme = len(lengths) // (4 * batch_size), 0.0, nlp.data.ConstWidthBucket()
    if max_tokens is not None:
        # narrow ones of short lengths, where a token more or less matters; of a batch, or more
        most, scheme = int(sum(lengths) / max_tokens), nlp.data.ExpWidthBucket()
        # the sampler has ratio x (longest of all / longest of the bucket) x batch_size samples
        longest = max(lengths)
        batch_size = max(1, max_tokens // longest)
        ratio = max_tokens / (longest * batch_size)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about empty buckets, which are left out
        options = {'ratio': ratio, 'shuffle': True, 'bucket_scheme': scheme}
        options['num_buckets'] = min(num_buckets, max(1, most))
        sampler = nlp.data.FixedBucketSampler(lengths, batch_size, **options)

    def draw(random):
        # It shuffles in place, by NumPy's global generator: the generator's state is set meanwhile,
        # and a copy of the sampler shuffled, so that an epoch doesn't depend on earlier ones.
        state = np.random.get_state()
        np.random.set_state(random.get_state())
        try:
            batches = list(copy.deepcopy(sampler))
        finally:
            np.random.set_state(state)
        return [np.asarray(indices, dtype=np.int64) for indices in batches]

    return draw


class Buckets:
    """Ranges of lengths of one width, and the batch size of each."""

    def __init__(self, shortest, longest, batch_size, num_buckets):
        keys = [longest]
        if num_buckets > 1 and shortest < longest:
            keys = nlp.data.ConstWidthBucket()(longest, shortest, num_buckets)
        self.keys = np.unique(keys)  # the longest length of each
        self.sizes = np.full(len(self.keys), batch_size)

    def of(self, lengths):
        """Return the number of each length's bucket."""
        return np.searchsorted(self.keys, lengths)

    def count_tokens(self, histogram=None):
        """Count the batch size in tokens, as GluonNLP's ``use_average_length`` does."""
        usual = self.keys.astype(float)
        if histogram is not None:
            lengths = np.arange(len(histogram))
            bucket_of = self.of(lengths)
            for bucket in range(len(self.keys)):
                count = np.where(bucket_of == bucket, histogram, 0)
                if count.any():
                    mean = np.average(lengths, weights=count)
                    variance = np.average((lengths - mean) ** 2, weights=count)
                    usual[bucket] = mean + np.sqrt(variance)
        self.sizes = np.maximum(1, (self.sizes / usual).astype(int))

    def deal(self, lengths, order, parts, is_last):
        """Cut samples into batches."""
        bucket_of, batches, left = self.of(lengths[order]), [], []
        for bucket, size in enumerate(self.sizes * parts):
            members = np.flatnonzero(bucket_of == bucket)
            full = len(members) if is_last else len(members) // size * size
            batches += [order[members[at : min(at + size, full)]] for at in range(0, full, size)]
            left.append(members[full:])
        return batches, order[np.sort(np.concatenate(left))]
