"""The data of classification: tasks known by name, tables of the user's own, and their readers.

A bad row is an error that names the file, the line, the value and what is expected. Only in
published files that are known to be broken (GLUE's QQP), bad rows are skipped, counted and logged.

Sources: GLUE (Wang et al. 2018); XNLI (Conneau et al. 2018); LCQMC (Liu et al. 2018); ChnSentiCorp
(Tan Songbo). The labels are in the order of GluonNLP 0.10's tasks, but for a task's ``orders``.
"""

import collections
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

from ..errors import InputError, UnknownNameError, Where
from ..records import (
    EmptyCells,
    choose_columns,
    class_names,
    is_path,
    is_table,
    read_records,
    read_rows,
)
from .tables import downloading

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
    by which the layout is recognised. Only rows with the value `where[1]` in column
    `where[0]` are read (XNLI has 15 languages in a file).
    """

    text: tuple[Column, ...]
    label: Column | None = None
    header: bool = True
    width: int | None = None
    where: tuple[str, str] | None = None

    def __str__(self):
        columns = [repr(column) for column in (*self.text, self.label) if column is not None]
        kind = 'a header' if self.header else f'{self.width} columns without a header'
        rows = ', in rows whose {} is {!r}'.format(*self.where) if self.where else ''
        return f'{kind} with {", ".join(columns)}{rows}'


def _plain(text):
    """A name without what its spellings differ in; the sign of a number is no hyphen."""
    return re.sub(r'(?<=[^\W\d_])[-_ ]+(?=\w)', '', text).lower()


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set of classification or regression: its labels and metrics.

    Parameters
    ----------
    name : str
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
    files : mapping
        Segment -> names that its file may have; of a `Table` its path or rows.
    submissions : mapping of str to str
        Test segment -> name of the file of predictions (GLUE's own names for its tasks).
    """

    name: str
    labels: tuple[str, ...] | None = None
    metrics: tuple[str, ...] = ('accuracy',)
    regression: bool = False
    label_aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    positive: str | None = None
    label_range: tuple[float, float] | None = None
    multi_label: bool = False
    files: Mapping[str, object] = dataclasses.field(default_factory=dict)
    submissions: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        if not self.metrics:  # by default those that the labels are for
            object.__setattr__(self, 'metrics', self._default_metrics())

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


@dataclasses.dataclass(frozen=True)
class Published(DataSet):
    """A data set that others have published, in files of its own form.

    Parameters
    ----------
    layouts : tuple of Layout
        Tried in this order on a file's first line.
    folders : tuple of str
        Names that the task's folder may have inside a directory of several tasks.
    gluonnlp_name : str, optional
        Name of the task in GluonNLP, which downloads its data.
    data_dir_variable : str, optional
        Environment variable with the folder of its data, as GluonNLP's README sets it.
    tolerant : bool
        The published files have broken rows: skip and count these instead of refusing the file.
    """

    layouts: tuple[Layout, ...] = ()
    folders: tuple[str, ...] = ()
    gluonnlp_name: str | None = None
    data_dir_variable: str | None = None
    tolerant: bool = False

    is_custom = False

    @property
    def is_pair(self):
        """Whether an example has two texts."""
        return len(self.layouts[0].text) == 2


@dataclasses.dataclass(frozen=True)
class Table(DataSet):
    """The user's own rows, see `custom_task`.

    Parameters
    ----------
    dev_split : float, optional
        Share of the training rows that is held out as the dev set, stratified by label.
    split_seed : int
        Decides which examples these are.
    """

    text_columns: tuple[Column, ...] = ()
    label_column: Column | None = None
    header: bool = True
    dev_split: float | None = None
    split_seed: int = 0
    encoding: str | None = None
    skip_empty: bool = False

    is_custom, tolerant = True, False

    @property
    def is_pair(self):
        """Whether an example has two texts."""
        return len(self.text_columns) == 2

    def records(self, segment):
        """Yield the places and rows of a segment."""
        alone = ('text', 'text_pair') if segment.startswith('test') and self.is_pair else None
        parts = {1: ('text',), 2: alone or ('text', 'label'), 3: ('text', 'text_pair', 'label')}
        return read_records(
            self.files[segment],
            parts,
            segment,
            encoding=self.encoding,
            header=self.header,
            keep_blank=True,
        )


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
    return Published(name, layouts=layouts, **{**usual, **fields})


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
    **options,
):
    """A task in the user's rows, of any source of `read_records`.

    Parameters
    ----------
    text_columns : sequence of str or int
        One column, or two for pairs: names, or positions from 0. A string of digits is a position.
    labels : sequence of str, optional
        Names of the classes in the order of their ids. None: `infer_labels` takes them
        from the training rows, sorted.
    header : bool, optional
        Whether the first line of CSV and TSV names the columns. None: it does if any column is
        given by name.
    metrics : sequence of str, optional
        Default: Pearson and Spearman for regression, else accuracy, and F1 of the last label where
        there are two.
    **options
        Further fields of `Table`.
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
    files = {segment: rows for segment, rows in (files or {}).items() if rows is not None}
    dev_split = options.get('dev_split')
    if dev_split is not None:
        if not 0 < dev_split < 1:
            raise InputError(
                f'must be a share between 0 and 1, not {dev_split:g}', field='dev_split'
            )
        if 'dev' in files or 'train' not in files:
            raise InputError('goes with a training file, and without a dev file', field='dev_split')
        files['dev'] = files['train']
    if label is None and any(not segment.startswith('test') for segment in files):
        raise InputError('training and dev files need a label_column: name it')
    tests = [segment for segment in files if segment.startswith('test')]
    return Table(
        name,
        labels,
        tuple(metrics or ()),
        regression=regression,
        files={key: str(rows) if is_path(rows) else rows for key, rows in files.items()},
        submissions={key: f'{name}{key[4:].replace("_", "-")}.tsv' for key in tests},
        text_columns=text,
        label_column=label,
        header=named if header is None else header,
        **options,
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
    find_file(task, None, 'train')
    names = class_names(task.files['train'], task.label_column)
    if names is not None:
        return task.with_labels(names)
    examples, source = read_file(task, None, 'train', str.strip), _source_of(task, 'train')
    if task.multi_label:
        names = sorted({name for row in examples for name in names_between_commas(row.label)})
        if len(names) < 2:
            raise InputError(f'the labels of {source} are {names}; two are needed')
        return task.with_labels(names)
    counts = collections.Counter(example.label for example in examples)
    first = examples[0].label
    column = f'label_column {task.label_column!r} of {source}'
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
    if not task.header and counts[first] == 1:
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


def _source_of(task, segment):
    """The name of a table's rows, for messages."""
    source = task.files[segment]
    return source if is_path(source) else f'the {segment} set'


