"""TSV files, or GluonNLP's downloads, to examples.

No row is dropped silently: a bad one is an error that names the file, the line, the value and what
is expected. Only in published files that are known to be broken (GLUE's QQP), bad rows are skipped,
counted and logged.
"""

import collections
import contextlib
import dataclasses
import io
import itertools
import logging
import os
import tarfile
import textwrap
import zipfile
from typing import NamedTuple, Optional, Union

from ...errors import InputError, UnknownNameError
from ...util.lines import read_lines
from .tasks import with_default_metrics

__all__ = [
    'Example',
    'find_file',
    'has_segment',
    'infer_labels',
    'load_gluonnlp',
    'read_examples',
]

logger = logging.getLogger(__name__)


class Example(NamedTuple):
    """One row of a task.

    Parameters
    ----------
    guid : str
        What GLUE's submissions call `index`: the test file's own, else the row's number from 0.
    text_a : str
    text_b : str or None
        The second text of a pair.
    label : str, float or None
        Name of the class (aliases resolved), or a regression's number. None in test sets.
    """

    guid: str
    text_a: str
    text_b: Optional[str]
    label: Optional[Union[str, float]]


class _BrokenRow(InputError):
    """A row that can't be used; the reader adds the file and the line."""


def read_examples(task, data_dir=None, segment='train'):
    """Read one segment of a task.

    Parameters
    ----------
    task : Task
    data_dir : str or os.PathLike, optional
        The task's folder, or the folder that contains it (as GLUE's). None: the files that a custom
        task names; else the folder in the task's environment variable, if it has the file; else
        GluonNLP's data set, which is downloaded.
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
    if data_dir is None and not _names_its_files(task):
        return load_gluonnlp(task, segment)
    return _read_file(task, find_file(task, data_dir, segment), segment, task.parse_label)


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

    logger.info("%s: taking GluonNLP's data set, downloaded where it is missing", segment)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints each try to download
            rows = classification.get_task(task.gluonnlp_name).get_dataset(segment=segment)
    except (
        OSError,
        RuntimeError,
        EOFError,
        UserWarning,  # MXNet's download raises it where the checksum is wrong
        zipfile.BadZipFile,
        tarfile.TarError,
    ) as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, 150, placeholder=' ...')
        raise InputError(
            f'cannot download the {segment} set of {task.name}: {reason}; {advice}'
        ) from error
    is_test = segment.startswith('test')
    text = range(2 if task.is_pair else 1)
    columns = {'text': list(text), 'label': None if is_test else len(text), 'guid': None}
    examples = []
    for number, cells in enumerate(rows):
        try:
            _check_width(cells, len(text) + (not is_test), exact=False)
            examples.append(_example(task, cells, columns, number, task.parse_label))
        except _BrokenRow as error:
            raise InputError(f"{task.name}'s {segment} set, row {number}: {error}") from None
    return examples


def find_file(task, data_dir, segment):
    """Path of the file of a segment.

    Parameters
    ----------
    task : Task
    data_dir : str, os.PathLike or None
    segment : str

    Returns
    -------
    str

    Raises
    ------
    UnknownNameError
        If the task has no such segment.
    InputError
        If there is no such file; the message names the layouts accepted.
    """
    _check_segment(task, segment)
    data_dir = '' if data_dir is None else os.fspath(data_dir)
    for folder in (*task.folders, ''):
        for name in task.files[segment]:
            path = os.path.join(data_dir, folder, name)
            if os.path.isfile(path):
                return path
    if _names_its_files(task):
        path = task.files[segment][0]
        problem = 'a directory is no file' if os.path.isdir(path) else 'no such file'
        raise InputError(f'{problem}: {path!r} (the {segment} set)')
    missing = 'is no directory' if not os.path.isdir(data_dir) else 'has no such file'
    raise InputError(
        f'no {segment} set of {task.name}: {data_dir!r} {missing}; '
        f'expected {_layouts_accepted(task, segment)}'
    )


def has_segment(task, data_dir, segment):
    """Whether there is a file, or without `data_dir` a download, of `segment`."""
    if segment not in task.files:
        return False
    if data_dir is None and not _names_its_files(task):
        # GluonNLP has all segments of its tasks
        return task.gluonnlp_name is not None or _default_dir(task, segment) is not None
    try:
        find_file(task, data_dir, segment)
    except InputError:
        return False
    return True


def infer_labels(task, data_dir=None):
    """`task` with the labels of its training file: by number where all are integers, else by text.

    A task with known labels and a regression are returned unchanged.
    """
    if task.regression or task.labels is not None:
        return task
    if 'train' not in task.files:
        task.require_labels()
    path = find_file(task, data_dir, 'train')
    examples = _read_file(task, path, 'train', str.strip)
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
            f'{_short(first)}: are these labels?{advice}'
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
    return with_default_metrics(dataclasses.replace(task, labels=tuple(labels)))


def _are_all(kind, values):
    """Whether all `values` spell an int, or a float."""
    try:
        for value in values:
            kind(value)
    except ValueError:
        return False
    return True


def _default_dir(task, segment):
    """The folder in the task's environment variable, if it has the file."""
    data_dir = os.environ.get(task.data_dir_variable or '')
    return data_dir if data_dir and has_segment(task, data_dir, segment) else None


def _names_its_files(task):
    """Whether the task names its files (a custom task)."""
    return not task.folders


