"""Data for BERT's pre-training: text to samples, samples to files, files to batches.

``Corpus`` -> ``SampleMaker`` -> ``create_shards`` -> ``ShardFiles`` -> ``PretrainingLoader`` -> the
model; without files in between: ``TextFiles`` -> ``PretrainingLoader``.
"""

from .create import PART_BYTES, ShardFacts, create_shards, plan_parts
from .documents import Corpus, describe_files, matching_files
from .epochs import EpochFiles
from .instances import SampleMaker, SampleOptions
from .loaders import NUM_BUCKETS, PretrainingLoader, make_batch
from .pairs import PairLoader
from .pregenerated import epoch_of, write_epoch
from .samples import Samples
from .shards import read_lengths, read_shard, vocab_checksum, write_shard
from .sources import MappedShards, ShardFiles, Source, TextFiles
from .synthetic import SyntheticLoader
from .tfrecords import write_tfrecords

__all__ = [
    'NUM_BUCKETS',
    'PART_BYTES',
    'Corpus',
    'EpochFiles',
    'MappedShards',
    'PairLoader',
    'PretrainingLoader',
    'SampleMaker',
    'SampleOptions',
    'Samples',
    'ShardFacts',
    'ShardFiles',
    'Source',
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
