"""Pipelines that score texts: classification, zero-shot classification, choices, reranking."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

import numpy as np
from pydantic import Field

from ..errors import InputError
from ..pretrained.sentence_modules import SentenceModules, activation, modules_of
from ..util.arrays import sigmoid, softmax
from ..util.fields import AnyText, Count, Fields, Flag, Text
from .pipeline_base import Pipeline, PipelineOptions

__all__ = [
    'MultipleChoice',
    'NextSentence',
    'Reranking',
    'TextClassification',
    'TextPairs',
    'ZeroShotClassification',
]


#: least probability of a label that a text has, where it may have several
LIKELY = 0.5
#: options with which a text has a list of labels
_SEVERAL = {'top_k', 'return_all_scores'}


#: name -> a function from a classifier's outputs to scores, (..., labels)
FUNCTIONS = {'softmax': softmax, 'sigmoid': sigmoid, 'none': lambda outputs: outputs}


def usual_function(count, problem_type=None):
    """Return the name of the function of a classifier's outputs, of which there are `count`."""
    if problem_type == 'regression':
        return 'none'
    return 'softmax' if count > 1 and problem_type != 'multi_label_classification' else 'sigmoid'


def best_labels(scores, top_k=1, least=-np.inf):
    """Return the numbers of a text's labels with scores of at least `least`, the best first."""
    order = np.argsort(-scores, kind='stable')[:top_k].tolist()
    return [number for number in order if scores[number] >= least]


class TextPairs(Pipeline):
    """A pipeline whose item is a str, a pair ``(text, text_pair)``, or a dict of these names."""

    class Item(Fields):
        text: AnyText
        text_pair: AnyText | None = None

    has_pairs = True

    def _pairs(self, item, options):
        if isinstance(item, str):
            return [(item, None)]
        if isinstance(item, (tuple, list)) and len(item) == 2:
            item = dict(zip(('text', 'text_pair'), item))
        item = TextPairs.Item.read(item)
        return [(item.text, item.text_pair)]


class TextClassification(TextPairs):
    """Labels of texts or of pairs of texts.

    As in transformers, ``classifier(text)`` is a list with one dict of ``label`` and ``score``, and
    ``classifier(texts)`` has a dict for each text. With `top_k` there is a list of dicts for each
    text, best first; None means all labels. A text that exceeds the model's maximum length is
    truncated.

    `function_to_apply` is 'softmax', 'sigmoid' or 'none'. By default it is softmax for several
    labels; for one label, sigmoid, or nothing if the model is a regression. A model with several
    labels per text (`is_multi_label`) has a sigmoid for each; without `top_k` there is a list of
    the labels of at least `LIKELY` for each text. A regression's `score` is its number, and its
    `label` the name of the column that it was trained on.
    """

    task = 'text-classification'
    block_tasks = ('classification',)

    if TYPE_CHECKING:

        @overload
        def __call__(self, inputs: str, **options: Any) -> list[dict[str, Any]]: ...
        @overload
        def __call__(self, inputs: list[Any], **options: Any) -> list[Any]: ...
        @overload
        def __call__(self, inputs: Any, **options: Any) -> Any: ...

    def __init__(self, opened, **options):
        super().__init__(opened, **options)
        problem = self.block.config.extras.get('problem_type')
        #: whether a text may have several labels, or none
        self.is_multi_label = problem == 'multi_label_classification'
        self.is_regression = problem == 'regression'
        self._function = usual_function(len(self.labels), problem)

    class Options(PipelineOptions):
        top_k: Count | None = 1
        function_to_apply: Literal['softmax', 'sigmoid', 'none'] | None = None
        return_all_scores: Flag = False

    def _options(self, given):
        top_k, least = None if given.return_all_scores else given.top_k, -np.inf
        if self.is_multi_label and not _SEVERAL & given.model_fields_set:
            top_k, least = None, LIKELY
        function = FUNCTIONS[given.function_to_apply or self._function]
        return {'top_k': top_k, 'function': function, 'least': least}

    def _shown(self, result, item, options):
        is_usual = _SEVERAL & self._defaults.keys()
        if _SEVERAL & options.keys() or (self.is_multi_label and not is_usual):
            return result
        result = result if is_usual else result[0]
        return [result] if isinstance(item, str) else result  # as transformers has it

    def _finish(self, item, rows, outputs, options):
        ((scores,),) = outputs
        scores = options['function'](scores)
        best = best_labels(scores, options['top_k'], options['least'])
        return [{'label': self.labels[index], 'score': float(scores[index])} for index in best]


class NextSentence(TextPairs):
    """Whether the second text of a pair follows the first: a dict of ``label`` and ``score``.

    The labels are IsNext and NotNext, as in BERT's paper. An item is a pair, or a dict of ``text``
    and ``text_pair``.
    """

    task = 'next-sentence'
    block_tasks = ('next_sentence',)

    def _pairs(self, item, options):
        pairs = super()._pairs(item, options)
        if pairs[0][1] is None:
            raise InputError(f'{self.task} takes pairs of texts, not {item!r:.80}')
        return pairs

    def _finish(self, item, rows, outputs, options):
        scores = softmax(outputs[0][0])
        best = int(scores.argmax())
        return {'label': ('IsNext', 'NotNext')[best], 'score': float(scores[best])}


