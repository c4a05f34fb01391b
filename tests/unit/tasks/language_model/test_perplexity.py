"""Perplexity."""

import math
from types import SimpleNamespace

import mxnet as mx

from model_zoo.tasks.language_model import evaluate_perplexity


def test_a_perplexity_beyond_floats():
    batches = [SimpleNamespace(count=1)]
    _, report = evaluate_perplexity(lambda batch: mx.nd.array([800.0]), batches, 1)
    assert report['dev']['perplexity'] == math.inf
