"""The data of classification: tasks known by name, tables of the user's own, and their readers.

A bad row is an error that names the file, the line, the value and what is expected. Only in
published files that are known to be broken (GLUE's QQP), bad rows are skipped, counted and logged.

Sources: GLUE (Wang et al. 2018); XNLI (Conneau et al. 2018); LCQMC (Liu et al. 2018); ChnSentiCorp
(Tan Songbo). The labels are in the order of GluonNLP 0.10's tasks, but for a task's ``orders``.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import logging
import math
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..errors import InputError, UnknownNameError, did_you_mean, reporting
from .tables import class_names, downloading, has_named_fields, is_table, read_rows

__all__ = [
    'Example',
    'Layout',
    'custom_task',
    'field_text',
    'find_file',
    'get_task',
    'has_segment',
    'infer_labels',
    'list_tasks',
    'read_examples',
    'read_file',
]

logger = logging.getLogger(__name__)

Column = str | int  # a header's name, or a position from 0


@dataclasses.dataclass(frozen=True)
class Layout:
    """One way in which a task's files are laid out; fields are separated by TABs, never quoted.

    Columns are names of the header or positions. Without a header, `width` is the number of columns
    by which the layout is recognised; None takes any. Only rows with the value `where[1]` in column
    `where[0]` are read (XNLI has 15 languages in a file).
    """

    text: tuple[Column, ...]
    label: Column | None = None
    header: bool = True
    width: int | None = None
    where: tuple[str, str] | None = None

    def __str__(self):
        if self.header:
            names = [repr(name) for name in (*self.text, self.label) if isinstance(name, str)]
            return 'a header with ' + ', '.join(names) if names else 'a header'
        where = f'text in {" and ".join(map(str, self.text))}'
        if self.label is not None:
            where += f', label in {self.label}'
        size = 'no header' if self.width is None else f'{self.width} columns without a header'
        return f'{size} (counted from 0: {where})'


def _plain(text):
    """A name without what its spellings differ in; the sign of a number is no hyphen."""
    return re.sub(r'(?<=[^\W\d_])[-_ ]+(?=\w)', '', text).lower()


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set of classification or regression: its files, columns, labels and metrics.

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
        Names of metrics. The first decides which epoch is the best one.
    regression : bool
        Labels are real numbers, and the model has one output.
    label_aliases : mapping of str to str
        Synonyms of `labels`.
    orders : mapping of str to tuple of str
        Other orders of the labels, where they differ: of pytorch-pretrained-BERT and Google
        ('originals'), and of the data set on the Hugging Face hub ('hub').
    positive : str, optional
        The label that F1 is of; by default the second one.
    multi_label : bool
        Each text has any number of the labels.
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
    layouts: tuple[Layout, ...]
    labels: tuple[str, ...] | None = None
    metrics: tuple[str, ...] = ('accuracy',)
    regression: bool = False
    label_aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    positive: str | None = None
    label_range: tuple[float, float] | None = None
    folders: tuple[str, ...] = ()
    files: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    submissions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gluonnlp_name: str | None = None
    data_dir_variable: str | None = None
    tolerant: bool = False
    exact: bool = False
    dev_split: float | None = None
    split_seed: int = 0
    multi_label: bool = False

    def __post_init__(self):
        if not self.metrics:  # by default those that the labels are for
            object.__setattr__(self, 'metrics', self._default_metrics())

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
        """The task's labels that a model's names stand for, in their order; None if they aren't."""
        labels = tuple(map(self.find_label, names))
        return labels if len(labels) == len(self.labels) and {*labels} == {*self.labels} else None

    def in_order(self, whose):
        """The labels in another order, if it has a name in `orders`; else as they are."""
        return self.orders.get(whose, self.require_labels())

    def with_labels(self, labels):
        """The task with other labels, or in another order, and metrics for them if it has none."""
        return dataclasses.replace(self, labels=tuple(labels))

    def _default_metrics(self):
        """None, as long as the labels aren't known."""
        if self.regression:
            return 'pearson', 'spearman'
        if self.multi_label:
            return 'macro_f1', 'micro_f1', 'accuracy'
        if self.labels is None:
            return ()
        return ('accuracy', 'f1') if len(self.labels) == 2 else ('accuracy',)

    def parse_label(self, text):
        """The label written as `text`.

        Returns
        -------
        str or float
            The class's name as in `labels`; a number means a position among names. For regression
            the number; with `multi_label` a tuple of names, which have commas between.
        """
        text = text.strip()
        if self.multi_label:
            one = dataclasses.replace(self, multi_label=False)
            chosen = {one.parse_label(name) for name in names_between_commas(text)}
            return tuple(label for label in self.labels if label in chosen)
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
        """The class's id of `label` for the loss; for regression the number.

        With `multi_label` an array of 0 and 1, one per class.
        """
        if self.multi_label:
            return np.array([name in label for name in self.require_labels()], np.float32)
        return float(label) if self.regression else self.require_labels().index(label)

    def submission_file(self, segment):
        """Name of the file of predictions on test `segment`, such as ``MNLI-mm.tsv``."""
        UnknownNameError.check(f'test set of {self.name}', segment, self.submissions)
        return self.submissions[segment]

    def format_prediction(self, prediction):
        """A prediction in GLUE's submission form, below the header ``index, prediction``.

        Parameters
        ----------
        prediction : int or float
            The class's id; for regression the model's output, which is clipped to the labels'
            range; with `multi_label` whether the text has each label.
        """
        if self.multi_label:
            return ','.join(itertools.compress(self.require_labels(), prediction))
        if not self.regression:
            return self.require_labels()[int(prediction)]
        if self.label_range:
            low, high = self.label_range
            prediction = min(max(float(prediction), low), high)
        return f'{float(prediction):.3f}'


