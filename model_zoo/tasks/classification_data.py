"""The data of classification: published sets, tables of the user's own, and their reader.

A bad row is an error that names the file, the line, the value and what is expected. Only in
published files that are known to be broken (GLUE's QQP), bad rows are skipped, counted and logged.

Sources: GLUE (Wang et al. 2018); XNLI (Conneau et al. 2018); LCQMC (Liu et al. 2018); ChnSentiCorp
(Tan Songbo). The labels are in the order of GluonNLP 0.10's tasks, except where a target has other
``orders``.
"""

import contextlib
import dataclasses
import itertools
import logging
import os
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..errors import InputError, UnknownNameError, Where
from ..records import (
    EMPTY,
    PAIRS,
    SPLITS,
    TEXTS,
    choose_columns,
    class_names,
    find_column,
    is_path,
    is_table,
    plain_value,
    read_records,
)
from ..util.display import in_number
from .tables import downloading
from .targets import Classes, LabelSet, Number, Target, split_names

__all__ = ['Example', 'custom_task', 'get_task', 'list_tasks', 'read_examples']

logger = logging.getLogger(__name__)

Column = str | int  # a header's name, or a position from 0


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a file; in published files TABs separate them, and nothing is quoted.

    Columns are names of the header or positions; labels may have a column each. Without a header,
    `width` is the number of columns by which a published file is recognised. Only rows with the
    value `where[1]` in column `where[0]` are read (XNLI has 15 languages in a file).
    """

    text: tuple[Column, ...]
    label: Column | tuple[Column, ...] | None = None
    header: bool = True
    width: int | None = None
    where: tuple[str, str] | None = None

    def fits(self, cells, segment):
        """Return whether a published file whose first line has these cells is of this layout."""
        columns = {*self.text, *(self.where or ())[:1]}
        if not segment.startswith('test'):  # which may have placeholders where the label is
            columns.add(self.label)
        if self.header:
            return columns <= {cell.strip() for cell in cells}
        return self.width == len(cells) and None not in columns


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set of classification or regression: a published one, or the user's own rows.

    Parameters
    ----------
    name : str
    target : Target
        What is predicted.
    layouts : tuple of Layout
        Tried in this order on a published file's first line.
    files : mapping
        Segment -> names that its file may have; for the user's own rows, its path or rows.
    submissions : mapping of str to str
        Test segment -> name of the file of predictions (GLUE's own names for its tasks).
    is_custom : bool
        Whether these are the user's own rows.
    folders : tuple of str
        Names that the set's folder may have inside a directory of several sets.
    gluonnlp_name : str, optional
        Name of the set in GluonNLP, which downloads its data.
    data_dir_variable : str, optional
        Environment variable with the folder of its data, as GluonNLP's README sets it.
    tolerant : bool
        The published files have broken rows: skip and count these instead of refusing the file.
    encoding : str, optional
        Encoding of the user's text files; default: UTF-8.
    skip_empty : bool
        Leave out the user's rows without a text or a label.
    given : dict
        Text of a label -> the number that stands for it in the user's rows in memory; filled when
        they are read.
    noted : dict
        What the first set that was read says of all: ``vectors``, the length of its vectors of 0
        and 1, or 0.
    """

    name: str
    target: Target
    layouts: tuple[Layout, ...]
    files: Mapping[str, object]
    submissions: Mapping[str, str]
    is_custom: bool = False
    folders: tuple[str, ...] = ()
    gluonnlp_name: str | None = None
    data_dir_variable: str | None = None
    tolerant: bool = False
    encoding: str | None = None
    skip_empty: bool = False
    given: dict = dataclasses.field(default_factory=dict, compare=False)
    noted: dict = dataclasses.field(default_factory=dict, compare=False)

    @property
    def labels(self):
        """Names of the classes in the order of the model's outputs, or None."""
        return self.target.labels

    @property
    def num_labels(self):
        """Number of the model's outputs: the number of classes, or 1 for numbers."""
        return self.target.num_outputs

    @property
    def is_pair(self):
        """Whether an example has two texts."""
        return len(self.layouts[0].text) == 2

    @property
    def dev_segments(self):
        """``('dev',)``, or for MNLI its two; empty if a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('dev'))

    @property
    def test_segments(self):
        """``('test',)``, or for MNLI its two; empty if a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('test'))

    def with_labels(self, labels):
        """Return the task with other labels, or in another order."""
        target = dataclasses.replace(self.target, labels=tuple(labels))
        return dataclasses.replace(self, target=target)

    def find(self, segment, data_dir=None):
        """Return the path or rows of a segment; None if GluonNLP downloads it."""
        if self.is_custom:
            return self.files[segment]
        own = os.environ.get(self.data_dir_variable or '') if data_dir is None else data_dir
        folders = [os.path.join(own, name) for name in (*self.folders, '') if own]
        if data_dir is None:  # a folder of the task, or the one that GLUE's program fills
            folders += [os.path.join(x, name) for x in ('', 'glue_data') for name in self.folders]
        paths = (os.path.join(folder, name) for folder in folders for name in self.files[segment])
        found = next(filter(is_table, paths), None)
        if found is None and (data_dir is not None or self.gluonnlp_name is None):
            place = '' if data_dir is None else f' in {os.fspath(data_dir)!r}'
            problem = f'there is no {segment} set of {self.name}{place}'
            raise InputError(f'{problem}; {self._advice(segment)}')
        return found

    def _advice(self, segment):
        names = ' or '.join(self.files[segment])
        return f'`data_dir` must be a folder with {names}, or with a folder {self.folders[0]} of it'

    def open(self, source, segment):
        """Return the layout of a source of `find`, and its records."""
        if self.is_custom:
            (layout,), parts = self.layouts, _PARTS
            if segment.startswith('test') and self.is_pair:
                parts = {**_PARTS, 2: ('text', 'text_pair')}
            options = {'encoding': self.encoding, 'header': layout.header, 'keep_blank': True}
            return layout, read_records(source, parts, segment, **options)
        if source is None:
            from gluonnlp.data import classification

            with downloading(f'the {segment} set of {self.name}', self._advice(segment)):
                rows = classification.get_task(self.gluonnlp_name).get_dataset(segment=segment)
            count, name = len(self.layouts[0].text), f"{self.name}'s {segment} set"
            places = (Where(name, number, unit='row') for number in itertools.count())
            cells = (dict(enumerate(row)) for row in rows)
            return Layout(tuple(range(count)), count), zip(places, cells)
        where, first = next(read_records(source, format='tsv', header=False))
        cells = list(first.values())
        layout = next((each for each in self.layouts if each.fits(cells, segment)), None)
        if layout is None:
            columns = ', or '.join(str([*each.text, each.label]) for each in self.layouts)
            problem = f'{cells!r:.120} are not the columns of {self.name}; expected {columns}'
            raise InputError(problem, where=where)
        options = {'format': 'tsv', 'header': layout.header, 'keep_blank': True}
        records = read_records(source, **options, is_strict=False)
        if layout.where:
            column, value = layout.where
            records = (each for each in records if each[1].get(column, '').strip() == value)
        return layout, records