class ZeroShotClassification(Pipeline):
    """Labels of your choice, by a model for natural language inference.

    ``classifier(text, candidate_labels=['politics', 'sport'])`` is a dict of ``sequence``,
    ``labels`` and ``scores``, best first. Each label is put into `hypothesis_template`, and its
    score says how much the text entails that sentence. With `multi_label` each label has its own
    probability; otherwise they add up to 1.

    One of the model's labels must begin with "entail".
    """

    task = 'zero-shot-classification'
    block_tasks = ('classification',)

    def __init__(self, opened, *args, **options):
        super().__init__(opened, *args, **options)
        names = [name.lower() for name in self.labels]
        found = [number for number, name in enumerate(names) if name.startswith('entail')]
        if not found:
            labels = ', '.join(self.labels)
            raise InputError(f'{self.task} needs a model with a label "entailment", not {labels}')
        self._entailment = found[0]
        # the label that contradicts, or the one furthest from entailment
        furthest = len(names) - 1 if self._entailment == 0 else 0
        against = (n for n, name in enumerate(names) if name.startswith('contradict'))
        self._contradiction = next(against, furthest)

    class Options(PipelineOptions):
        candidate_labels: Text | Annotated[list[Text], Field(max_length=10_000)] | None = None
        hypothesis_template: Text = 'This example is {}.'
        multi_label: Flag = False

    def _options(self, given):
        names, template = given.candidate_labels or [], given.hypothesis_template
        if isinstance(names, str):
            names = [name.strip() for name in names.split(',')]
        names = list(filter(None, names))
        if not names or '{}' not in template:
            raise InputError('candidate_labels must have labels, and hypothesis_template {}')
        multi_label = given.multi_label or len(names) == 1
        return {'labels': names, 'template': template, 'multi_label': multi_label}

    def _pairs(self, item, options):
        text = self._text(item)
        for label in options['labels']:
            # str.format would let a template make a text of any length
            yield text, options['template'].replace('{}', label)

    def _finish(self, item, rows, outputs, options):
        logits = np.stack([row for (row,) in outputs])  # (labels, classes)
        if options['multi_label']:
            scores = softmax(logits[:, [self._contradiction, self._entailment]])[:, 1]
        else:
            scores = softmax(logits[:, self._entailment])
        order = scores.argsort()[::-1]
        names = [options['labels'][row] for row in order]
        return {'sequence': item, 'labels': names, 'scores': scores[order].tolist()}


class MultipleChoice(TextPairs):
    """The best of several endings of a text: a dict of ``label``, ``score`` and ``scores``.

    An item is a dict of ``text``, a str, and ``choices``, a list of at least two str. ``label`` is
    the position of the best choice, and ``scores`` the probabilities of all choices in order.
    """

    task = 'multiple-choice'
    block_tasks = ('multiple_choice',)

    class Item(Fields):
        text: AnyText
        choices: Annotated[list[AnyText], Field(min_length=2)]

    def _pairs(self, item, options):
        item = self.Item.read(item)
        return ((item.text, choice) for choice in item.choices)

    def _finish(self, item, rows, outputs, options):
        scores = softmax(np.array([score.reshape(()) for (score,) in outputs]))
        (best,) = best_labels(scores)
        return {'label': best, 'score': float(scores[best]), 'scores': scores.tolist()}


class Reranking(TextPairs):
    """Texts sorted by how well they answer a query, by a model that reads each text with the query.

    An item is a dict of ``query``, a str, and ``documents``, a list of str. The result is a list of
    dicts, best first, as in sentence-transformers' ``CrossEncoder.rank``: ``corpus_id``, the
    position of the text, and ``score``; with `return_documents` also ``text``. `top_k` is the
    number of results, by default all. A pair ``(query, text)`` gives its score, a float.

    The model is a classifier with one output. The score is its sigmoid, or the function that the
    model's folder names instead. The folder's default prompt, or the one of `prompt_name`, precedes
    the query.
    """

    task = 'rerank'
    block_tasks = ('classification',)

    class Item(Fields):
        query: AnyText
        documents: list[AnyText]

    def __init__(self, opened, max_length=None, *args, **options):
        super().__init__(opened, max_length, *args, **options)
        if self.block.num_labels != 1:
            raise InputError(f'{self.task} needs a model with one output, not {self.labels}')
        extras = self.block.config.extras
        settings = extras.get('sentence_transformers') or {}
        path = settings.get('activation_fn') or extras.get('sbert_ce_default_activation_function')
        usual = SentenceModules(steps=(activation(path or 'torch.nn.Sigmoid'),))
        self._own = modules_of(self.files, 'CrossEncoder') or usual
        (self._activate,) = self._own.steps or usual.steps
        if max_length is None:
            lengths = self.max_length, self._own.max_length
            self.max_length = min(filter(None, lengths), default=None)

    class Options(PipelineOptions):
        top_k: Count | None = None
        return_documents: Flag = False
        prompt_name: Text | None = None

    def _options(self, given):
        self._own.prompt(given.prompt_name)  # there is one
        return given

    def _pairs(self, item, options):
        if isinstance(item, (tuple, list)) and len(item) == 2:
            item = {'query': self._text(item[0]), 'documents': [self._text(item[1])]}
        item, prompt = self.Item.read(item), self._own.prompt(options.prompt_name)
        prepare = str.lower if self._own.lowers else str
        return ((prepare(prompt + item.query), prepare(each)) for each in item.documents)

    def _finish(self, item, rows, outputs, options):
        logits = np.array([score.reshape(()) for (score,) in outputs], np.float32)
        scores = self._activate(logits.astype(np.float64)).tolist()
        if not isinstance(item, dict):
            return scores[0]
        order = sorted(range(len(scores)), key=lambda number: -scores[number])[: options.top_k]
        ranked = [{'corpus_id': number, 'score': scores[number]} for number in order]
        if options.return_documents:
            for document in ranked:
                document['text'] = item['documents'][document['corpus_id']]
        return ranked
