"""The targets of classification: one class a text, any number of labels, or a number.

A target parses labels, makes arrays of them, and says what a model's outputs mean: the loss, the
scores, the predictions.
"""

import collections
import csv
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Mapping

import mxnet as mx
import numpy as np

from ..errors import InputError, Where
from ..inference.classification import FUNCTIONS, LIKELY, best_labels, usual_function
from ..layers.losses import binary_cross_entropy
from . import scores
from .tables import table_lines

__all__ = ['Classes', 'LabelSet', 'Number', 'Target']


class Target:
    """Base of the targets.

    Attributes
    ----------
    labels : tuple of str or None
        Names of the classes in the order of the model's outputs.
    metrics : tuple of str
        The scores; the first chooses the best epoch.
    num_outputs : int
        Number of the model's outputs.
    has_classes, takes_several : bool
        Whether there are classes, and whether a text has any number of them.
    problem_type : str or None
        An entry of the model's configuration.
    """

    has_classes, takes_several, problem_type = True, False, None

    def array(self, labels):
        """Return labels as an array, a row for each text; InputError for an unknown one."""
        numbers = []
        for row, label in enumerate(labels):
            try:
                numbers.append(self.number(label))
            except ValueError:
                problem = f'unknown label {label!r}; expected one of: {", ".join(self.labels)}'
                raise InputError(problem, where=Where('the set', row, unit='row')) from None
        return np.array(numbers)

    def loss(self, model, batch, weights=None):
        """Compute the mean loss of a batch, an NDArray of shape (1,).

        `weights` has each class's weight, (classes,); None for equal ones.
        """
        return model(*batch.inputs, batch.labels)

    @property
    def columns(self):
        """Names of the columns of `probabilities`."""
        return self.labels

    def probabilities(self, outputs):
        """Return the classes' probabilities, (texts, classes), as the pipeline computes them."""
        return FUNCTIONS[usual_function(len(self.columns), self.problem_type)](outputs)

    def predictions(self, outputs):
        """Return what `decode` returns as an `array`."""
        return self.array(self.decode(outputs))

    def scores(self, labels, outputs):
        """Compute the metrics, floats by name, of an `array` and the model's outputs."""
        scores.check_finite(outputs)
        return self.measure(labels, self.predictions(outputs))

    def written(self, outputs):
        """Return the predictions in the form of GLUE's submissions."""
        return self.decode(outputs)


def _plain(text):
    """Return a name in lower case, without hyphens and blanks inside; a number keeps its sign."""
    return re.sub(r'(?<=[^\W\d_])[-_ ]+(?=\w)', '', text).lower()


