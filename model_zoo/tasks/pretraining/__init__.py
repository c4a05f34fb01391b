"""Data for BERT's pre-training: text to samples, samples to files, files to batches.

``Corpus`` -> ``SampleMaker`` -> ``create_shards`` -> ``ShardFiles`` -> ``PretrainingLoader`` -> the
model; without files in between: ``TextFiles`` -> ``PretrainingLoader``.
"""

from .create import PART_BYTES, ShardFacts, create_shards, plan_parts
from .files import (
    Samples,
    epoch_of,
    read_lengths,
    read_shard,
    vocab_checksum,
    write_epoch,
    write_shard,
    write_tfrecords,
)
from .loaders import PretrainingLoader, SyntheticLoader, make_batch
from .sources import ShardFiles, TextFiles
from .text import Corpus, SampleMaker, SampleOptions, describe_files, matching_files

__all__ = [
    'PART_BYTES',
    'Corpus',
    'PretrainingLoader',
    'SampleMaker',
    'SampleOptions',
    'Samples',
    'ShardFacts',
    'ShardFiles',
    'SyntheticLoader',
    'TextFiles',
    'create_shards',
    'describe_files',
    'epoch_of',
    'make_batch',
    'matching_files',
    'plan_parts',
    'read_lengths',
    'read_shard',
    'vocab_checksum',
    'write_epoch',
    'write_shard',
    'write_tfrecords',
]
