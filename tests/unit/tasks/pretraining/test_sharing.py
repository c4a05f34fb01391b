"""Several workers each read their own parts, and share the batches that one worker makes."""

import pytest
from batches_of_samples import Together, assert_same

from model_zoo.tasks.pretraining.files import read_shard, write_epoch
from model_zoo.tasks.pretraining.loaders import PretrainingLoader
from model_zoo.tasks.pretraining.sources import ShardFiles
from model_zoo.tasks.pretraining.text import SampleOptions

OPTIONS = SampleOptions(32, 5, 1, short_seq_prob=0.5)
FILES = 7
KINDS = {
    'plain': ({}, 2),
    'buckets': ({'num_buckets': 3, 'accumulate': 3}, 3),
    'tokens': ({'num_buckets': 3, 'use_avg_len': True, 'batch_size': 150}, 5),
    'in order': ({'shuffle': False, 'circle_length': 1}, 2),
    'all at once': ({'circle_length': 9, 'batch_size': 3}, 3),
}


def assert_shared(parts, whole):
    """Worker r of n has batches r, r + n, ... of a worker that makes n times as many."""
    for rank, part in enumerate(parts):
        expected = whole[rank :: len(parts)]
        assert len(part) == len(expected) > 0
        for mine, other in zip(part, expected):
            assert (mine is None) == (other is None)
            if mine is not None:
                assert_same(mine, other)


@pytest.mark.parametrize(('options', 'size'), KINDS.values(), ids=KINDS)
def test_workers_share_the_batches_of_one(options, size, shards, tokenizer):
    def batches(worker, start, **more):
        source = ShardFiles(f'{shards}/*.npz', tokenizer.vocab, workers=worker)
        given = {'batch_size': 4, 'seed': 5, **options, **more}
        return list(PretrainingLoader(source, workers=worker, **given).epoch(2, start))

    whole = batches(None, 0, accumulate=size * options.get('accumulate', 1))
    assert sum(batch is None for batch in whole) < size * options.get('accumulate', 1) * 3
    for start in (0, 3):
        parts = Together(size).run(lambda worker, start=start: batches(worker, start))
        assert_shared(parts, whole[start * size :])


def test_a_file_for_each_epoch(shards, tokenizer, tmp_path):
    for number in range(3):
        samples = read_shard(str(shards / f'part-{number:03d}.npz'))
        write_epoch(str(tmp_path / f'epoch_{number}.json'), [samples], tokenizer.vocab, 32)

    def batches(worker, **more):
        files = f'{tmp_path}/epoch_?.json'
        source = ShardFiles(files, tokenizer.vocab, workers=worker, one_per_epoch=True)
        loader = PretrainingLoader(source, 4, workers=worker, **more)
        return [batch for epoch in range(4) for batch in loader.epoch(epoch)]

    assert_shared(Together(2).run(batches), batches(None, accumulate=2))