def _table_rows(task, segment):
    """Return the columns of a `Table`'s texts and label, and an iterator of its rows: the place,
    the values of these columns, and the id.
    """
    records = task.records(segment)
    first = next(records, None)
    if first is None:
        return (), ()
    where, row = first
    columns, guid = choose_columns(row, task.text_columns, (), 'text_columns', where), None
    if not segment.startswith('test'):
        columns += choose_columns(row, [task.label_column], (), 'label_column', where)
    elif task.header:
        guid = next((name for name in ('index', 'id') if name in row), None)
    return columns, (
        (where, [row.get(name) for name in columns], None if guid is None else row.get(guid))
        for where, row in itertools.chain([first], records)
    )


def _published_rows(task, path, segment, broken):
    """Return the same of a published file; the places of skipped rows are added to `broken`."""
    layout, places, guid, language, width, rows = recognize(task, path, segment.startswith('test'))

    def used():
        elsewhere = 0
        for line, cells in rows:
            where = Where(str(path), line)
            if len(cells) < width:
                if not task.tolerant:
                    raise _too_short(cells, width, where)
                broken.append(where)
            elif layout.where and cells[language].strip() != layout.where[1]:
                elsewhere += 1
            else:
                yield (
                    where,
                    [cells[place] for place in places],
                    None if guid is None else cells[guid],
                )
        if elsewhere:
            logger.info('%s: left out %d rows whose %s is not %s', path, elsewhere, *layout.where)

    return (*layout.text, layout.label), used()


def _too_short(cells, width, where):
    return InputError(
        f'{len(cells)} columns instead of {width}: {short(" | ".join(cells))}; fields are '
        'separated by one TAB each',
        where=where,
    )


def expected_columns(task):
    """The columns of a task's files, for messages."""
    if task.is_custom:
        return ', '.join(map(repr, filter(None, (*task.text_columns, task.label_column))))
    return ', or '.join(map(str, task.layouts))


def recognize(task, path, is_test):
    """The first of the task's layouts that a file has: it; the positions of its texts and label (a
    list), id and language; the number of columns; and an iterator of the rows.
    """
    rows = read_rows(path)
    line, cells = next(rows, (None, None))
    if line is None:
        raise InputError(f'{path} is empty; expected {expected_columns(task)}, then rows')
    names = [cell.strip() for cell in cells]
    for layout in task.layouts:
        if layout.label is None and not is_test:
            continue
        # test sets may have placeholders where the label is
        columns = list(layout.text) if is_test else [*layout.text, layout.label]
        if not layout.header:
            if layout.width == len(cells):
                rows = itertools.chain([(line, cells)], rows)
                return layout, columns, None, None, layout.width, rows
            continue
        language = layout.where and layout.where[0]
        if {*columns, *filter(None, [language])} <= {*names}:
            known = (name for name in ('index', 'id') if is_test and name in names)
            guid = next(map(names.index, known), None)
            language = language and names.index(language)
            return layout, list(map(names.index, columns)), guid, language, len(names), rows
    raise InputError(
        f'not the columns of {task.name}; expected {expected_columns(task)}; found {len(cells)} '
        f'columns: {", ".join(map(repr, cells)):.120}',
        where=Where(str(path), line),
    )


def short(text):
    """The beginning of a text, for messages."""
    return repr(text if len(text) <= 80 else text[:77] + '...')


