"""Tasks in the user's own files."""

import collections
import dataclasses
import re

from ...errors import InputError
from .readers import find_file, read_file
from .rows import short
from .task import Layout, Task

__all__ = ['custom_task', 'infer_labels']


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
):
    """A task in the user's files: TSV, CSV, JSON lines, or folders of `datasets`; see `read_rows`.

    Parameters
    ----------
    text_columns : sequence of str or int
        One column, or two for pairs: names of the header, or positions from 0. A string of digits
        is a position.
    label_column : str or int, optional
        None where there are only test files.
    labels : sequence of str, optional
        Names of the classes in the order of their ids. None: `infer_labels` takes them
        from the training file, sorted.
    regression : bool
        Labels are real numbers.
    header : bool, optional
        Whether the files' first line names the columns. None: it does if any column is given by
        name.
    metrics : sequence of str, optional
        Default: Pearson and Spearman for regression, else accuracy, and F1 of the last label where
        there are two.
    files : mapping of str to str
        Paths of the segments' files: ``{'train': ..., 'dev': ..., 'test': ...}``.
    name : str
    dev_split : float, optional
        Hold out this share of the training file as the dev set, which then needs no file.
    split_seed : int

    Returns
    -------
    Task

    Raises
    ------
    InputError
        If there is not one or two text columns, a column is given twice, names are given for files
        without a header, labels for a regression, a training or dev file without a label column;
        or if there are fewer than two labels.
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
    task = Task(
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
    )
    return dataclasses.replace(task, metrics=task.metrics or task.default_metrics)


def _column(column):
    """A position as an int, whether it comes as one or as digits; a name as it is."""
    if isinstance(column, str):
        return int(column) if re.fullmatch('[0-9]{1,9}', column) else column
    if isinstance(column, int) and column >= 0:
        return column
    raise InputError(f'column {column!r}: give a name of the header, or a position from 0')


def infer_labels(task, data_dir=None):
    """`task` with the labels of its training file: by number where all are integers, else by text.

    A task with known labels and a regression are returned unchanged.
    """
    if task.regression or task.labels is not None:
        return task
    if 'train' not in task.files:
        task.require_labels()
    path = find_file(task, data_dir, 'train')
    examples = read_file(task, path, 'train', str.strip)
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


def _are_all(kind, values):
    """Whether all `values` spell an int, or a float."""
    try:
        for value in values:
            kind(value)
    except ValueError:
        return False
    return True