def _names(*segments):
    """File names of segments that are named after them."""
    return {segment: (f'{segment}.tsv', f'{segment}.txt') for segment in segments}


_SEGMENTS = _names('train', 'dev', 'test')
_PAIR = ('sentence1', 'sentence2')
_BINARY = ('0', '1')
_ENTAILMENT = {
    'labels': ('not_entailment', 'entailment'),
    'orders': dict.fromkeys(('originals', 'hub'), ('entailment', 'not_entailment')),
}
_NLI = {
    'labels': ('neutral', 'entailment', 'contradiction'),
    'orders': {
        'originals': ('contradiction', 'entailment', 'neutral'),
        'hub': ('entailment', 'neutral', 'contradiction'),
    },
    'label_aliases': {'contradictory': 'contradiction'},  # so spelt in XNLI
}
_SENTIMENT = {'negative': '0', 'positive': '1'}


def _data_set(name, *layouts, **fields):
    """A data set whose folders, files and name in GluonNLP are the usual ones."""
    usual = {
        'folders': (name, name.lower()),
        'files': _SEGMENTS,
        'submissions': {'test': f'{name}.tsv'},
        'gluonnlp_name': name,
    }
    return DataSet(name, layouts, **{**usual, **fields})


_TASKS = [
    _data_set(
        'MRPC',
        Layout(('#1 String', '#2 String'), 'Quality'),
        labels=_BINARY,
        metrics=('accuracy', 'f1'),
        label_aliases={'not_equivalent': '0', 'equivalent': '1'},
        positive='1',
    ),
    _data_set(
        'QQP',
        Layout(('question1', 'question2'), 'is_duplicate'),
        labels=_BINARY,
        metrics=('accuracy', 'f1'),
        label_aliases={'not_duplicate': '0', 'duplicate': '1'},
        positive='1',
        tolerant=True,  # some rows of GLUE's training file are cut short
    ),
    _data_set('QNLI', Layout(('question', 'sentence'), 'label'), **_ENTAILMENT),
    _data_set('RTE', Layout(_PAIR, 'label'), **_ENTAILMENT),
    _data_set(
        'STS-B',
        Layout(_PAIR, 'score'),
        metrics=('pearson', 'spearman'),
        regression=True,
        label_range=(0.0, 5.0),
        folders=('STS-B', 'STSB', 'sts-b'),
    ),
    _data_set(
        'CoLA',
        # train and dev: source, label, the author's mark, sentence; test: index, sentence
        Layout(('sentence',)),
        Layout((3,), 1, header=False, width=4),
        labels=_BINARY,
        metrics=('matthews',),
        label_aliases={'unacceptable': '0', 'acceptable': '1'},
    ),
    _data_set(
        'MNLI',
        Layout(_PAIR, 'gold_label'),
        **_NLI,
        files=_names('train', 'dev_matched', 'dev_mismatched', 'test_matched', 'test_mismatched'),
        submissions={'test_matched': 'MNLI-m.tsv', 'test_mismatched': 'MNLI-mm.tsv'},
    ),
    _data_set(
        'WNLI',
        Layout(_PAIR, 'label'),
        labels=_BINARY,
        label_aliases={'not_entailment': '0', 'entailment': '1'},
    ),
    _data_set(
        'SST',
        Layout(('sentence',), 'label'),
        labels=_BINARY,
        label_aliases=_SENTIMENT,
        folders=('SST-2', 'SST', 'sst'),
        submissions={'test': 'SST-2.tsv'},
    ),
    _data_set(
        'XNLI',
        Layout(('text_a', 'text_b'), 'label'),  # Baidu's edition, Chinese only
        Layout(_PAIR, 'gold_label', where=('language', 'zh')),  # XNLI 1.0
        Layout(('premise', 'hypo'), 'label'),  # XNLI-MT 1.0, MNLI's training part translated
        **_NLI,
        folders=('XNLI', 'xnli', 'task_data/xnli', 'XNLI-1.0', 'XNLI-MT-1.0/multinli'),
        files={
            'train': ('train.tsv', 'train.txt', 'multinli.train.zh.tsv'),
            'dev': ('dev.tsv', 'dev.txt', 'xnli.dev.tsv'),
            'test': ('test.tsv', 'test.txt', 'xnli.test.tsv'),
        },
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
    _data_set(
        'LCQMC',
        Layout(('text_a', 'text_b'), 'label'),  # Baidu's edition
        Layout((0, 1), 2, header=False, width=3),
        Layout((0, 1), header=False, width=2),
        labels=_BINARY,
        folders=('LCQMC', 'lcqmc', 'task_data/lcqmc'),
        gluonnlp_name=None,  # may not be redistributed
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
    _data_set(
        'ChnSentiCorp',
        Layout(('text_a',), 'label'),  # Baidu's edition
        Layout((0,), 1, header=False, width=2),
        Layout((0,), header=False, width=1),
        labels=_BINARY,
        label_aliases=_SENTIMENT,
        folders=('ChnSentiCorp', 'chnsenticorp', 'task_data/chnsenticorp'),
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
]
_BY_NAME: dict[str, DataSet] = {task.name.lower(): task for task in _TASKS}
_ALIASES = {'sst-2': 'sst', 'sst2': 'sst', 'stsb': 'sts-b'}


def list_tasks():
    """Names of the tasks, as their authors write them."""
    return [task.name for task in _TASKS]


def get_task(name):
    """The task called `name`, in whatever case; SST is also SST-2.

    Raises
    ------
    UnknownNameError
        If there is none; the message lists all tasks.
    """
    key = name.lower()
    key = _ALIASES.get(key, key)
    if key not in _BY_NAME:
        raise UnknownNameError.of('task', name, list_tasks())
    return _BY_NAME[key]


def custom_task(
    text_columns,
    label_column=None,
    labels=None,
    regression=False,
    header=None,
    metrics=None,
    files=None,
    name='custom',
    dev_split=None,
    split_seed=0,
    multi_label=False,
):
    """A task in the user's files: TSV, CSV, JSON lines, or folders of `datasets`; see `read_rows`.

    Parameters
    ----------
    text_columns : sequence of str or int
        One column, or two for pairs: names of the header, or positions from 0. A string of digits
        is a position.
    labels : sequence of str, optional
        Names of the classes in the order of their ids. None: `infer_labels` takes them
        from the training file, sorted.
    header : bool, optional
        Whether the files' first line names the columns. None: it does if any column is given by
        name.
    metrics : sequence of str, optional
        Default: Pearson and Spearman for regression, else accuracy, and F1 of the last label where
        there are two.
    """
    text = tuple(_column(column) for column in text_columns)
    label = None if label_column is None else _column(label_column)
    columns = text if label is None else (*text, label)
    if len(text) not in (1, 2):
        given = ' '.join(map(str, text))
        raise InputError(f'text_columns {given!r}: give one, or two for sentence pairs')
    if len(set(columns)) != len(columns):
        raise InputError(
            'text_columns and label_column: columns given twice: ' + ', '.join(map(str, columns))
        )
    named = any(isinstance(column, str) for column in columns)
    if named and header is False:
        raise InputError('columns of files without a header are given by position, from 0')
    if labels is not None:
        labels = tuple(str(label) for label in labels)
        if regression:
            raise InputError('a regression has no label names: give labels or regression, not both')
        if len(set(labels)) != len(labels) or len(labels) < 2:
            raise InputError(f'labels {", ".join(labels)!r}: give two or more different ones')
    files = dict(files or {})
    if dev_split is not None:
        if not 0 < dev_split < 1:
            raise InputError(f'`dev_split` {dev_split:g}: give a share between 0 and 1')
        if files.get('dev') is not None or files.get('train') is None:
            raise InputError('`dev_split` goes with a training file, and without a dev file')
        files['dev'] = files['train']
    if label is None and any(not segment.startswith('test') for segment in files):
        raise InputError('training and dev files need a label_column: name it')
    files = {segment: (str(path),) for segment, path in files.items() if path is not None}
    return DataSet(
        name,
        (Layout(text, label, header=named if header is None else header),),
        labels,
        tuple(metrics or ()),
        regression=regression,
        files=files,
        submissions={
            segment: f'{name}{segment[4:].replace("_", "-")}.tsv'
            for segment in files
            if segment.startswith('test')
        },
        exact=True,
        dev_split=dev_split,
        split_seed=split_seed,
        multi_label=multi_label,
    )


def _column(column):
    """A position as an int, whether it comes as one or as digits; a name as it is."""
    if isinstance(column, str):
        return int(column) if re.fullmatch('[0-9]{1,9}', column) else column
    if isinstance(column, int) and column >= 0:
        return column
    raise InputError(f'column {column!r}: give a name of the header, or a position from 0')


def infer_labels(task):
    """`task` with the labels of its training file: by number where all are integers, else by text.

    A task with known labels and a regression are returned unchanged.
    """
    if task.regression or task.labels is not None:
        return task
    if 'train' not in task.files:
        task.require_labels()
    path = find_file(task, None, 'train')
    names = class_names(path, task.layouts[0].label)
    if names is not None:
        return task.with_labels(names)
    examples = read_file(task, path, 'train', str.strip)
    if task.multi_label:
        names = sorted({name for row in examples for name in names_between_commas(row.label)})
        if len(names) < 2:
            raise InputError(f'the labels of {path} are {names}; two are needed')
        return task.with_labels(names)
    counts = collections.Counter(example.label for example in examples)
    first = examples[0].label
    column = f'label_column {task.layouts[0].label!r} of {path}'
    if len(counts) < 2:
        raise InputError(f'{column} has the one label {first!r}; two are needed')
    if len(counts) > 50 and 2 * len(counts) > len(examples):
        advice = ''
        if _are_all(float, counts):
            advice = ' (for numbers to predict, set `regression`)'
        raise InputError(
            f'{column} has {len(counts)} different values in {len(examples)} rows, such as '
            f'{short(first)}: are these labels?{advice}'
        )
    if not task.layouts[0].header and counts[first] == 1:
        raise InputError(
            f'{column}: the label {first!r} occurs in the first line only, which looks like a '
            'header: say that the files have one (`header`), or name the labels (`labels`)'
        )
    integers = _are_all(int, counts)
    if _are_all(float, counts) and not integers:
        raise InputError(
            f'{column} has numbers, such as {first!r}: ask for a regression (`regression`), or '
            'name the labels (`labels`)'
        )
    labels = sorted(counts, key=lambda label: (int(label) if integers else 0, label))
    return task.with_labels(labels)


def _are_all(number_type, values):
    """Whether all `values` spell an int, or a float."""
    try:
        for value in values:
            number_type(value)
    except ValueError:
        return False
    return True


class Example(NamedTuple):
    """One row of a task.

    Parameters
    ----------
    guid : str
        What GLUE's submissions call `index`: the test file's own, else the row's number from 0.
    text_b : str or None
        The second text of a pair.
    label : str, float, tuple of str or None
        Name of the class (aliases resolved), or a regression's number. None in test sets.
    """

    guid: str
    text_a: str
    text_b: str | None
    label: str | float | tuple[str, ...] | None


def names_between_commas(text):
    """The labels of a text that has several."""
    return [name.strip() for name in text.split(',') if name.strip()]


class BrokenRow(InputError):
    """A row that can't be used. Its message lacks the file and the line."""


class UnknownLabel(BrokenRow):
    """A row whose label is none of the task's."""


def expected_columns(task):
    """The layouts of a task's files, for messages."""
    return ', or '.join(map(str, task.layouts))


def recognize(task, path, is_test):
    """The first of the task's layouts that a file has: it, a dict of columns' positions ('text' a
    list, 'label', 'guid', 'where'), the number of columns, and an iterator of the rows.
    """
    rows = read_rows(path)
    location, cells = next(rows, (None, None))
    if location is None:
        raise InputError(f'{path} is empty; expected {expected_columns(task)}, then rows')
    names = [cell.strip() for cell in cells]
    wanted = []
    for layout in task.layouts:
        if layout.label is None and not is_test:
            continue
        # test sets may have placeholders where the label is
        label = [] if is_test or layout.label is None else [layout.label]
        wanted = [*layout.text, *label, *(layout.where or ())[:1]]
        if layout.header:
            positions = [_position(names, column) for column in wanted]
            width, first = len(names), []
            if None in positions:
                continue
        else:
            if has_named_fields(path):
                raise InputError(f'{path}: columns are given by their names: {", ".join(cells)}')
            if layout.width not in (None, len(cells)):
                continue
            # the user's own file without a header: as wide as its first row, or as is needed
            width = max(len(cells), *(column + 1 for column in wanted))
            positions, first = wanted, [(location, cells)]
        count = len(layout.text)
        columns = {
            'text': positions[:count],
            'label': positions[count] if label else None,
            'guid': None,
            'where': positions[-1],  # if the layout has one
        }
        if layout.header:
            columns['names'] = names
            known = (name for name in ('index', 'id') if is_test and name in names)
            columns['guid'] = next(map(names.index, known), None)
        return layout, columns, width, itertools.chain(first, rows)
    shown = ', '.join(map(repr, cells))
    shown = shown if len(shown) <= 120 else shown[:117] + '...'
    absent = [name for name in wanted if name not in names]
    if task.names_its_files and absent:
        hint = did_you_mean(absent[0], names)
        if len(cells) == 1 and ',' in cells[0] and not str(path).endswith('.csv'):
            hint = '; with commas between its columns, the file must be called .csv'
        raise InputError(
            f'{path}, {location}: there is no column {absent[0]!r}; the columns are {shown}{hint}'
        )
    raise InputError(
        f'{path}, {location}: not the columns of {task.name}; expected '
        f'{expected_columns(task)}; found {len(cells)} columns: {shown}'
    )


def _position(names, column):
    """Place of a column in a header, or None where it isn't there."""
    if isinstance(column, int):
        return column if column < len(names) else None
    return names.index(column) if column in names else None


def check_width(cells, width, exact):
    """Raise `BrokenRow` if a row has fewer fields than columns, or more where it must be exact."""
    if len(cells) < width:
        raise BrokenRow(
            f'{len(cells)} columns instead of {width}: {short(" | ".join(cells))}; fields are '
            'separated by one TAB each'
        )
    if exact and len(cells) > width and any(cell.strip() for cell in cells[width:]):
        raise BrokenRow(
            f'{len(cells)} columns instead of {width}: {short(" | ".join(cells))}; a text must '
            'not hold a TAB'
        )


def short(text):
    """The beginning of a text, for messages."""
    return repr(text if len(text) <= 80 else text[:77] + '...')


def make_example(task, cells, columns, number, parse_label):
    """The example in a row of fields."""
    if task.multi_label:
        cells = [','.join(map(str, cell)) if isinstance(cell, list) else cell for cell in cells]
    cells = [field_text(cell) for cell in cells]
    used = [*columns['text'], *(() if columns['label'] is None else (columns['label'],))]
    for column in used:
        if cells[column] is None:
            where = _named(columns, column)
            hint = '; a list of labels needs `multi_label`' if column == columns['label'] else ''
            raise BrokenRow(
                f'a list or an object in {where}, where a text or a label is expected{hint}'
            )
        # QQP has rows with an empty question, which everybody keeps
        what, may_be_empty = 'text', task.tolerant
        if column == columns['label']:
            what, may_be_empty = 'label', task.multi_label
        if not (cells[column].strip() or may_be_empty):
            raise BrokenRow(f'the {what} in {_named(columns, column)} is empty')
    text, pair = [*(cells[column].strip() for column in columns['text']), None][:2]
    label = None
    if columns['label'] is not None:
        try:
            label = parse_label(cells[columns['label']])
        except InputError as error:
            raise UnknownLabel(str(error)) from None
    guid = cells[columns['guid']].strip() if columns['guid'] is not None else ''
    return Example(guid or str(number), text, pair, label)


def _named(columns, number):
    names = columns.get('names')
    return f'column {names[number]!r}' if names else f'column {number} (counted from 0)'


def field_text(value):
    """A field of JSON as TSV would have it; None for a list or an object."""
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None


_GLUE = 'glue_data'  # the folder that GLUE's program fills


def read_examples(task, data_dir=None, segment='train'):
    """Read one segment of a task.

    Parameters
    ----------
    task : DataSet
    data_dir : str or os.PathLike, optional
        The task's folder, or the folder that contains it (as GLUE's). None: the files that a custom
        task names; else the folder in the task's environment variable, if it has the file; else
        the task's folder in the working folder, such as ``MRPC`` or ``glue_data/MRPC``, as GLUE's
        program downloads it; else GluonNLP's data set, which is downloaded.
    segment : str
        One of ``task.segments``: 'train', 'dev', 'test', or for MNLI 'dev_matched' and so on.

    Returns
    -------
    list of Example
        In the file's order.

    Raises
    ------
    UnknownNameError
        If the task has no such segment.
    InputError
        If the file is missing, empty, not UTF-8, of another layout, or has a row that can't be
        used.
    """
    data_dir = _default_dir(task, segment) if data_dir is None else data_dir
    if data_dir is None and not task.names_its_files:
        return load_gluonnlp(task, segment)
    examples = read_file(task, find_file(task, data_dir, segment), segment, task.parse_label)
    return _split(task, examples, segment) if task.dev_split else examples


def _split(task, examples, segment):
    """The part of a training file's examples that is a segment, by ``task.dev_split``."""
    if segment not in ('train', 'dev'):
        return examples
    groups = collections.defaultdict(list)
    for number, example in enumerate(examples):
        groups[None if task.regression else example.label].append(number)
    rng, held_out = np.random.RandomState(task.split_seed), set()
    for label in sorted(groups, key=str):
        order = rng.permutation(groups[label]).tolist()
        held_out.update(order[: int(task.dev_split * len(order) + 0.5)])
    if not 0 < len(held_out) < len(examples):
        raise InputError(
            f'`dev_split` {task.dev_split:g} of {len(examples)} examples leaves a set empty: give '
            'another share, or a dev file'
        )
    return [example for n, example in enumerate(examples) if (n in held_out) == (segment == 'dev')]


def load_gluonnlp(task, segment='train'):
    """Read one segment of a task by GluonNLP, which downloads it to ``$MXNET_HOME/datasets``.

    See :func:`read_examples`; a failed download is an `InputError`
    that says how to do without.
    """
    _check_segment(task, segment)
    advice = f'give the folder of its files with `data_dir` ({_layouts_accepted(task, segment)})'
    if task.gluonnlp_name is None:
        raise InputError(f'{task.name} has no public download; {advice}')
    from gluonnlp.data import classification

    with downloading(f'the {segment} set of {task.name}', advice):
        rows = classification.get_task(task.gluonnlp_name).get_dataset(segment=segment)
    is_test = segment.startswith('test')
    text = range(2 if task.is_pair else 1)
    columns = {'text': list(text), 'label': None if is_test else len(text), 'guid': None}
    examples = []
    for number, cells in enumerate(rows):
        with reporting(f"{task.name}'s {segment} set, row {number}", errors=BrokenRow):
            check_width(cells, len(text) + (not is_test), exact=False)
            examples.append(make_example(task, cells, columns, number, task.parse_label))
    return examples


def find_file(task, data_dir, segment):
    """Path of the file of a segment."""
    _check_segment(task, segment)
    data_dir = '' if data_dir is None else os.fspath(data_dir)
    for folder in (*task.folders, ''):
        for name in task.files[segment]:
            path = os.path.join(data_dir, folder, name)
            if is_table(path):
                return path
    if task.names_its_files:
        path = task.files[segment][0]
        problem = 'this is a folder, not a file' if os.path.isdir(path) else 'no such file'
        raise InputError(f'{problem}: {path!r} (the {segment} set)')
    missing = 'is not a folder' if not os.path.isdir(data_dir) else 'has no such file'
    raise InputError(
        f'no {segment} set of {task.name}: {data_dir!r} {missing}; '
        f'expected {_layouts_accepted(task, segment)}'
    )


def has_segment(task, data_dir, segment):
    """Whether there is a file, or without `data_dir` a download, of `segment`."""
    if segment not in task.files:
        return False
    if data_dir is None and not task.names_its_files:
        # GluonNLP has all segments of its tasks
        return task.gluonnlp_name is not None or _default_dir(task, segment) is not None
    try:
        find_file(task, data_dir, segment)
    except InputError:
        return False
    return True


def read_file(task, path, segment, parse_label):
    """Read the examples of one file; `parse_label` makes a label of a field."""
    is_test = segment.startswith('test')
    layout, columns, width, rows = recognize(task, path, is_test)
    examples, broken, elsewhere = [], [], 0
    for location, cells in rows:
        try:
            check_width(cells, width, task.exact)
            if layout.where and cells[columns['where']].strip() != layout.where[1]:
                elsewhere += 1
                continue
            examples.append(make_example(task, cells, columns, len(examples), parse_label))
        except BrokenRow as error:
            if not task.tolerant:
                there = ''
                if isinstance(error, UnknownLabel) and not task.regression:
                    there = _labels_in(task, path, segment)
                raise InputError(f'{path}, {location}: {error}{there}') from None
            broken.append(location)
    if broken:
        logger.warning(
            '%s: skipped %d broken rows of %d, the first at %s',
            path,
            len(broken),
            len(examples) + len(broken),
            broken[0],
        )
    if elsewhere:
        logger.info('%s: left out %d rows whose %s is not %s', path, elsewhere, *layout.where)
    if not examples:
        where = ' whose {} is {!r}'.format(*layout.where) if layout.where else ''
        raise InputError(f'{path} has no rows{where}; expected {expected_columns(task)}, then rows')
    return examples


def _labels_in(task, path, segment):
    """The labels of a file, for a message."""
    with contextlib.suppress(InputError):
        labels = sorted({row.label for row in read_file(task, path, segment, str.strip)})
        return f'; the file has: {", ".join(labels[:20])}{", ..." if labels[20:] else ""}'
    return ''


def _default_dir(task, segment):
    """The folder in the task's environment variable, or here, if it has the file."""
    data_dir = os.environ.get(task.data_dir_variable or '')
    if data_dir and has_segment(task, data_dir, segment):
        return data_dir
    folders = (os.path.join(*path) for name in task.folders for path in ((name,), (_GLUE, name)))
    for folder in filter(os.path.isdir, folders):
        if any(is_table(os.path.join(folder, name)) for name in task.files.get(segment, ())):
            return folder
    return None


def _check_segment(task, segment):
    UnknownNameError.check(f'segment of {task.name}', segment, task.files)


def _layouts_accepted(task, segment):
    names = ' or '.join(task.files[segment])
    folder = task.folders[0] if task.folders else ''
    return f'DIR/{names}, or the same in DIR/{folder}'
