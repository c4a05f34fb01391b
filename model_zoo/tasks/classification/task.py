"""The record of a classification or regression task: columns, labels, metrics, file names."""

import dataclasses
import functools
import math
import re
from typing import Mapping, Optional, Tuple, Union

from ...errors import InputError, UnknownNameError

__all__ = ['Layout', 'Task']

Column = Union[str, int]  # a header's name, or a position from 0


@dataclasses.dataclass(frozen=True)
class Layout:
    """One way in which a task's files are laid out; fields are separated by TABs, never quoted.

    Parameters
    ----------
    text : tuple of str or int
        The column of the text, or the two columns of the pair: names of the header or positions.
    label : str or int, optional
        The label's column. A test file may lack it. None: the layout is for test files only.
    header : bool
        Whether the first line names the columns.
    width : int, optional
        Without a header: the number of columns, by which the layout is recognised. None takes any.
    where : (str, str), optional
        Read only the rows that hold this value in this column (XNLI has 15 languages in a file).
    """

    text: Tuple[Column, ...]
    label: Optional[Column] = None
    header: bool = True
    width: Optional[int] = None
    where: Optional[Tuple[str, str]] = None

    def __str__(self):
        if self.header:
            names = [repr(name) for name in (*self.text, self.label) if isinstance(name, str)]
            return 'a header with ' + ', '.join(names) if names else 'a header'
        places = f'text in {" and ".join(map(str, self.text))}'
        if self.label is not None:
            places += f', label in {self.label}'
        size = 'no header' if self.width is None else f'{self.width} columns without a header'
        return f'{size} (counted from 0: {places})'


def _plain(text):
    """A name without what its spellings differ in; the sign of a number is no hyphen."""
    return re.sub(r'(?<=[^\W\d_])[-_ ]+(?=\w)', '', text).lower()


