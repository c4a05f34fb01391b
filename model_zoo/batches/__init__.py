"""Samples to batches: one type of batch, one family of loaders, sampling, padding and windows."""

from .batch import Batch, Sample, make_batch
from .loaders import BucketedLoader, Loader, SampleLoader

__all__ = ['Batch', 'BucketedLoader', 'Loader', 'Sample', 'SampleLoader', 'make_batch']
