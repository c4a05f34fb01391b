"""The files of a task's sets: found, downloaded and written."""

import contextlib
import csv
import io
import json
import logging

from ..errors import InputError, reporting
from ..records import find_splits, is_path, is_table
from ..util.display import in_number
from ..util.files import atomic_write
from ..util.remote import is_file, is_folder, join

logger = logging.getLogger(__name__)


def write_table(path, rows):
    """Write rows of cells as TSV, as `table_lines` does; an empty one is a blank line."""
    with atomic_write(path) as file:
        file.writelines(table_lines(rows))


_BREAKS = dict.fromkeys(map(ord, '\t\n\r'), ' ')


def table_lines(rows, delimiter=None, end='\n'):
    """Yield the lines of rows of cells, which `read_records` reads back: CSV, or TSV by default.

    A text stays as it is, and a number is the same number when it is read. None is empty, and a
    list is JSON. Only TSV, whose fields are never quoted, has blanks for tabs and line ends; the
    log counts these.
    """
    broken = 0
    for row in rows:
        cells = list(map(cell_text, row))
        if delimiter is None:
            plain = [cell.translate(_BREAKS) for cell in cells]
            broken += sum(map(str.__ne__, plain, cells))
            yield '\t'.join(plain) + '\n'
            continue
        options = {'delimiter': delimiter, 'lineterminator': '\r\n'}  # else a \r has no quotes
        if any(cell[:1] == ' ' for cell in cells):  # which readers leave out
            options['quoting'] = csv.QUOTE_ALL
        line = io.StringIO()
        csv.writer(line, **options).writerow(cells)
        yield line.getvalue()[:-2] + end
    if broken:
        problem = 'tabs or line ends in %s have become blanks: CSV and JSON lines keep them'
        logger.warning(problem, in_number(broken, 'cells'))


def cell_text(value):
    """Return the text of a cell of any type, exact."""
    if value is None:
        return ''
    is_json = isinstance(value, (bool, int, float, list, tuple, dict))
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)


@contextlib.contextmanager
def downloading(what, advice):
    """Report a failed download of a data set by GluonNLP as an InputError."""
    logger.info("using GluonNLP's copy of %s; it is downloaded if it is missing", what)
    silence = contextlib.redirect_stdout(io.StringIO())  # it prints each try to download
    with reporting(f'cannot download {what}', f'; {advice}', errors=Exception), silence:
        yield


def check_files(settings, *names):
    """Raise InputError, naming the field, if one of these was given and isn't a file."""
    for name in names:
        path = getattr(settings, name)
        if path is not None and not is_file(path):
            problem = 'is a directory, not a file' if is_folder(path) else 'no such file'
            raise InputError(f'{path!r}: {problem}', field=name)


def named_files(settings, segments, dev_share=None):
    """Return the paths that the settings name with `SEGMENT_file`, by segment.

    The folder of a `DatasetDict` stands for its split of the segment; the training set's folder
    also for the splits of all segments that have no file.
    """
    files, others = {}, {}
    for segment in segments:
        path = getattr(settings, f'{segment}_file')
        splits = find_splits(path) if is_path(path) else {}
        if splits and segment not in splits:
            problem = f'{path!r} has no such split; it has {", ".join(splits)}'
            raise InputError(problem, field=f'{segment}_file')
        files[segment] = splits.get(segment, path)
        others = splits if segment == 'train' else others
    for segment, path in others.items():
        if files.get(segment) is None and (segment != 'dev' or dev_share is None):
            files[segment] = path
    return {segment: path for segment, path in files.items() if path}


def given_files(settings, segments, dev_share=None):
    """Return the `named_files`; InputError, naming the field, if one doesn't exist."""
    files = named_files(settings, segments, dev_share)
    check_files(settings, *(f'{name}_file' for name, path in files.items() if not is_table(path)))
    return files


def segment_files(settings, names, dev_share=None):
    """Return the files of a task's segments, named by `SEGMENT_file` or found in `data_dir`.

    `names` has the names that a segment's file may have in the folder.
    """
    files = given_files(settings, names, dev_share)
    if settings.data_dir is None:
        return files
    found = {}
    for segment, each in names.items():
        paths = [join(settings.data_dir, name) for name in each]
        found.update((segment, path) for path in reversed(paths) if is_table(path) or is_file(path))
    if not found:
        expected = ', '.join(' or '.join(each) for each in names.values())
        raise InputError(f'{settings.data_dir!r} has none of {expected}', field='data_dir')
    return {**found, **files}
