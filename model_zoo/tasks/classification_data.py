"""The rows of classification: of published sets, and of tables of the user's own.

A bad row is an error that names the file, the line, the value and what is expected. Only in
published files that are known to be broken (GLUE's QQP), bad rows are skipped, counted and logged.
"""

import contextlib
import dataclasses
import itertools
import logging
from typing import NamedTuple

import numpy as np

from ..errors import InputError, UnknownNameError
from ..records import (
    EMPTY,
    PAIRS,
    SPLITS,
    TEXTS,
    choose_columns,
    class_names,
    find_column,
    is_path,
    plain_value,
    read_records,
)
from ..util.display import in_number
from .data_sets import PARTS, DataSet, Layout, get_task, list_tasks
from .targets import Classes, LabelSet, Number, split_names

__all__ = ['Example', 'custom_task', 'get_task', 'list_tasks', 'read_examples']

logger = logging.getLogger(__name__)

#: usual names of the column of the label
_LABELS = ('label', 'labels', 'score', 'gold_label', 'class', 'category', 'target', 'sentiment')


def custom_task(
    text_columns=(),
    label_column=None,
    labels=None,
    regression=False,
    decimal='.',
    multi_label=False,
    header=None,
    files=None,
    name='custom',
    **options,
):
    """Return the data set of the user's rows, from any source of `read_records`.

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
        The labels are numbers, with this `decimal` mark if they are texts.
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
        where, row = next(read_records(source, PARTS, segment, encoding=options.get('encoding')))
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
    target = LabelSet(names) if multi_label else Classes(names)
    if regression:
        target = Number(decimal=decimal)
    if header is None:
        header = any(isinstance(column, str) for column in columns)
    label = tuple(columns[count:]) if len(columns) > count + 1 else [*columns, None][count]
    layouts = (Layout(tuple(columns[:count]), label, header),)
    submissions = {'test': f'{name}.tsv'}
    options.update(is_custom=True, noted=noted)
    return DataSet(name, target, layouts, files, submissions, **options)


def infer_labels(data_set):
    """Return a data set with the labels of its training set, if it has none; see `Classes.infer`.

    The classes of a data set of `datasets` keep their order.
    """
    if not data_set.target.has_classes or data_set.labels is not None:
        return data_set
    source, layout = data_set.find('train'), data_set.layouts[0]
    names = class_names(source, layout.label)
    if names is not None:
        return data_set.with_labels(names)
    labels = [example.label for example in _read(data_set, source, 'train', lambda label: label)]
    if count := data_set.noted.get('vectors'):
        return data_set.with_labels(f'LABEL_{number}' for number in range(count))
    column = f'label_column {layout.label!r} of {source if is_path(source) else "the train set"}'
    target = data_set.target.infer(labels, column, layout.header)
    return dataclasses.replace(data_set, target=target)


class Example(NamedTuple):
    """One row of a data set.

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

    @property
    def texts(self):
        """The text, and the second one or None."""
        return self.text_a, self.text_b

    def __str__(self):
        return ' / '.join(filter(None, self.texts))


def has_segment(data_set, data_dir, segment):
    """Return whether a data set has a segment's file, or without `data_dir` a download."""
    with contextlib.suppress(InputError):
        data_set.find(segment, data_dir)
        return True
    return False


