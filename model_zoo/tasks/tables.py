"""The rows of tables: TSV, CSV, JSON lines, and folders of Hugging Face's `datasets`."""

import contextlib
import csv
import io
import itertools
import logging
import os
import tarfile
import textwrap
import zipfile
from collections.abc import Iterable

from ..errors import InputError, MissingExtraError, reporting
from ..pretrained import local_path
from ..util.files import atomic_write
from ..util.reading import read_json, read_json_objects, read_lines, read_text
from ..util.remote import is_file, is_folder, is_url, join

__all__ = [
    'PAIR_COLUMNS',
    'SPLITS',
    'TEXT_COLUMNS',
    'check_files',
    'class_names',
    'downloading',
    'find_splits',
    'given_rows',
    'has_named_fields',
    'is_path',
    'is_table',
    'is_table_file',
    'read_records',
    'read_rows',
    'records_of',
    'segment_files',
    'split_text',
    'text_file',
    'usual_column',
    'usual_columns',
    'write_rows',
    'write_table',
]

logger = logging.getLogger(__name__)

#: usual names of the column of a text
TEXT_COLUMNS = ('text', 'sentence', 'review', 'content')
#: usual names of the columns of a pair of texts
PAIR_COLUMNS = (
    ('sentence1', 'sentence2'),
    ('premise', 'hypothesis'),
    ('question1', 'question2'),
    ('question', 'sentence'),
    ('text_a', 'text_b'),
    ('text', 'text_pair'),
    ('question', 'context'),
)
_FORMATS = {'.csv': 'csv', '.jsonl': 'json', '.ndjson': 'json', '.json': 'json'}
#: segment -> the names that its split may have in a `datasets.DatasetDict`
SPLITS = {'train': ('train',), 'dev': ('validation', 'dev', 'valid'), 'test': ('test',)}


def usual_columns(names):
    """The columns of a pair of texts and the column of a text, by their usual names, or None."""
    pairs = (tuple(usual_column(names, [name]) for name in pair) for pair in PAIR_COLUMNS)
    return next((pair for pair in pairs if None not in pair), None), usual_column(
        names, TEXT_COLUMNS
    )


def usual_column(names, usual):
    """The first of the usual names that a table has, as it is spelt there; None if it has none."""
    spelt = {str(name).lower(): name for name in reversed(list(names))}
    return next((spelt[name] for name in usual if name in spelt), None)


def is_path(source):
    """Whether a set is given by its path, and not by rows."""
    return isinstance(source, (str, os.PathLike))


def given_rows(rows, names, segment):
    """Rows that a caller has in memory, as dicts.

    Parameters
    ----------
    names : dict of int to tuple of str
        Number of a tuple's parts -> their names; a text is a tuple of one.
    """
    if hasattr(rows, 'to_dict') and hasattr(rows, 'columns'):
        rows = rows.to_dict('records')
    elif _is_dataset(rows):
        located = _dataset_rows(rows)
        _, columns = next(located)
        rows = (dict(zip(columns, cells)) for _, cells in located)
    number = -1
    for number, row in enumerate(rows):
        location = f'{segment}, row {number}'
        if isinstance(row, dict):
            yield location, row
            continue
        forms = ' or '.join(f'({", ".join(parts)})' for parts in names.values())
        if not isinstance(row, (str, Iterable)):
            raise InputError(f'{location} is {row!r}; give a text, a dict, or a tuple as {forms}')
        cells = (row,) if isinstance(row, str) else tuple(row)
        if len(cells) not in names:
            raise InputError(f'{location} has {len(cells)} parts; give dicts, or tuples as {forms}')
        yield location, dict(zip(names[len(cells)], cells))
    if number < 0:
        raise InputError(f'the {segment} set has no rows')


def records_of(source, names, segment, **options):
    """Rows with their places, as dicts: of a file, see `read_records`, or as of `given_rows`."""
    if not is_path(source):
        return given_rows(source, names, segment)
    records = read_records(source, **options)
    return ((f'{source}, {location}', row) for location, row in records)


def text_file(source, segment, folder, between='\n', column=None):
    """The path of a file with the texts of a set: its own, or a new one in `folder`."""
    if is_path(source) and not is_table_file(source):
        return os.fspath(source)
    texts = []
    for location, row in records_of(source, {1: ('text',)}, segment):
        name = column or usual_columns(row)[1]
        if not isinstance(row.get(name), str):
            raise InputError(f'{location}: give a text; its columns are {", ".join(map(str, row))}')
        texts.append(row[name].strip('\n'))
    if not any(map(str.strip, texts)):
        raise InputError(f'the {segment} set has no text that is not blank')
    return write_rows(folder, f'{segment}.txt', texts, between)