#: number of parts of a row in memory -> their columns
_PARTS = {1: ('text',), 2: ('text', 'label'), 3: ('text', 'text_pair', 'label')}
#: usual names of the column of the label
_LABELS = ('label', 'labels', 'score', 'gold_label', 'class', 'category', 'target', 'sentiment')


def _names(*segments):
    """Return the file names of segments that are named after them."""
    return {segment: (f'{segment}.tsv', f'{segment}.txt') for segment in segments}


_PAIR, _TEXTS_A_B = ('sentence1', 'sentence2'), ('text_a', 'text_b')
_NLI = Classes(
    ('neutral', 'entailment', 'contradiction'),
    ('accuracy',),
    aliases={'contradictory': 'contradiction'},  # so spelt in XNLI
    orders={
        'originals': ('contradiction', 'entailment', 'neutral'),
        'hub': ('entailment', 'neutral', 'contradiction'),
    },
)
_ENTAILMENT = Classes(
    ('not_entailment', 'entailment'),
    ('accuracy',),
    orders=dict.fromkeys(('originals', 'hub'), ('entailment', 'not_entailment')),
)


def _binary(*words, metrics=('accuracy',), positive=None):
    """Return the classes 0 and 1; words are their synonyms."""
    return Classes(('0', '1'), metrics, dict(zip(words, '01')), positive=positive)