@dataclasses.dataclass(frozen=True)
class Task:
    """A classification or regression task.

    Parameters
    ----------
    name : str
    layouts : tuple of Layout
        Tried in this order on a file's first line.
    labels : tuple of str, optional
        Names of the classes in the order of the model's outputs, by default GluonNLP's order. None
        for regression, and for a custom task whose labels are yet to be read from its training file
        (`infer_labels`).
    metrics : tuple of str
        Keys of ``metrics.METRICS``. The first decides which epoch is the best one.
    regression : bool
        Labels are real numbers, and the model has one output.
    label_aliases : mapping of str to str
        Synonyms of `labels`.
    orders : mapping of str to tuple of str
        Other orders of the labels, where they differ: of pytorch-pretrained-BERT and Google
        ('originals'), and of the data set on the Hugging Face hub ('hub').
    positive : str, optional
        The label that F1 is of; by default the second one.
    label_range : (float, float), optional
        Bounds of a regression's labels; predictions are clipped to them.
    folders : tuple of str
        Names that the task's folder may have inside a directory of several tasks.
    files : mapping of str to tuple of str
        Segment -> names that its file may have.
    submissions : mapping of str to str
        Test segment -> name of the file of predictions (GLUE's own names for its tasks).
    gluonnlp_name : str, optional
        Name of the task in GluonNLP, which downloads its data.
    data_dir_variable : str, optional
        Environment variable with the folder of its data, as GluonNLP's README sets it.
    tolerant : bool
        The published files have broken rows: skip and count these instead of refusing the file.
    exact : bool
        Refuse rows with more fields than columns, which a TAB inside a text makes.
    dev_split : float, optional
        Share of the training file that is held out as the dev set, stratified by label.
    split_seed : int
        Decides which examples these are.
    """

    name: str
    layouts: Tuple[Layout, ...]
    labels: Optional[Tuple[str, ...]] = None
    metrics: Tuple[str, ...] = ('accuracy',)
    regression: bool = False
    label_aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    orders: Mapping[str, Tuple[str, ...]] = dataclasses.field(default_factory=dict)
    positive: Optional[str] = None
    label_range: Optional[Tuple[float, float]] = None
    folders: Tuple[str, ...] = ()
    files: Mapping[str, Tuple[str, ...]] = dataclasses.field(default_factory=dict)
    submissions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gluonnlp_name: Optional[str] = None
    data_dir_variable: Optional[str] = None
    tolerant: bool = False
    exact: bool = False
    dev_split: Optional[float] = None
    split_seed: int = 0

    @property
    def is_pair(self):
        """Whether an example has two texts."""
        return len(self.layouts[0].text) == 2

    @property
    def num_labels(self):
        """Number of the model's outputs: the number of classes, or 1 for regression."""
        return 1 if self.regression else len(self.require_labels())

    @property
    def primary_metric(self):
        """Name of the metric that compares epochs; higher is better for all metrics."""
        return self.metrics[0]

    @property
    def segments(self):
        """All segments: train, dev sets, test sets."""
        return tuple(self.files)

    @property
    def dev_segments(self):
        """``('dev',)``, or for MNLI its two; empty where a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('dev'))

    @property
    def test_segments(self):
        """``('test',)``, or for MNLI its two; empty where a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('test'))

    @property
    def names_its_files(self):
        """Whether `files` holds whole paths, as in a custom task."""
        return not self.folders

    def require_labels(self):
        """The names of the classes."""
        if self.labels is None:
            raise InputError(
                f'the labels of task {self.name!r} are not known; name them, or give the training '
                'file from which they are read'
            )
        return self.labels

    @functools.cached_property
    def has_words(self):
        """Whether no label is a number, so that numbers in the data mean positions."""
        return not any(re.fullmatch('[+-]?[0-9.]+', label) for label in self.require_labels())

    @functools.cached_property
    def _spellings(self):
        """Plain spelling -> label, where only one is meant."""
        spellings = {}
        for text, label in [*zip(self.labels, self.labels), *self.label_aliases.items()]:
            spellings.setdefault(_plain(text), set()).add(label)
        return {
            text: labels.pop() for text, labels in spellings.items() if text and len(labels) == 1
        }

    def find_label(self, text):
        """The class called `text`, in whatever case, or by a synonym; None if there is none."""
        if text in self.require_labels():
            return text
        return self._spellings.get(_plain(text))

    def match(self, names):
        """The labels that a model's names stand for, in their order.

        Parameters
        ----------
        names : sequence of str

        Returns
        -------
        tuple of str or None
            None if they aren't the task's labels, each once.
        """
        found = tuple(map(self.find_label, names))
        return found if len(found) == len(self.labels) and {*found} == {*self.labels} else None

    def in_order(self, whose):
        """The labels in another order, if it has a name in `orders`; else as they are."""
        return self.orders.get(whose, self.require_labels())

    def with_labels(self, labels):
        """The task with other labels, or in another order, and metrics for them if it has none."""
        task = dataclasses.replace(self, labels=tuple(labels))
        return task if task.metrics else dataclasses.replace(task, metrics=task.default_metrics)

    @property
    def default_metrics(self):
        """The metrics of a custom task: none, as long as its labels aren't known."""
        if self.regression:
            return 'pearson', 'spearman'
        return {None: (), 2: ('accuracy', 'f1')}.get(
            self.labels and len(self.labels), ('accuracy',)
        )

    def parse_label(self, text):
        """The label written as `text`.

        Returns
        -------
        str or float
            The class's name as in `labels`; a number means a position among names. For regression
            the number.

        Raises
        ------
        InputError
            If it is none of the task's labels; the message says what is expected.
        """
        text = text.strip()
        if not self.regression:
            label = self.find_label(text)
            if label is None and self.has_words and re.fullmatch('[0-9]{1,9}', text):
                label = dict(enumerate(self.labels)).get(int(text))
            if label is None:
                expected = ', '.join((*self.labels, *self.label_aliases))
                raise InputError(f'unknown label {text!r}; expected one of: {expected}')
            return label
        low, high = self.label_range or (-math.inf, math.inf)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not low <= value <= high:
            bounds = f' from {low:g} to {high:g}' if self.label_range else ''
            raise InputError(f'label {text!r} is not a number{bounds}')
        return value

    @property
    def positive_id(self):
        """The number of the label that F1 is of."""
        return 1 if self.positive is None else self.labels.index(self.positive)

    def label_id(self, label):
        """The class's id of `label` for the loss; for regression the number."""
        return float(label) if self.regression else self.require_labels().index(label)

    def submission_file(self, segment):
        """Name of the file of predictions on test `segment`, such as ``MNLI-mm.tsv``."""
        if segment not in self.submissions:
            raise UnknownNameError.of(f'test set of {self.name}', segment, self.submissions)
        return self.submissions[segment]

    def format_prediction(self, prediction):
        """A prediction in GLUE's submission form, below the header ``index, prediction``.

        Parameters
        ----------
        prediction : int or float
            The class's id; for regression the model's output, which is clipped to the labels'
            range.
        """
        if not self.regression:
            return self.require_labels()[int(prediction)]
        if self.label_range:
            low, high = self.label_range
            prediction = min(max(float(prediction), low), high)
        return f'{float(prediction):.3f}'
