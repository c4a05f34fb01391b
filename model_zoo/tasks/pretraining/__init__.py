"""Data for BERT's pre-training: text to samples, samples to files, files to batches.

``Corpus`` -> ``SampleMaker`` -> ``create_shards`` -> ``PretrainingLoader`` -> the model; without
files in between: ``RawTextLoader``.
"""

from .batches import PretrainingBatch
from .create import PART_BYTES, ShardFacts, create_shards, plan_parts
from .documents import Corpus, describe_files, matching_files
from .instances import SampleMaker, SampleOptions
from .loaders import PretrainingLoader, RawTextLoader, SyntheticLoader
from .mapped import MappedLoader
from .shards import Samples, read_lengths, read_shard, vocab_checksum, write_shard

__all__ = [
    'PART_BYTES',
    'Corpus',
    'MappedLoader',
    'PretrainingBatch',
    'PretrainingLoader',
    'RawTextLoader',
    'SampleMaker',
    'SampleOptions',
    'Samples',
    'ShardFacts',
    'SyntheticLoader',
    'create_shards',
    'describe_files',
    'matching_files',
    'plan_parts',
    'read_lengths',
    'read_shard',
    'vocab_checksum',
    'write_shard',
]