_F1 = {'metrics': ('accuracy', 'f1'), 'positive': '1'}
_EQUIVALENT = _binary('not_equivalent', 'equivalent', **_F1)
_DUPLICATE = _binary('not_duplicate', 'duplicate', **_F1)
_ACCEPTABLE = _binary('unacceptable', 'acceptable', metrics=('matthews', 'accuracy'))
_POSITIVE = _binary('negative', 'positive')


def _data_set(name, target, *layouts, glue_name=None, **fields):
    """Return a data set whose folders, files and name in GluonNLP are the usual ones."""
    own, lower = glue_name or name, name.lower()
    usual = {
        'folders': (own, name, lower, name.replace('-', ''), f'task_data/{lower}'),
        'files': _names('train', 'dev', 'test'),
        'submissions': {'test': f'{own}.tsv'},
        'gluonnlp_name': name,
    }
    return DataSet(name, target, layouts, **{**usual, **fields})


_MNLI_SETS = 'train', 'dev_matched', 'dev_mismatched', 'test_matched', 'test_mismatched'
_BAIDU = {'data_dir_variable': 'BAIDU_ERNIE_DATA_DIR'}
_TASKS = [
    _data_set('MRPC', _EQUIVALENT, Layout(('#1 String', '#2 String'), 'Quality')),
    # some rows of GLUE's training file are cut short
    _data_set('QQP', _DUPLICATE, Layout(('question1', 'question2'), 'is_duplicate'), tolerant=True),
    _data_set('QNLI', _ENTAILMENT, Layout(('question', 'sentence'), 'label')),
    _data_set('RTE', _ENTAILMENT, Layout(_PAIR, 'label')),
    _data_set('STS-B', Number((0.0, 5.0)), Layout(_PAIR, 'score')),
    # train and dev: source, label, the author's mark, sentence; test: index, sentence
    _data_set('CoLA', _ACCEPTABLE, Layout(('sentence',)), Layout((3,), 1, False, 4)),
    _data_set(
        'MNLI',
        _NLI,
        Layout(_PAIR, 'gold_label'),
        files=_names(*_MNLI_SETS),
        submissions={'test_matched': 'MNLI-m.tsv', 'test_mismatched': 'MNLI-mm.tsv'},
    ),
    _data_set('WNLI', _binary('not_entailment', 'entailment'), Layout(_PAIR, 'label')),
    _data_set('SST', _POSITIVE, Layout(('sentence',), 'label'), glue_name='SST-2'),
    _data_set(
        'XNLI',
        _NLI,
        Layout(_TEXTS_A_B, 'label'),  # Baidu's edition, Chinese only
        Layout(_PAIR, 'gold_label', where=('language', 'zh')),  # XNLI 1.0
        Layout(('premise', 'hypo'), 'label'),  # XNLI-MT 1.0, MNLI's training part translated
        folders=('XNLI', 'xnli', 'task_data/xnli', 'XNLI-1.0', 'XNLI-MT-1.0/multinli'),
        files={
            'train': ('train.tsv', 'train.txt', 'multinli.train.zh.tsv'),
            'dev': ('dev.tsv', 'dev.txt', 'xnli.dev.tsv'),
            'test': ('test.tsv', 'test.txt', 'xnli.test.tsv'),
        },
        **_BAIDU,
    ),
    _data_set(
        'LCQMC',
        _binary(),
        Layout(_TEXTS_A_B, 'label'),  # Baidu's edition
        Layout((0, 1), 2, False, 3),
        Layout((0, 1), None, False, 2),
        gluonnlp_name=None,  # may not be redistributed
        **_BAIDU,
    ),
    _data_set(
        'ChnSentiCorp',
        _POSITIVE,
        Layout(('text_a',), 'label'),  # Baidu's edition
        Layout((0,), 1, False, 2),
        Layout((0,), None, False, 1),
        **_BAIDU,
    ),
]
_BY_NAME = {task.name.lower(): task for task in _TASKS}
_BY_NAME.update({'sst-2': _BY_NAME['sst'], 'sst2': _BY_NAME['sst'], 'stsb': _BY_NAME['sts-b']})


