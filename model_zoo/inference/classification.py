"""Labels of texts: classes, numbers, and classes that are named in the call."""

import numpy as np

from ..errors import InputError
from ..tasks.evaluate import softmax
from .pipeline import Pipeline, Row

__all__ = ['NextSentence', 'TextClassification', 'TextPairs', 'ZeroShotClassification']

#: what turns a classifier's outputs into scores
FUNCTIONS = ('softmax', 'sigmoid', 'none')


def sigmoid(outputs):
    """Probabilities, float64, of independent scores."""
    from scipy.special import expit

    return expit(outputs.astype(np.float64))


def count_of(name, value):
    """`value`, an int of at least 1, or None for all."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise InputError(f'{name} is {value!r}; it must be an integer of at least 1, or None for all')


class TextPairs(Pipeline):
    """A pipeline whose item is a str, a pair ``(text, text_pair)``, or a dict of these names."""

    def _is_item(self, inputs):
        is_pair = isinstance(inputs, tuple) and len(inputs) == 2
        return super()._is_item(inputs) or (is_pair and all(isinstance(i, str) for i in inputs))

    def _pair(self, item):
        """The text and its pair, or None."""
        if isinstance(item, dict):
            unknown = set(item) - {'text', 'text_pair'}
            if unknown or 'text' not in item:
                raise InputError(
                    f'{self.task}: a dict has the keys "text" and "text_pair", not '
                    f'{", ".join(map(repr, item))}'
                )
            item = item['text'], item.get('text_pair')
        elif not isinstance(item, (tuple, list)):
            item = item, None
        if len(item) != 2:
            raise InputError(f'{self.task}: a pair has two texts, not {len(item)}: {item!r:.80}')
        text, pair = item
        return self._text(text), None if pair is None else self._text(pair)

    def _encode(self, pairs):
        """Rows of texts and pairs."""
        rows = [None] * len(pairs)
        for has_pair in (False, True):
            places = [n for n, (_, pair) in enumerate(pairs) if (pair is not None) is has_pair]
            if places:
                texts, others = zip(*(pairs[place] for place in places))
                encoded = self.tokenizer.encode_batch(
                    list(texts), list(others) if has_pair else None, self.max_length, pad=False
                )
                for place, row in zip(places, encoded.rows):
                    rows[place] = Row.of(row)
        return rows

    def _rows(self, items, options):
        return [[row] for row in self._encode([self._pair(item) for item in items])]


class TextClassification(TextPairs):
    """Labels of texts or of pairs of texts.

    ``classifier(text)`` is a list with one dict of ``label`` and ``score``, ``classifier(texts)`` a
    dict for each text, as in transformers. With `top_k` there is a list of dicts for each text, the
    best first; None stands for all labels. A text that is longer than the model takes is cut.

    `function_to_apply` is 'softmax', 'sigmoid' or 'none'. By default it is softmax for several
    labels; for one label, sigmoid, or nothing if the model is a regression.
    """

    task = 'text-classification'
    block_tasks = ('classification',)

    def _options(self, top_k=1, function_to_apply=None, return_all_scores=False):
        if return_all_scores:  # the older name
            top_k = None
        function = function_to_apply or self._default_function()
        if function not in FUNCTIONS:
            raise InputError(
                f'function_to_apply is {function!r}; it must be one of: {", ".join(FUNCTIONS)}'
            )
        return {'top_k': count_of('top_k', top_k), 'function': function}

    def __call__(self, inputs, **options):
        result = super().__call__(inputs, **options)
        if {*options} & {'top_k', 'return_all_scores'}:
            return result
        if self._is_item(inputs):  # transformers has a list for one str only
            return result if isinstance(inputs, str) else result[0]
        if isinstance(result, list):
            return [each[0] for each in result]
        return (each[0] for each in result)

    def _default_function(self):
        config = self.block.config
        kind = config.extras.get('problem_type')
        if kind == 'regression':
            return 'none'
        is_single = len(self.labels) == 1
        return 'sigmoid' if is_single or kind == 'multi_label_classification' else 'softmax'

    def _finish(self, item, rows, outputs, options):
        ((scores,),) = outputs
        if options['function'] != 'none':
            scores = {'softmax': softmax, 'sigmoid': sigmoid}[options['function']](scores)
        order = np.argsort(-scores, kind='stable')[: options['top_k']]
        return [{'label': self.labels[place], 'score': float(scores[place])} for place in order]


class NextSentence(TextPairs):
    """Whether the second text of a pair follows the first: a dict of ``label`` and ``score``.

    The labels are IsNext and NotNext, as in BERT's paper. An item is a pair, or a dict of ``text``
    and ``text_pair``.
    """

    task = 'next-sentence'
    block_tasks = ('next_sentence',)

    def _pair(self, item):
        text, pair = super()._pair(item)
        if pair is None:
            raise InputError(f'{self.task} takes pairs of texts, not {item!r:.80}')
        return text, pair

    def _finish(self, item, rows, outputs, options):
        scores = softmax(outputs[0][0])
        best = int(scores.argmax())
        return {'label': ('IsNext', 'NotNext')[best], 'score': float(scores[best])}


class ZeroShotClassification(TextPairs):
    """Labels of texts that are named in the call, by a model for natural language inference.

    ``classifier(text, candidate_labels=['politics', 'sport'])`` is a dict of ``sequence``,
    ``labels`` and ``scores``, the best first. A label is put into `hypothesis_template`, and its
    score is how far the text entails that sentence. With `multi_label` each label has a probability
    of its own; otherwise they add up to 1.

    One of the model's labels must begin with "entail".
    """

    task = 'zero-shot-classification'
    block_tasks = ('classification',)

    def _options(
        self, candidate_labels=None, hypothesis_template='This example is {}.', multi_label=False
    ):
        if isinstance(candidate_labels, str):
            candidate_labels = [each.strip() for each in candidate_labels.split(',')]
        names = [each for each in candidate_labels or () if each]
        if not names:
            raise InputError(f'{self.task}: candidate_labels is empty; name at least one label')
        if hypothesis_template.format('a') == hypothesis_template:
            raise InputError(
                f'hypothesis_template is {hypothesis_template!r}; it must have {{}} where the '
                'label goes'
            )
        if self.problem:
            raise InputError(self.problem)
        hypotheses = [hypothesis_template.format(name) for name in names]
        return {
            'labels': names,
            'hypotheses': hypotheses,
            'multi_label': multi_label or len(names) == 1,
            'entailment': self._entailed()[0],
        }

    @property
    def problem(self):
        if not self._entailed():
            return (
                f'{self.task} needs a model for natural language inference, with a label '
                f'"entailment"; this one has {", ".join(self.labels)}'
            )
        return None

    def _entailed(self):
        return [n for n, name in enumerate(self.labels) if name.lower().startswith('entail')]

    def _is_item(self, inputs):
        return isinstance(inputs, (str, bytes))

    def _rows(self, items, options):
        hypotheses = options['hypotheses']
        pairs = [(self._text(item), each) for item in items for each in hypotheses]
        rows = self._encode(pairs)
        size = len(hypotheses)
        return [rows[first : first + size] for first in range(0, len(rows), size)]

    def _finish(self, item, rows, outputs, options):
        logits = np.stack([each for (each,) in outputs])  # (labels, classes)
        entailment = options['entailment']
        if options['multi_label']:
            contradiction = -1 if entailment == 0 else 0
            scores = softmax(logits[:, [contradiction, entailment]])[:, 1]
        else:
            scores = softmax(logits[:, entailment])
        order = scores.argsort()[::-1]
        return {
            'sequence': item,
            'labels': [options['labels'][place] for place in order],
            'scores': scores[order].tolist(),
        }