def read_examples(task, data_dir=None, segment='train'):
    """Read one segment of a data set.

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


def _read_cells(data_set, layout, records, is_test):
    """Return the cells of a set's rows, and what else was found on the way.

    Each row has its place, its id, the texts and the label. Behind the rows come the columns of the
    texts, those of the labels, the lines of broken rows, and the numbers among the labels.
    """
    marks = layout.label if isinstance(layout.label, tuple) else (layout.label,)
    if is_test and not (data_set.is_custom and layout.label is not None):
        marks = ()
    columns, rows, broken, numbers = (), [], [], {}
    for number, (where, row) in enumerate(records):
        if not columns:
            fields = dict(zip(layout.text, ('text_column', 'text_pair_column')))
            columns = [choose_columns(row, [x], (), fields[x], where)[0] for x in fields]
            with contextlib.suppress(*[InputError] * is_test):  # the user's own may have labels
                marks = [choose_columns(row, [x], (), 'label_column', where)[0] for x in marks]
            guid = next((name for name in ('index', 'id') if is_test and name in row), None)
        values = [row.get(column) for column in (*columns, *marks)]
        if data_set.tolerant and None in values:
            broken.append(where.line)
            continue
        cells, label = list(map(_text, itertools.repeat(where), columns, values)), None
        if marks:
            label = values[len(cells) :]
            if len(marks) == 1 or all(value in (None, '') for value in label):
                label = label[0]
            parts = _values(label)
            numbers.update((field_text(x), x) for x in parts if isinstance(x, (int, float)))
            label = (_names if data_set.target.takes_several else _text)(where, marks[0], label)
        own = field_text(row.get(guid)) if guid else None
        rows.append((where, (own or '').strip() or str(number), cells, label))
    return rows, columns, marks, broken, numbers


def _read(data_set, source, segment, parse):
    """Read the examples of a set; `parse` makes a label of its text, or of several names."""
    layout, records = data_set.open(source, segment)
    takes_several, is_test = data_set.target.takes_several, segment.startswith('test')
    rows, columns, marks, broken, numbers = _read_cells(data_set, layout, records, is_test)
    name = source if is_path(source) else f'the {segment} set'
    is_labelled = any(row[-1] for row in rows)
    if is_labelled and takes_several:
        rows = _without_vectors(data_set, rows, class_names(source, layout.label) or ())
    if is_labelled and not data_set.noted.get('vectors'):
        data_set.given.update({} if is_path(source) else numbers)
        if is_test and not any(row[-1] and _is_known(parse, row[-1]) for row in rows):
            logger.warning('%s has other labels than the training, and is not scored', name)
            is_labelled = False
    if is_test and not is_labelled:
        marks, parse = (), lambda label: None
    needed = () if data_set.tolerant else columns if takes_several else (*columns, *marks)
    examples, skipped = [], 0
    for where, guid, cells, label in rows:
        lacking = [column for column, cell in zip(needed, (*cells, label)) if not cell]
        if lacking:
            if not data_set.skip_empty:
                raise InputError(EMPTY, where=where._replace(column=lacking[0]))
            skipped += 1
            continue
        try:
            examples.append(Example(guid, *(*cells, None)[:2], parse(label)))
        except InputError as error:
            if data_set.tolerant:
                broken.append(where.line)
                continue
            if data_set.target.has_classes:
                found = itertools.chain(*(row[-1] if takes_several else row[-1:] for row in rows))
                error = f'{error}; the file has: {", ".join(sorted({*found})[:20])}'
                error += ': name all of them with `labels`' * data_set.is_custom
            raise InputError(str(error), where=where) from None
    if skipped and (data_set.labels or not data_set.target.has_classes):  # else it is read again
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
    """Return the values in a list, an array or a set; a single label becomes a list of one."""
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


#: texts of a vector's numbers
_BITS = {'0': 0, '0.0': 0, 'false': 0, '1': 1, '1.0': 1, 'true': 1}


def _without_vectors(data_set, rows, classes):
    """Return rows that have the names of their labels instead of vectors of 0 and 1.

    These are vectors if all rows of the set that is read first have a 0 or 1 for each label.
    `classes` have named the numbers of a data set.
    """
    bits, count = {**_BITS, **dict(zip(classes, (0, 1)))}, len(data_set.labels or rows[0][-1])
    fits = [len(label) == count and bits.keys() >= {*label} for *_, label in rows]
    has_vectors = data_set.noted.setdefault('vectors', count if count > 1 and all(fits) else 0)
    for fit, (where, *_, label) in zip(fits, rows):
        is_part = bits.keys() >= {*label} and len({*label}) < len(label)  # no set of positions
        if not fit if has_vectors else is_part:
            problem = f'({", ".join(label)}): a vector has a 0 or 1 for each of the {count} labels'
            raise InputError(f'{problem}, in every row', where=where)
    names = data_set.labels or [f'LABEL_{number}' for number in range(count)]
    if not has_vectors:
        return rows
    named = (tuple(n for n, bit in zip(names, row[-1]) if bits[bit]) for row in rows)
    return [(*row[:-1], labels) for row, labels in zip(rows, named)]