def _check_segment(task, segment):
    if segment not in task.files:
        raise UnknownNameError.of(f'segment of {task.name}', segment, task.files)


def _layouts_accepted(task, segment):
    names = ' or '.join(task.files[segment])
    folder = task.folders[0] if task.folders else ''
    return f'DIR/{names}, or the same in DIR/{folder}'


def _expected(task):
    return ', or '.join(map(str, task.layouts))


def _read_file(task, path, segment, parse_label):
    """Read the examples of one file; `parse_label` makes a label of a field."""
    is_test = segment.startswith('test')
    layout, columns, width, rows = _recognise(task, path, is_test)
    examples, broken, elsewhere = [], [], 0
    for line, cells in rows:
        try:
            _check_width(cells, width, task.exact)
            if layout.where and cells[columns['where']].strip() != layout.where[1]:
                elsewhere += 1
                continue
            examples.append(_example(task, cells, columns, len(examples), parse_label))
        except _BrokenRow as error:
            if not task.tolerant:
                raise InputError(f'{path}, line {line}: {error}') from None
            broken.append(line)
    if broken:
        logger.warning(
            '%s: skipped %d broken rows of %d, the first at line %d',
            path,
            len(broken),
            len(examples) + len(broken),
            broken[0],
        )
    if elsewhere:
        logger.info('%s: left out %d rows whose %s is not %s', path, elsewhere, *layout.where)
    if not examples:
        where = ' whose {} is {!r}'.format(*layout.where) if layout.where else ''
        raise InputError(f'{path} has no rows{where}; expected {_expected(task)}, then rows')
    return examples


def _rows(path):
    """Yield ``(line number from 1, fields)`` of a TSV file.

    Blank lines at the file's end are no rows.
    """
    blank = []
    for number, line in read_lines(path):
        text = line.rstrip('\r\n')
        if not text.strip():
            blank.append((number, text.split('\t')))
            continue
        yield from blank
        blank.clear()
        yield number, text.split('\t')


def _recognise(task, path, is_test):
    """Find which of the task's layouts a file has, by its first line.

    Returns
    -------
    layout : Layout
    columns : dict
        Positions: 'text' (list), 'label' (or None), 'guid' (or None), 'where'.
    width : int
        Number of columns.
    rows : iterator
        The rows that hold examples.
    """
    rows = _rows(path)
    line, cells = next(rows, (None, None))
    if line is None:
        raise InputError(f'{path} is empty; expected {_expected(task)}, then rows')
    names = [cell.strip() for cell in cells]
    for layout in task.layouts:
        if layout.label is None and not is_test:
            continue
        wanted = [*layout.text]
        if layout.where:
            wanted.append(layout.where[0])
        label = None if is_test else layout.label  # test sets may have placeholders there
        if label is not None:
            wanted.append(label)
        if not layout.header:
            if layout.width not in (None, len(cells)):
                continue
            columns = {'text': list(layout.text), 'label': label, 'guid': None}
            # the user's own file without a header: as wide as its first row, or as is needed
            width = max(len(cells), *(column + 1 for column in wanted))
            return layout, columns, width, itertools.chain([(line, cells)], rows)
        if not all(_position(names, column) is not None for column in wanted):
            continue
        columns = {
            'text': [_position(names, column) for column in layout.text],
            'label': None if label is None else _position(names, label),
            'guid': next((names.index(key) for key in ('index', 'id') if key in names), None)
            if is_test
            else None,
        }
        if layout.where:
            columns['where'] = _position(names, layout.where[0])
        return layout, columns, len(names), rows
    shown = '\t'.join(cells)
    shown = shown if len(shown) <= 120 else shown[:117] + '...'
    flags = ' (`text_columns`, `label_column`)' if _names_its_files(task) else ''
    raise InputError(
        f'{path}, line {line}: not the columns of {task.name}; expected {_expected(task)}{flags}; '
        f'found {len(cells)} columns: {shown!r}'
    )


def _position(names, column):
    """Place of a column in a header, or None where it isn't there."""
    if isinstance(column, int):
        return column if column < len(names) else None
    return names.index(column) if column in names else None


def _check_width(cells, width, exact):
    if len(cells) < width:
        raise _BrokenRow(
            f'{len(cells)} columns instead of {width}: {_short(" | ".join(cells))}; fields are '
            'separated by one TAB each'
        )
    if exact and len(cells) > width and any(cell.strip() for cell in cells[width:]):
        raise _BrokenRow(
            f'{len(cells)} columns instead of {width}: {_short(" | ".join(cells))}; a text must '
            'not hold a TAB'
        )


def _short(text):
    return repr(text if len(text) <= 80 else text[:77] + '...')


def _example(task, cells, columns, number, parse_label):
    """The example in a row of fields."""
    texts = [cells[column].strip() for column in columns['text']]
    # QQP has rows with an empty question, which everybody keeps
    if not task.tolerant and not all(texts):
        which = columns['text'][texts.index('')]
        raise _BrokenRow(f'the text in column {which} (counted from 0) is empty')
    label = None
    if columns['label'] is not None:
        try:
            label = parse_label(cells[columns['label']])
        except InputError as error:
            raise _BrokenRow(str(error)) from None
    guid = cells[columns['guid']].strip() if columns['guid'] is not None else ''
    return Example(guid or str(number), texts[0], texts[1] if len(texts) > 1 else None, label)