def list_tasks():
    """Return the names of the published sets, as their authors write them."""
    return [task.name for task in _TASKS]


def get_task(name):
    """Return the published set called `name`, in any case; SST is also SST-2.

    Raises
    ------
    UnknownNameError
        If the set is unknown; the message lists all, and custom for the user's own rows.
    """
    if name.lower() not in _BY_NAME:
        raise UnknownNameError.of('task', name, [*list_tasks(), 'custom'])
    return _BY_NAME[name.lower()]


def custom_task(
    text_columns=(),
    label_column=None,
    labels=None,
    regression=False,
    multi_label=False,
    header=None,
    files=None,
    name='custom',
    **options,
):
    """Return a task in the user's rows, of any source of `read_records`.

    Parameters
    ----------
    text_columns : sequence of str or int
        One column, or two for pairs: names, or positions from 0. A string of digits is a position.
        By default those with usual names.
    label_column : str or int, optional
    labels : sequence of str, optional
        Names of the classes in the order of their ids. None: `infer_labels` reads them from the
        training rows. With `multi_label` and without `label_column` they may be columns of 0 and 1.
    regression : bool
        The labels are numbers.
    multi_label : bool
        Each text has any number of labels.
    header : bool, optional
        Whether the first line of CSV and TSV names the columns. None: it does if any column is
        given by name.
    files : dict of str to source
        Segment -> path or rows.
    **options
        Further fields of `DataSet`.
    """
    files = {key: files[key] for key in SPLITS if key in (files or {})}
    files = {key: str(rows) if is_path(rows) else rows for key, rows in files.items()}
    noted = {}
    if files and not (text_columns and label_column):
        segment, source = next(iter(files.items()))
        encoding = options.get('encoding')
        where, row = next(read_records(source, _PARTS, segment, encoding=encoding))
        if not text_columns:
            text_columns = choose_columns(row, None, (*PAIRS, *TEXTS), 'text_column', where)
        if label_column is None and multi_label and row.keys() >= {*(labels or [None])}:
            label_column, noted = tuple(labels), {'vectors': len(labels)}
        if label_column is None:
            label_column = find_column(row, _LABELS)
        if label_column is None and segment != 'test':
            choose_columns(row, None, (), 'label_column', where)
    label_columns = label_column if isinstance(label_column, tuple) else [label_column]
    columns = [*text_columns, *(column for column in label_columns if column is not None)]
    columns = [int(column) if str(column).isdecimal() else column for column in columns]
    count = len(text_columns)
    if count not in (1, 2) or len({*columns}) < len(columns):
        problem = f'{columns} must be one or two columns of texts, and another one of labels'
        raise InputError(problem, field='text_columns')
    if labels is not None and (regression or len({*labels}) < max(2, len(labels))):
        problem = 'there are none in a regression' if regression else 'must be two or more'
        raise InputError(f'{", ".join(map(str, labels))!r}: {problem}', field='labels')
    names = None if labels is None else tuple(map(str, labels))
    target = Number() if regression else (LabelSet if multi_label else Classes)(names)
    if header is None:
        header = any(isinstance(column, str) for column in columns)
    label = tuple(columns[count:]) if len(columns) > count + 1 else [*columns, None][count]
    layouts = (Layout(tuple(columns[:count]), label, header),)
    submissions = {'test': f'{name}.tsv'}
    options.update(is_custom=True, noted=noted)
    return DataSet(name, target, layouts, files, submissions, **options)


