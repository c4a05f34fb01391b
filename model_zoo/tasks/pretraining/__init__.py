"""Data for BERT's pre-training: text to samples, samples to files, files to batches.

``Corpus`` -> ``SampleMaker`` -> ``create_shards`` -> ``ShardFiles`` -> ``PretrainingLoader`` -> the
model; without files in between: ``TextFiles`` -> ``PretrainingLoader``.
"""