@dataclasses.dataclass(frozen=True)
class Classes(Target):
    """One of several classes.

    Parameters
    ----------
    labels : tuple of str, optional
        Names of the classes in the order of the model's outputs; None if they are yet to be read
        from the training set.
    metrics : tuple of str
        Of accuracy, f1, macro_f1, micro_f1 and matthews; the first chooses the best epoch. Default:
        all that fit, accuracy first.
    aliases : mapping of str to str
        Synonyms of `labels`.
    orders : mapping of str to tuple of str
        Other orders of the labels: of pytorch-pretrained-BERT and Google ('originals'), and of the
        data set on the Hugging Face hub ('hub').
    positive : str, optional
        The label of F1; by default the second one.
    """

    labels: tuple[str, ...] | None = None
    metrics: tuple[str, ...] = ()
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    positive: str | None = None

    table = 'Scores per class'

    def __post_init__(self):
        if not self.metrics and self.labels is not None:
            object.__setattr__(self, 'metrics', self._usual_metrics())

    def _usual_metrics(self):
        return ('accuracy', *['f1'] * (len(self.labels) == 2), 'macro_f1')

    @property
    def num_outputs(self):
        """Number of the model's outputs."""
        if self.labels is None:
            raise InputError('the labels are unknown: name them, or use a training file')
        return len(self.labels)

    # -- names

    @functools.cached_property
    def has_words(self):
        """Whether no label is a number, so that numbers in the data mean positions."""
        return not any(re.fullmatch('[+-]?[0-9.]+', label) for label in self.labels)

    @functools.cached_property
    def _spellings(self):
        """Plain spelling -> label, if only one is meant."""
        spellings = collections.defaultdict(set)
        for text, label in [*zip(self.labels, self.labels), *self.aliases.items()]:
            spellings[_plain(text)].add(label)
        return {text: label for text, (label, *others) in spellings.items() if text and not others}

    def find(self, text):
        """Return the class called `text`, in any case or by a synonym; None if no class fits."""
        return text if text in self.labels else self._spellings.get(_plain(text))

    def match(self, names):
        """Return the labels that a model's names stand for, in their order, or None."""
        labels = tuple(map(self.find, names))
        return labels if len(labels) == len(self.labels) and {*labels} == {*self.labels} else None

    def in_order(self, whose):
        """Return the labels in another order, if it has a name in `orders`; else as they are."""
        return self.orders.get(whose, self.labels)

    def infer(self, texts, column, has_header=True):
        """Return the target with the labels of a training set: sorted, integers by value.

        Parameters
        ----------
        texts : list of str
        column : str
            The column, for messages.
        """
        counts, first = collections.Counter(texts), texts[0]
        integers, are_many, problem = _are(int, counts), len(counts) > 50, None
        if len(counts) < 2:
            problem = 'two labels are needed'
        elif (are_many and 2 * len(counts) > len(texts)) or (_are(float, counts) and not integers):
            problem = 'are these labels? `regression` predicts numbers; or name the `labels`'
        elif not has_header and counts[first] == 1:
            problem = 'the first line looks like a header: set `header`, or name the `labels`'
        if problem:
            found = f'{len(counts)} different values in {len(texts)} rows, such as {first!r:.80}'
            raise InputError(f'{column} has {found}: {problem}')
        labels = sorted(counts, key=lambda label: (int(label) if integers else 0, label))
        return dataclasses.replace(self, labels=tuple(labels))

    # -- labels of rows

    def parse_one(self, text):
        """Return the class written as `text`; a number is a position among names."""
        text = text.strip()
        label = self.find(text)
        if label is None and self.has_words and re.fullmatch('[0-9]{1,9}', text):
            label = dict(enumerate(self.labels)).get(int(text))
        if label is None:
            expected = ', '.join((*self.labels, *self.aliases))
            raise InputError(f'unknown label {text!r}; expected one of: {expected}')
        return label

    parse = parse_one

    def number(self, label):
        """Return the label as the loss takes it: the class's number."""
        return self.labels.index(label)

    def show(self, label):
        """Return a label, or a prediction, as a text."""
        return label

    # -- training

    def loss(self, model, batch, weights=None):
        if weights is None:
            return super().loss(model, batch)
        factors = mx.nd.array(weights, ctx=batch.labels.context).take(batch.labels)
        logs = mx.nd.log_softmax(model(*batch.inputs).astype('float32'))
        return -(factors * mx.nd.pick(logs, batch.labels)).mean()

    def class_weights(self, given, labels):
        """Compute the weights of the classes.

        Parameters
        ----------
        given : list of str
            ``balanced``, or texts such as ``bad=3``.
        labels : sequence of str
            The training set's.
        """
        if given == ['balanced']:
            counts = np.bincount(self.array(labels), minlength=len(self.labels))
            return len(labels) / (np.count_nonzero(counts) * np.maximum(counts, 1))
        weights = np.ones(len(self.labels))
        for item in given:
            label, _, weight = item.rpartition('=')
            try:
                weights[self.number(self.parse_one(label))] = float(weight)
            except ValueError:
                weights[0] = math.nan
            if not (np.isfinite(weights) & (weights >= 0)).all():
                problem = f'{item!r}: must be balanced, or LABEL=WEIGHT, a number from 0'
                raise InputError(problem, field='class_weights')
        return weights

    # -- outputs, (texts, outputs)

    def measure(self, labels, predictions):
        """Compute the metrics of `predictions`."""
        positive = 1 if self.positive is None else self.labels.index(self.positive)
        metrics = {
            'accuracy': lambda: scores.accuracy(labels, predictions),
            'f1': lambda: scores.f1(labels == positive, predictions == positive),
            'macro_f1': lambda: scores.f1(labels, predictions, average='macro'),
            'micro_f1': lambda: scores.f1(labels, predictions, average='micro'),
            'matthews': lambda: scores.matthews(labels, predictions),
        }
        return {name: metrics[name]() for name in self.metrics}

    def losses(self, labels, outputs):
        """Compute the loss of each text, float64."""
        return scores.cross_entropies(labels, outputs)

    def baseline(self, labels):
        """Return the best guess without the texts, and its metrics."""
        guess = int(np.bincount(labels).argmax())
        return self.labels[guess], self.measure(labels, np.full_like(labels, guess))

    def report(self, labels, outputs):
        """Compute the scores of each class; see `class_report`."""
        return scores.class_report(self.table, self.labels, labels, self.predictions(outputs))

    def decode(self, outputs):
        """Return the prediction for each text, as `parse` returns labels."""
        return [self.labels[best_labels(scores)[0]] for scores in self.probabilities(outputs)]