def infer_labels(task):
    """Return a task with the labels of its training set, if it has none yet; see `Classes.infer`.

    The classes of a data set of `datasets` keep their order.
    """
    if not task.target.has_classes or task.labels is not None:
        return task
    if 'train' not in task.files:
        raise InputError('the labels are unknown: name them, or use a training file')
    source, layout = task.find('train'), task.layouts[0]
    names = class_names(source, layout.label)
    if names is not None:
        return task.with_labels(names)
    labels = [example.label for example in _read(task, source, 'train', lambda label: label)]
    if task.noted.get('vectors'):
        return task.with_labels(f'LABEL_{number}' for number in range(task.noted['vectors']))
    column = f'label_column {layout.label!r} of {source if is_path(source) else "the train set"}'
    return dataclasses.replace(task, target=task.target.infer(labels, column, layout.header))


class Example(NamedTuple):
    """One row of a task.

    Parameters
    ----------
    guid : str
        What GLUE's submissions call `index`: the test file's own, else the row's number from 0.
    text_b : str or None
        The second text of a pair.
    label : str, float, tuple of str or None
        Name of the class (aliases resolved), several, or a number. None in test sets.
    """

    guid: str
    text_a: str
    text_b: str | None
    label: str | float | tuple[str, ...] | None

    def __str__(self):
        return ' / '.join(filter(None, (self.text_a, self.text_b)))


def has_segment(task, data_dir, segment):
    """Return whether a task has a segment's file, or without `data_dir` a download."""
    try:
        return segment in task.files and (task.find(segment, data_dir) is None or True)
    except InputError:
        return False


def read_examples(task, data_dir=None, segment='train'):
    """Read one segment of a task.

    Parameters
    ----------
    task : DataSet
    data_dir : str or os.PathLike, optional
        The task's folder, or the folder that contains it (as GLUE's). None: the files of a custom
        task; else the folder in the task's environment variable; else the task's folder in the
        working folder, such as ``MRPC`` or ``glue_data/MRPC``, as GLUE's program downloads it; else
        GluonNLP's data set, which is downloaded.
    segment : str
        One of ``task.files``: 'train', 'dev', 'test', or for MNLI 'dev_matched' and so on.

    Returns
    -------
    list of Example
        In the file's order.

    Raises
    ------
    UnknownNameError
        If the task has no such segment.
    InputError
        If the file is missing, empty or not UTF-8, or has another layout or a row that can't be
        used.
    """
    UnknownNameError.check(f'segment of {task.name}', segment, task.files)
    return _read(task, task.find(segment, data_dir), segment, task.target.parse)


def _read(task, source, segment, parse):
    """Read the examples of a set; `parse` makes a label of its text, or of several names."""
    layout, records = task.open(source, segment)
    takes_several, is_test = task.target.takes_several, segment.startswith('test')
    marks = layout.label if isinstance(layout.label, tuple) else (layout.label,)
    if is_test and not (task.is_custom and layout.label is not None):
        marks = ()
    columns, rows, broken, skipped, numbers = (), [], [], 0, {}
    for number, (where, row) in enumerate(records):
        if not columns:
            fields = dict(zip(layout.text, ('text_column', 'text_pair_column')))
            columns = [choose_columns(row, [x], (), fields[x], where)[0] for x in fields]
            with contextlib.suppress(*[InputError] * is_test):  # the user's own may have labels
                marks = [choose_columns(row, [x], (), 'label_column', where)[0] for x in marks]
            guid = next((name for name in ('index', 'id') if is_test and name in row), None)
        values = [row.get(column) for column in (*columns, *marks)]
        if task.tolerant and None in values:
            broken.append(where.line)
            continue
        cells, label = list(map(_text, itertools.repeat(where), columns, values)), None
        if marks:
            label = values[len(cells) :]
            if len(marks) == 1 or all(value in (None, '') for value in label):
                label = label[0]
            parts = _values(label)
            numbers.update((field_text(x), x) for x in parts if isinstance(x, (int, float)))
            label = (_names if takes_several else _text)(where, marks[0], label)
        own = field_text(row.get(guid)) if guid else None
        rows.append((where, (own or '').strip() or str(number), cells, label))
    name = source if is_path(source) else f'the {segment} set'
    is_labelled = any(row[-1] for row in rows)
    if is_labelled and takes_several:
        rows = _without_vectors(task, rows, class_names(source, layout.label) or ())
    if is_labelled and not task.noted.get('vectors'):
        task.given.update({} if is_path(source) else numbers)
        if is_test and not any(row[-1] and _is_known(parse, row[-1]) for row in rows):
            logger.warning('%s has other labels than the training, and is not scored', name)
            is_labelled = False
    if is_test and not is_labelled:
        marks, parse = (), lambda label: None
    needed = () if task.tolerant else columns if takes_several else (*columns, *marks)
    examples = []
    for where, guid, cells, label in rows:
        lacking = [column for column, cell in zip(needed, (*cells, label)) if not cell]
        if lacking:
            if not task.skip_empty:
                raise InputError(EMPTY, where=where._replace(column=lacking[0]))
            skipped += 1
            continue
        try:
            examples.append(Example(guid, *(*cells, None)[:2], parse(label)))
        except InputError as error:
            if task.tolerant:
                broken.append(where.line)
                continue
            if task.target.has_classes:
                found = itertools.chain(*(row[-1] if takes_several else row[-1:] for row in rows))
                error = f'{error}; the file has: {", ".join(sorted({*found})[:20])}'
            raise InputError(str(error), where=where) from None
    if skipped and (task.labels or not task.target.has_classes):  # else it is read again
        shown = name, in_number(skipped, 'rows')
        logger.warning('%s: skipped %s without a text or a label', *shown)
    if broken:
        shown = len(broken), len(examples) + len(broken), min(broken)
        logger.warning('%s: skipped %d broken rows of %d, the first at line %d', name, *shown)
    if not examples:
        raise InputError(f'{name} has no rows that can be used')
    return examples