def write_rows(folder, name, texts, between='\n'):
    """Write texts of a set that is in memory, with `between` between them; returns the path."""
    path = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    with atomic_write(path) as file:
        file.write(between.join(texts) + '\n')
    return path


def write_table(path, rows):
    """Write rows of texts as TSV; an empty one is a blank line."""
    with atomic_write(path) as file:
        file.writelines('\t'.join(row) + '\n' for row in rows)


def split_text(path, share, folder, between='\n'):
    """Write a text's first parts and its last ones, a share of them, to files in `folder`."""
    parts = [part for part in read_text(path).split(between) if part.strip()]
    count = max(1, round(share * len(parts)))
    if count >= len(parts):
        raise InputError(f'`dev` {share} of {len(parts)} texts leaves nothing on one side')
    sets = {'train': parts[:-count], 'dev': parts[-count:]}
    return [write_rows(folder, f'part_{name}.txt', sets[name], between) for name in sets]


@contextlib.contextmanager
def downloading(what, advice):
    """Let GluonNLP download a data set where it is missing; its failure is an InputError."""
    logger.info("using GluonNLP's copy of %s; it is downloaded if it is missing", what)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints each try to download
            yield
    except (
        OSError,
        RuntimeError,
        EOFError,
        UserWarning,  # MXNet's download raises it where the checksum is wrong
        zipfile.BadZipFile,
        tarfile.TarError,
    ) as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, 150, placeholder=' ...')
        raise InputError(f'cannot download {what}: {reason}; {advice}') from error


def is_table(path):
    """Whether there is a file, or a data set's folder."""
    return os.path.isfile(path) or os.path.isfile(os.path.join(path, 'state.json'))


def is_table_file(path):
    """Whether a path's ending says that it is a table, or it is a data set's folder."""
    ending = os.path.splitext(path)[1].lower()
    return ending in {*_FORMATS, '.tsv'} or os.path.isfile(os.path.join(path, 'state.json'))


def find_splits(folder):
    """The data sets in a folder that ``DatasetDict.save_to_disk`` has written."""
    index = os.path.join(folder, 'dataset_dict.json')
    if not os.path.isfile(index):
        return {}
    names = read_json(index, 'the list of splits', {'splits': list})['splits']
    paths = {
        segment: next((os.path.join(folder, name) for name in known if name in names), None)
        for segment, known in SPLITS.items()
    }
    return {segment: path for segment, path in paths.items() if path}


def has_named_fields(path):
    """Whether the rows of a table name their fields, so that positions mean nothing."""
    return _format(path) in ('json', 'datasets')


def read_rows(path, format=None):
    """Read a table row by row, as lists.

    The ending tells the format: ``.csv``, also with semicolons or tabs between the fields;
    ``.jsonl``, ``.ndjson`` or ``.json``, with an object a line or an array of objects; any other is
    TSV, whose fields are never quoted. A folder is read by `datasets`.

    Yields
    ------
    str
        The row's place, for messages.
    list
        The fields, which are texts in TSV and CSV. Where `has_named_fields`, they have the types of
        the file, and the first list has the names.
    """
    return _READERS[format or _format(path)](path)


def read_records(path, format=None, exact=False):
    """Read a table row by row, as dicts; rows without any text are left out."""
    format = format or _format(path)
    if format == 'json':
        yield from read_json_objects(path)
        return
    names = None
    for location, cells in read_rows(path, format):
        if not any(cells):
            continue
        if names is None:
            names = cells
            continue
        if len(cells) < len(names) or (exact and len(cells) > len(names)):
            raise InputError(
                f'{path}, {location}: {len(cells)} fields, where the header has {len(names)}'
            )
        yield location, dict(zip(names, cells))


def _format(path):
    if os.path.isdir(path):
        return 'datasets'
    return _FORMATS.get(os.path.splitext(path)[1].lower(), 'tsv')


def _tsv_rows(path):
    """Blank lines at the file's end are no rows."""
    blank = []
    for number, line in read_lines(path):
        text = line.rstrip('\r\n')
        if not text.strip():
            blank.append((f'line {number}', text.split('\t')))
            continue
        yield from blank
        blank.clear()
        yield f'line {number}', text.split('\t')


