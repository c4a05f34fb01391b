"""Tables, or GluonNLP's downloads, to examples.

No row is dropped silently: a bad one is an error that names the file, the line, the value and what
is expected. Only in published files that are known to be broken (GLUE's QQP), bad rows are skipped,
counted and logged.
"""

import collections
import contextlib
import io
import logging
import os
import tarfile
import textwrap
import zipfile

import numpy as np

from ...errors import InputError, UnknownNameError
from ..tables import is_table
from .rows import BrokenRow, UnknownLabel, check_width, expected_columns, make_example, recognize

__all__ = ['find_file', 'has_segment', 'load_gluonnlp', 'read_examples', 'read_file']

logger = logging.getLogger(__name__)

_GLUE = 'glue_data'  # the folder that GLUE's program fills


def read_examples(task, data_dir=None, segment='train'):
    """Read one segment of a task.

    Parameters
    ----------
    task : Task
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
            check_width(cells, len(text) + (not is_test), exact=False)
            examples.append(make_example(task, cells, columns, number, task.parse_label))
        except BrokenRow as error:
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
            if is_table(path):
                return path
    if task.names_its_files:
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
    for place, cells in rows:
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
                raise InputError(f'{path}, {place}: {error}{there}') from None
            broken.append(place)
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
        labels = sorted({each.label for each in read_file(task, path, segment, str.strip)})
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
    if segment not in task.files:
        raise UnknownNameError.of(f'segment of {task.name}', segment, task.files)


def _layouts_accepted(task, segment):
    names = ' or '.join(task.files[segment])
    folder = task.folders[0] if task.folders else ''
    return f'DIR/{names}, or the same in DIR/{folder}'
