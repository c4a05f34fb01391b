"""The best of several endings of a text."""

import numpy as np

from ..errors import InputError
from ..tasks.evaluate import softmax
from .classification import TextPairs

__all__ = ['MultipleChoice']


class MultipleChoice(TextPairs):
    """The best of several endings of a text: a dict of ``label``, ``score`` and ``scores``.

    An item is a dict of ``text``, a str, and ``choices``, a list of at least two str. ``label`` is
    the place of the best choice, and ``scores`` the probabilities of all, in the order given.
    """

    task = 'multiple-choice'
    block_tasks = ('multiple_choice',)

    def _rows(self, items, options):
        pairs = [self._choices(item) for item in items]
        rows = iter(self._encode([pair for of_item in pairs for pair in of_item]))
        return [[next(rows) for _ in of_item] for of_item in pairs]

    def _choices(self, item):
        if not isinstance(item, dict) or set(item) != {'text', 'choices'}:
            raise InputError(f'{self.task} takes dicts of "text" and "choices", not {item!r:.80}')
        choices = item['choices']
        if not isinstance(choices, (list, tuple)) or len(choices) < 2:
            raise InputError(f'{self.task}: choices must be a list of at least two str')
        text = self._text(item['text'])
        return [(text, self._text(choice)) for choice in choices]

    def _finish(self, item, rows, outputs, options):
        scores = softmax(np.array([each.reshape(()) for (each,) in outputs]))
        best = int(scores.argmax())
        return {'label': best, 'score': float(scores[best]), 'scores': scores.tolist()}
