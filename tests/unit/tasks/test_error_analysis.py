"""What a model gets wrong: confusion, worst mistakes, and the guess that it is compared with."""

import math

import numpy as np
import pytest

from model_zoo.tasks.scores import cross_entropies, error_analysis

TEXTS = [f' text\n{number} ' for number in range(5)]
LABELS, PREDICTIONS = ['a', 'a', 'b', 'c', 'b'], ['a', 'b', 'a', 'c', 'a']
LOSSES = [0.1, 0.9, 3.0, 9.0, 0.7]


def test_confusion_and_the_worst_mistakes_first():
    found = error_analysis(TEXTS, LABELS, PREDICTIONS, LOSSES, {'accuracy': 0.4}, 'a', 'abc')
    assert found['confusion'] == [[1, 1, 0], [2, 0, 0], [0, 0, 1]]
    assert [each['text'] for each in found['mistakes']] == ['text 2', 'text 1', 'text 4']
    first = {'text': 'text 2', 'label': 'b', 'prediction': 'a', 'loss': 3.0}
    assert found['mistakes'][0] == first and found['examples'] == 5
    assert error_analysis(TEXTS, LABELS, PREDICTIONS, LOSSES)['confusion'] is None


def test_texts_are_one_short_line():
    def shown(text):
        return error_analysis([text], ['a'], ['b'], [1.0])['mistakes'][0]['text']

    assert shown(' a\n\tb ') == 'a b' and shown('x' * 400) == 'x' * 299 + '…'
    shown('\ud800').encode('utf-8')


def test_losses_of_the_examples():
    outputs, labels = np.array([[2.0, 0.0], [0.0, 1.0]], np.float32), np.array([0, 0])
    expected = [math.log(1 + math.exp(-2)), math.log(1 + math.exp(1))]
    assert cross_entropies(labels, outputs) == pytest.approx(expected)