def _csv_rows(path):
    lines = (line for _, line in read_lines(path))
    sample = list(itertools.islice(lines, 20))
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # `read_lines` bounds lines
    reader = csv.reader(
        itertools.chain(sample, lines), delimiter=_delimiter(sample), **_CSV, strict=True
    )
    first = 1  # line of a row, which may have several
    try:
        for cells in reader:
            if cells:
                yield f'line {first}', cells
            first = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f'{path}, line {first}: {error}') from None


_CSV = {'skipinitialspace': True}  # a space may come before a quoted field


def _delimiter(lines):
    """What separates the fields of CSV: not a comma if the header has none, and all lines have as
    many tabs, or semicolons.
    """
    if lines and len(next(csv.reader(lines[:1], **_CSV), ())) < 2:
        for delimiter in '\t;':
            widths = {len(cells) for cells in csv.reader(lines, delimiter=delimiter, **_CSV)} - {0}
            if len(widths) == 1 and max(widths) > 1:
                return delimiter
    return ','


def _json_rows(path):
    names = None
    for location, fields in read_json_objects(path):
        if names is None:
            names = list(fields)
            yield location, names
        yield location, [fields.get(name) for name in names]


def _load_dataset(folder):
    MissingExtraError.check('datasets', 'datasets')
    import datasets

    with reporting(f'cannot read the data set {folder!r}', errors=Exception):  # of many kinds
        return datasets.load_from_disk(folder)


def _dataset_rows(source):
    data = _load_dataset(source) if is_path(source) else source
    names = data.column_names
    yield 'its columns', names
    classes = {name: _class_names(data, name) for name in names}
    for number, row in enumerate(data.with_format(None)):
        for name in filter(classes.get, names):
            row[name] = _named_classes(row[name], classes[name])
        yield f'row {number}', [row[name] for name in names]


def _class_names(data, column):
    """The names of a column's classes, or of the classes in its lists; None if it has none."""
    feature = (data.features or {}).get(column)  # a stream may not know them
    feature = getattr(feature, 'feature', feature)
    return getattr(feature, 'names', None)


def _named_classes(value, names):
    """The names of a class, or of several; None for no label, -1; other numbers stay."""
    if isinstance(value, list):
        return [names[number] if number is not None and number >= 0 else number for number in value]
    return None if value is None or value < 0 else names[value]


def class_names(source, column):
    """The names of the classes in a column of a data set of `datasets`, in their order, or None."""
    if is_path(source) and _format(source) == 'datasets':
        source = _load_dataset(source)
    return _class_names(source, column) if _is_dataset(source) else None


def _is_dataset(source):
    return hasattr(source, 'column_names') and hasattr(source, 'with_format')


_READERS = {'tsv': _tsv_rows, 'csv': _csv_rows, 'json': _json_rows, 'datasets': _dataset_rows}

# those of files that aren't read line by line
_COPIED = {'bert_config_file', 'model_file', 'sentencepiece', 'vocab'}


def check_files(settings, *names):
    """Raise InputError, naming the field, if one of these was given and isn't a file.

    A field whose file a library opens gets the path of a copy, where it was a URL.
    """
    for name in names:
        path = getattr(settings, name)
        if path is not None and name in _COPIED and is_url(path):
            path, _ = local_path(path)
            setattr(settings, name, path)
        if path is not None and not is_file(path):
            problem = 'is a directory, not a file' if is_folder(path) else 'no such file'
            raise InputError(f'`{name}` {path!r}: {problem}')


def segment_files(settings, is_source, **names):
    """The files of a task's segments, named by `SEGMENT_file` or found in `data_dir`.

    Parameters
    ----------
    is_source : callable
        Whether a path is of something that the task reads.
    **names
        Segment -> tuple of the names that its file may have in the folder.
    """
    files = {segment: getattr(settings, f'{segment}_file') for segment in names}
    given = [segment for segment, path in files.items() if path and not is_source(path)]
    check_files(settings, *(f'{segment}_file' for segment in given))
    if settings.data_dir is not None:
        in_folder = {}
        for segment, file_names in names.items():
            paths = (join(settings.data_dir, name) for name in file_names)
            in_folder[segment] = next(filter(is_source, paths), None)
        if not any(in_folder.values()):
            expected = ', '.join(' or '.join(file_names) for file_names in names.values())
            raise InputError(f'`data_dir` {settings.data_dir!r} has none of {expected}')
        files = {segment: path or in_folder[segment] for segment, path in files.items()}
    return {segment: path for segment, path in files.items() if path}
