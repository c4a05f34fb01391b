"""What a model gets wrong: confusion, worst mistakes, and the guess that it is compared with."""

import math

import numpy as np
import pytest

from model_zoo.tasks.scores import Examination, cross_entropies, squeeze


@pytest.fixture
def examination():
    return Examination(
        'dev',
        [f'text {number}' for number in range(5)],
        ['a', 'a', 'b', 'c', 'b'],
        ['a', 'b', 'a', 'c', 'a'],
        [0.1, 0.9, 3.0, 9.0, 0.7],
        {'accuracy': 0.4},
        'a',
        ('a', 'b', 'c'),
    )


def test_confusion_has_a_row_for_each_label(examination):
    assert examination.confusion() == [[1, 1, 0], [2, 0, 0], [0, 0, 1]]
    examination.classes = None
    assert examination.confusion() is None


def test_worst_mistakes_come_first_and_right_answers_never(examination):
    assert [each['text'] for each in examination.worst()] == ['text 2', 'text 1', 'text 4']
    assert examination.worst(1) == [
        {'text': 'text 2', 'label': 'b', 'prediction': 'a', 'loss': 3.0}
    ]
    assert examination.to_dict()['examples'] == 5


def test_texts_are_one_short_line():
    assert squeeze(' a\n\tb ') == 'a b'
    assert squeeze('x' * 400, 10) == 'x' * 9 + '…'
    squeeze('\ud800').encode('utf-8')


def test_losses_of_the_examples():
    outputs, labels = np.array([[2.0, 0.0], [0.0, 1.0]], np.float32), np.array([0, 0])
    expected = [math.log(1 + math.exp(-2)), math.log(1 + math.exp(1))]
    np.testing.assert_allclose(cross_entropies(labels, outputs), expected)