def _is_known(parse, label):
    with contextlib.suppress(InputError):
        return parse(label) is not None
    return False


def field_text(value):
    """Return a field of JSON as TSV would have it; None for a list or an object."""
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None


def _text(where, column, value):
    """Return the text of a cell of any type."""
    text = value if isinstance(value, str) else field_text(value)
    if text is None:
        problem = f'{value!r:.80} is no text or label; a list of labels needs `multi_label`'
        raise InputError(problem, where=where._replace(column=column))
    return text.strip()


def _values(label):
    """Return the values of a label: those of a list, an array or a set, or itself alone."""
    label = label.tolist() if isinstance(label, np.ndarray) else label
    several = label if isinstance(label, (list, tuple, set, frozenset)) else [label]
    return list(map(plain_value, several))


def _names(where, column, label):
    """Return the texts of several labels, which are a list, or a text with commas between."""
    if label is None or isinstance(label, str):
        return tuple(split_names(label or ''))
    names = []
    for value in _values(label):
        name = field_text(value)
        if not (name and name.strip()) or (isinstance(value, float) and value not in (0, 1)):
            problem = f'{value!r:.40} in {label!r:.80} is no label'
            raise InputError(problem, where=where._replace(column=column))
        names.append(name.strip())
    return tuple(names)


#: texts of what a vector has
_BITS = {'0': 0, '0.0': 0, 'false': 0, '1': 1, '1.0': 1, 'true': 1}


def _without_vectors(task, rows, classes):
    """Return rows that have the names of their labels instead of vectors of 0 and 1.

    These are vectors if all rows of the set that is read first have a 0 or 1 for each label.
    `classes` have named the numbers of a data set.
    """
    bits, count = {**_BITS, **dict(zip(classes, (0, 1)))}, len(task.labels or rows[0][-1])
    fits = [len(label) == count and bits.keys() >= {*label} for *_, label in rows]
    has_vectors = task.noted.setdefault('vectors', count if count > 1 and all(fits) else 0)
    for fit, (where, *_, label) in zip(fits, rows):
        is_part = bits.keys() >= {*label} and len({*label}) < len(label)  # no set of positions
        if not fit if has_vectors else is_part:
            problem = f'({", ".join(label)}): a vector has a 0 or 1 for each of the {count} labels'
            raise InputError(f'{problem}, in every row', where=where)
    names = task.labels or [f'LABEL_{number}' for number in range(count)]
    if not has_vectors:
        return rows
    return [
        (*row, tuple(name for name, bit in zip(names, label) if bits[bit])) for *row, label in rows
    ]