def field_text(value):
    """A field of JSON as TSV would have it; None for a list or an object."""
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None


def _cell(value, where, column, joins):
    """A text or label of a row of any types; with `joins` a list is several labels."""
    if isinstance(value, list) and joins:
        return ','.join(map(str, value))
    text = field_text(value)
    if text is None:
        hint = '; a list of labels needs `multi_label`' if isinstance(value, list) else ''
        raise InputError(
            f'{value!r:.80}, where a text or a label is expected{hint}',
            where=where._replace(column=column),
        )
    return text.strip()


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
    if data_dir is None and not task.is_custom:
        data_dir = _default_dir(task, segment)
    if data_dir is None and not task.is_custom:
        return load_gluonnlp(task, segment)
    examples = read_file(task, find_file(task, data_dir, segment), segment, task.parse_label)
    return _split(task, examples, segment) if task.is_custom and task.dev_split else examples


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
            f'{task.dev_split:g} of {len(examples)} examples leaves a set empty: give '
            'another share, or a dev file',
            field='dev_split',
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
    count, is_test = 2 if task.is_pair else 1, segment.startswith('test')
    examples = []
    for number, cells in enumerate(rows):
        where = Where(f"{task.name}'s {segment} set", number, unit='row')
        if len(cells) < count + (not is_test):
            raise _too_short(cells, count + (not is_test), where)
        try:
            label = None if is_test else task.parse_label(cells[count])
        except InputError as error:
            raise InputError(str(error), where=where) from None
        examples.append(Example(str(number), *[*map(str.strip, cells[:count]), None][:2], label))
    return examples


def find_file(task, data_dir, segment):
    """Path of the file of a segment."""
    _check_segment(task, segment)
    if task.is_custom:
        source = task.files[segment]
        if is_path(source) and not is_table(source):
            problem = 'this is a folder, not a file' if os.path.isdir(source) else 'no such file'
            raise InputError(f'{problem}: {source!r} (the {segment} set)')
        return source
    data_dir = '' if data_dir is None else os.fspath(data_dir)
    for folder in (*task.folders, ''):
        for name in task.files[segment]:
            path = os.path.join(data_dir, folder, name)
            if is_table(path):
                return path
    missing = 'is not a folder' if not os.path.isdir(data_dir) else 'has no such file'
    raise InputError(
        f'no {segment} set of {task.name}: {data_dir!r} {missing}; '
        f'expected {_layouts_accepted(task, segment)}'
    )


def has_segment(task, data_dir, segment):
    """Whether there is a file, or without `data_dir` a download, of `segment`."""
    if segment not in task.files:
        return False
    if data_dir is None and not task.is_custom:
        # GluonNLP has all segments of its tasks
        return task.gluonnlp_name is not None or _default_dir(task, segment) is not None
    try:
        find_file(task, data_dir, segment)
    except InputError:
        return False
    return True


def read_file(task, path, segment, parse_label):
    """Read the examples of a segment, of a published task from `path`; `parse_label` makes a label
    of a field.
    """
    examples, labels, broken, source = [], {None: None}, [], path
    if task.is_custom:
        source = _source_of(task, segment)
        names, rows = _table_rows(task, segment)
    else:
        names, rows = _published_rows(task, path, segment, broken)
    width, is_test = 2 if task.is_pair else 1, segment.startswith('test')
    empty = EmptyCells(task.is_custom and task.skip_empty)
    # QQP has rows with an empty question, which everybody keeps
    may_be_empty = [task.tolerant] * width + [task.multi_label]
    for number, (where, values, guid) in enumerate(rows):
        try:
            cells = [value.strip() for value in values]
        except AttributeError:  # numbers and the like
            cells = [
                _cell(value, where, name, task.multi_label and n == width)
                for n, (value, name) in enumerate(zip(values, names))
            ]
        if not all(cells):
            lacking = [n for n, cell in enumerate(cells) if not (cell or may_be_empty[n])]
            if lacking:
                empty.add(where._replace(column=names[lacking[0]]))
                continue
        label = None if is_test else cells[width]
        if label not in labels:
            try:
                labels[label] = parse_label(label)
            except InputError as error:
                if not task.tolerant:
                    others = {*labels, *(values[-1] for _, values, _ in rows), label} - {None}
                    found = ', '.join(sorted(map(str, others))[:20])
                    there = '' if task.regression else f'; the file has: {found}'
                    raise InputError(f'{error}{there}', where=where) from None
                broken.append(where)
                continue
        # otherwise the number of the file's row, also if others are left out
        guid = field_text(guid) or (number if task.is_custom else len(examples))
        pair = cells[1] if width == 2 else None
        examples.append(Example(str(guid).strip(), cells[0], pair, labels[label]))
    empty.check(logger)
    if broken:
        logger.warning(
            '%s: skipped %d broken rows of %d, the first at line %d',
            path,
            len(broken),
            len(examples) + len(broken),
            broken[0].line,
        )
    if not examples:
        raise InputError(f'{source} has no rows; expected {expected_columns(task)}, then rows')
    return examples


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