class LabelSet(Classes):
    """Any number of labels; each output is the logit of one of them."""

    takes_several, problem_type, table = True, 'multi_label_classification', 'Scores per label'

    def _usual_metrics(self):
        return 'macro_f1', 'micro_f1', 'accuracy'

    def infer(self, texts, column, has_header=True):
        names = sorted({*itertools.chain(*texts)})
        if len(names) < 2:
            raise InputError(f'{column} has the labels {names}; two are needed')
        return dataclasses.replace(self, labels=tuple(names))

    def parse(self, names):
        """Return the labels that have these names, in the order of `labels`."""
        chosen = set(map(self.parse_one, names))
        return tuple(label for label in self.labels if label in chosen)

    def number(self, label):
        """Return 1 for each label that the text has, and 0 for the others."""
        return np.array([name in label for name in self.labels], np.float32)

    def show(self, label):
        return ', '.join(label)

    def loss(self, model, batch, weights=None):
        return binary_cross_entropy(mx.nd, model(*batch.inputs), batch.labels)

    def losses(self, labels, outputs):
        """Compute the loss of each text and label, float64."""
        outputs = outputs.astype(np.float64)
        return np.logaddexp(0, outputs) - labels * outputs

    def baseline(self, labels):
        usual = labels.mean(axis=0) > 0.5  # labels that most texts have
        guess = self.show(itertools.compress(self.labels, usual)) or 'no label'
        return guess, self.measure(labels, np.tile(usual, (len(labels), 1)))

    def decode(self, outputs):
        best = [best_labels(row, None, LIKELY) for row in self.probabilities(outputs)]
        return [[self.labels[number] for number in sorted(numbers)] for numbers in best]

    def written(self, outputs):
        return map(join_names, self.decode(outputs))


@dataclasses.dataclass(frozen=True)
class Number(Target):
    """A number, such as a rating or a price: the model has one output.

    Parameters
    ----------
    bounds : (float, float)
        The least and the greatest label; predictions are clipped to them.
    mean, scale : float
        Mean and deviation of the training set. The model learns how many deviations a number is
        from the mean.
    is_folded : bool
        Whether the model's head has them, so that its outputs have the unit of the labels.
    decimal : str
        The decimal mark of labels that are texts, a point or a comma.
    """

    bounds: tuple[float, float] = (-math.inf, math.inf)
    mean: float = 0.0
    scale: float = 1.0
    is_folded: bool = False
    decimal: str = '.'

    labels, num_outputs = None, 1
    has_classes, problem_type, columns = False, 'regression', ('output',)

    @property
    def metrics(self):
        """The scores. Published sets have correlations, which see neither a shift nor a scale."""
        return ('r2',) * math.isinf(self.bounds[0]) + ('pearson', 'spearman')

    def parse(self, text):
        """Return the number written as `text`."""
        low, high = self.bounds
        try:
            # with a comma a point isn't a decimal mark, too
            value = float(text.translate({44: '.', 46: ','}) if self.decimal == ',' else text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not low <= value <= high:
            bounds = f' from {low:g} to {high:g}' if math.isfinite(low) else ''
            cure = '; `decimal` , reads decimal commas' * (',' in text and self.decimal == '.')
            raise InputError(f'label {text!r} is not a number{bounds}{cure}')
        return value

    def fit(self, labels):
        """Return the target with the mean and the deviation of a training set."""
        mean, scale = float(np.mean(labels)), float(np.std(labels))
        return dataclasses.replace(self, mean=mean, scale=scale or 1.0)

    def array(self, labels):
        return np.array(labels, np.float64)

    def number(self, label):
        """Return the label as the loss takes it."""
        return (label - self.mean) / self.scale

    def show(self, label):
        """Return a label, or a prediction, as a text."""
        return f'{label:.6g}'

    def predictions(self, outputs):
        """Return the outputs as numbers, (texts,)."""
        outputs = np.asarray(outputs, np.float64).reshape(-1)
        return outputs if self.is_folded else outputs * self.scale + self.mean

    def measure(self, labels, predictions):
        """Compute the metrics of `predictions`."""
        found = scores.correlations(np.asarray(labels, np.float64), predictions)
        found['r2'] = scores.r_squared(labels, predictions)
        return {name: found[name] for name in self.metrics}

    def losses(self, labels, outputs):
        """Compute the loss of each text, float64, in deviations."""
        return ((self.predictions(outputs) - labels) / self.scale) ** 2

    def baseline(self, labels):
        """Return the best guess without the texts, the mean, and its metrics."""
        guess = float(np.mean(labels))
        return self.show(guess), self.measure(labels, np.full(len(labels), guess))

    def report(self, labels, outputs):
        """Return nothing: there are no classes."""
        return {}

    def decode(self, outputs):
        """Return the prediction for each text."""
        return self.predictions(outputs).tolist()

    def probabilities(self, outputs):
        """Return the outputs, (texts, 1)."""
        return self.predictions(outputs).reshape(-1, 1)

    def written(self, outputs):
        (low, high), values = self.bounds, self.decode(outputs)
        if math.isinf(low):
            return values
        return [f'{min(max(value, low), high):.3f}' for value in values]


def split_names(text):
    """Return the names in a text with commas between; one with a comma in it is in quotes."""
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    return [name.strip() for name in itertools.chain(*rows) if name.strip()]


def join_names(names):
    """Return a text that `split_names` reads."""
    return ''.join(table_lines([names], ',', ''))


def _are(number_type, values):
    """Return whether all `values` spell an int, or a float."""
    try:
        for value in values:
            number_type(value)
    except ValueError:
        return False
    return True
