"""Perplexity."""

import math
from typing import NamedTuple

import mxnet as mx
import pytest

from model_zoo.tasks.language_model import evaluate_perplexity


class Losses(NamedTuple):
    """A batch that knows its losses."""

    values: list

    @property
    def count(self):
        return len(self.values)


BATCHES = [Losses([1.0, 2.0, 3.0]), Losses([6.0])]


def loss_sum(batch):
    return mx.nd.array([sum(batch.values)])


def test_perplexity_of_tokens_and_words():
    result = evaluate_perplexity(loss_sum, BATCHES, num_words=2)[1]['dev']
    assert result['loss'] == 3 and (result['tokens'], result['words']) == (4, 2)
    assert result['perplexity'] == pytest.approx(math.exp(3))
    assert result['word_perplexity'] == pytest.approx(math.exp(6))


def test_the_score_grows_as_the_loss_falls(caplog):
    caplog.set_level('INFO')
    score, report = evaluate_perplexity(loss_sum, BATCHES, 2, 'valid')
    assert score == -3 and report['valid']['tokens_per_second'] > 0
    assert 'valid: perplexity 20.086 per token (loss 3.0000), 403.429 per word' in caplog.text
    _, report = evaluate_perplexity(loss_sum, [Losses([800.0])], 1)
    assert report['dev']['perplexity'] == math.inf
