"""Rows as dicts, from any file or object: `read_records`; and their columns: `choose_columns`."""

import codecs
import contextlib
import csv
import itertools
import math
import os
from collections.abc import Iterable

import numpy as np

from .errors import InputError, MissingExtraError, Where, did_you_mean, reporting
from .util.reading import parse_json, read_json, read_lines
from .util.remote import open_binary

__all__ = ['PAIRS', 'TEXTS', 'choose_columns', 'find_splits', 'is_table', 'read_records']

_FORMATS = {f'.{name}': name for name in ('csv', 'tsv', 'json', 'parquet')}
_FORMATS.update(dict.fromkeys(('.jsonl', '.ndjson'), 'json'))
#: usual names of the column of a text
TEXTS = (('text',), ('sentence',), ('review',), ('content',))
#: usual names of the columns of a pair of texts
PAIRS = (
    ('sentence1', 'sentence2'),
    ('premise', 'hypothesis'),
    ('question1', 'question2'),
    ('question', 'sentence'),
    ('text_a', 'text_b'),
    ('text', 'text_pair'),
    ('question', 'context'),
)
#: segment -> the names that its split may have in a `datasets.DatasetDict`
SPLITS = {'train': ('train',), 'dev': ('validation', 'dev', 'valid'), 'test': ('test',)}
#: the problem of a cell that must have a text
EMPTY = 'there is no text or label; `skip_empty` leaves out rows without one'
_CSV = {'skipinitialspace': True}  # a space may come before a quoted field
_SAMPLE = 20  # lines of CSV that say what separates the fields


def is_path(source):
    """Return whether a set is given by its path, and not by rows."""
    return isinstance(source, (str, os.PathLike))


def is_table(path):
    """Return whether there is a file, or a data set's folder."""
    return os.path.isfile(path) or _is_dataset_folder(path)


def is_table_file(path):
    """Return whether a path's ending says that it is a table, or it is a data set's folder."""
    return os.path.splitext(path)[1].lower() in _FORMATS or _is_dataset_folder(path)


def _is_dataset_folder(path):
    return os.path.isfile(os.path.join(path, 'state.json'))


def has_json(path, encoding=None):
    """Return whether the first line of a file that isn't blank begins an object."""
    first = next((line for _, line in read_lines(path, encoding) if line.strip()), '')
    return first.lstrip().startswith('{')


def has_typed_values(path):
    """Return whether the values of a file or folder have types, so that there may be lists."""
    return _format(path) in ('json', 'parquet', 'datasets')


def find_splits(folder):
    """Return the data sets in a folder that ``DatasetDict.save_to_disk`` has written."""
    index = os.path.join(folder, 'dataset_dict.json')
    if not os.path.isfile(index):
        return {}
    names = read_json(index, 'the list of splits', {'splits': list})['splits']
    found = {
        segment: [os.path.join(folder, name) for name in known if name in names]
        for segment, known in SPLITS.items()
    }
    return {segment: paths[0] for segment, paths in found.items() if paths}


# -- records ---------------------------------------------------------------------------------------


def read_records(
    source,
    parts=None,
    name='data',
    *,
    format=None,
    encoding=None,
    header=True,
    keep_blank=False,
    is_strict=True,
):
    """Read rows one by one.

    Parameters
    ----------
    source : str, os.PathLike, DataFrame, ``datasets.Dataset`` or iterable
        A path's ending is its format: ``.csv``, also with semicolons or tabs between the fields;
        ``.jsonl``, ``.ndjson`` or ``.json``, with an object a line or an array of objects;
        ``.parquet``; any other is TSV, whose fields are never quoted. A folder is read by
        `datasets`. An iterable has dicts, tuples or texts.
    parts : dict of int to tuple of str, optional
        Number of a tuple's parts -> their names; a text is a tuple of one.
    name : str
        What messages call rows in memory.
    format : str, optional
        'csv', 'tsv', 'json' or 'parquet', instead of the ending's.
    encoding : str, optional
        Of a text file; default: UTF-8.
    header : bool or callable
        Whether the first row of CSV and TSV names the columns, or a function of that row. Without
        names the keys are the columns' numbers.
    keep_blank : bool
        Whether a blank line of TSV is a row of empty texts. Otherwise it is left out.
    is_strict : bool
        Whether a row of CSV or TSV must have as many fields as the header.

    Yields
    ------
    Where
        The row's place, for messages.
    dict
        Column -> value. Values of CSV and TSV are texts. Classes of `datasets` are their names.

    Raises
    ------
    InputError
        If the file can't be read or has no rows, or a row has another number of fields than the
        header.
    """
    format = format or (_format(source) if is_path(source) else None)
    if format is None:
        records = _given_records(source, parts or {}, name)
    elif format == 'datasets':
        records = _dataset_records(_load_dataset(source), os.fspath(source))
    elif format == 'parquet':
        records = _parquet_records(source)
    elif format == 'json':
        records = _json_records(source, encoding)
    else:
        records = _cell_records(source, format, encoding, header, keep_blank, is_strict)
    first = next(records, None)
    if first is None:
        raise InputError(f'{source if is_path(source) else f"the {name} set"} has no rows')
    yield first
    yield from records


def _format(path):
    if os.path.isdir(path):
        return 'datasets'
    return _FORMATS.get(os.path.splitext(path)[1].lower(), 'tsv')


def _tsv_rows(path, encoding):
    """Yield a line's number and its fields; blank lines at the end are left out."""
    blank = []
    for number, line in read_lines(path, encoding):
        cells = line.rstrip('\r\n').split('\t')
        if len(cells) == 1 and not cells[0].strip():
            blank.append((number, cells))
            continue
        yield from blank
        blank.clear()
        yield number, cells


def csv_form(path, encoding=None):
    """Return the delimiter, the line end and the byte-order mark of CSV as in a file; or usual."""
    if path is None or _format(path) != 'csv':
        return ',', '\n', ''
    lines = [line for _, line in itertools.islice(read_lines(path, encoding), _SAMPLE)]
    with open_binary(path) as file:
        mark = '\ufeff' * (file.read(3) == codecs.BOM_UTF8)
    return _delimiter(lines), '\r\n' if lines[0].endswith('\r\n') else '\n', mark


def _csv_rows(path, encoding):
    """Yield a row's first line and its fields; blank lines are left out."""
    lines = (line for _, line in read_lines(path, encoding))
    sample = list(itertools.islice(lines, _SAMPLE))
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
    lines = itertools.chain(sample, lines)
    reader = csv.reader(lines, delimiter=_delimiter(sample), **_CSV, strict=True)
    first = 1
    try:
        for cells in reader:
            if cells:
                yield first, cells
            first = reader.line_num + 1
    except csv.Error as error:
        raise InputError(str(error), where=Where(str(path), first)) from None


def _delimiter(lines):
    """Return the separator of the fields of CSV: not a comma if the header has none, and all rows
    have the same number of tabs, or of semicolons.
    """
    if lines and len(next(csv.reader(lines[:1], **_CSV), ())) < 2:
        for delimiter in '\t;':
            with contextlib.suppress(csv.Error):  # of other separators' fields
                rows = [row for row in csv.reader(lines, delimiter=delimiter, **_CSV) if row]
                whole = rows[:-1] if len(lines) == _SAMPLE and rows[1:] else rows
                if len({*map(len, whole)}) == 1 and len(whole[0]) > 1:
                    return delimiter
    return ','


def _cell_records(path, format, encoding, header, keep_blank, is_strict):
    names = None
    for line, cells in (_csv_rows if format == 'csv' else _tsv_rows)(path, encoding):
        if not any(cells):
            if names is None or not keep_blank:
                continue
            cells = [''] * len(names)
        if names is None:
            if header(cells) if callable(header) else header:
                names = [cell.strip() for cell in cells]
                before = [names[:number].count(name) for number, name in enumerate(names)]
                # repeated names get numbers, as in pandas
                names = [f'{name}.{n}' if n else name for name, n in zip(names, before)]
                continue
            names = list(range(len(cells)))
        where, count = Where(str(path), line), len(names)
        if is_strict and (len(cells) < count or any(map(str.strip, cells[count:]))):
            rule = 'fields are separated by one TAB each'
            rule = 'a field with a comma in it must be quoted' if format == 'csv' else rule
            problem = f'{len(cells)} fields instead of {count}: {" | ".join(cells)!r:.80}; {rule}'
            raise InputError(problem, where=where)
        yield where, dict(zip(names, cells))


def _json_records(path, encoding):
    """Read an object a line, or an array of objects; empty lines are left out."""
    rows = (each for each in read_lines(path, encoding) if each[1].strip())
    start, unit = next(rows, None), 'line'
    if start is None:
        return
    rows = itertools.chain([start], rows)
    if start[1].lstrip().startswith('['):
        unit, text = 'row', ''.join(line for _, line in rows)
        rows = enumerate(_parsed(text, Where(str(path))))
    for number, fields in rows:
        where = Where(str(path), number, unit=unit)
        fields = _parsed(fields, where) if unit == 'line' else fields
        if not isinstance(fields, dict):
            problem = f'{fields!r:.80} is no object; an object per line is expected, or an array'
            raise InputError(problem, where=where)
        yield where, fields


def _parsed(text, where):
    try:
        return parse_json(text)
    except ValueError as error:
        problem = f'{error}; a line must be an object, or the file an array of objects'
        raise InputError(problem, where=where) from None


def _parquet_records(path):
    MissingExtraError.check('parquet', 'pyarrow')
    import pyarrow
    import pyarrow.parquet

    problem = f'cannot read {str(path)!r}'
    errors = OSError, UnicodeDecodeError, pyarrow.ArrowException
    with reporting(problem, errors=errors), open_binary(path) as file:
        batches = pyarrow.parquet.ParquetFile(file).iter_batches()
        rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
        for number, row in enumerate(rows):
            yield Where(str(path), number, unit='row'), row


# -- data sets, and rows in memory -----------------------------------------------------------------


def _load_dataset(folder):
    MissingExtraError.check('datasets', 'datasets')
    import datasets

    with reporting(f'cannot read the data set {str(folder)!r}', errors=Exception):  # of many kinds
        data = datasets.load_from_disk(os.fspath(folder))
        for each in data.values() if isinstance(data, dict) else [data]:
            each.data.validate(full=True)  # else a damaged text ends the process
    return data


def _is_dataset(source):
    return hasattr(source, 'column_names') and hasattr(source, 'with_format')


def _dataset_records(data, name):
    if isinstance(data, dict):
        raise InputError(f'{name} has the sets {", ".join(data)}: name one of them')
    classes = {column: _class_names(data, column) for column in data.column_names}
    classes = {column: names for column, names in classes.items() if names}
    for number, row in enumerate(data.with_format(None)):
        for column, names in classes.items():
            row[column] = _named_classes(row[column], names)
        yield Where(name, number, unit='row'), row


def _class_names(data, column):
    """Return the names of a column's classes, or of the classes in its lists, or None."""
    feature = (data.features or {}).get(column)  # a stream may not know them
    feature = getattr(feature, 'feature', feature)
    return getattr(feature, 'names', None)


def _named_classes(value, names):
    """Return the names of a class, or of several; None for no label, -1; other numbers stay."""
    if isinstance(value, list):
        return [names[number] if number is not None and number >= 0 else number for number in value]
    return None if value is None or value < 0 else names[value]


def class_names(source, column):
    """Return the names of the classes in a column of a data set of `datasets`, or None."""
    if is_path(source) and _format(source) == 'datasets':
        source = _load_dataset(source)
    return _class_names(source, column) if _is_dataset(source) else None


def _given_records(rows, parts, name):
    if _is_dataset(rows):
        rows = (row for _, row in _dataset_records(rows, name))
    elif hasattr(rows, 'to_dict') and hasattr(rows, 'columns'):
        rows = rows.to_dict('records')
    for number, row in enumerate(rows):
        where = Where(name, number, unit='row')
        if not isinstance(row, dict):
            cells = (row,) if isinstance(row, str) else row if isinstance(row, Iterable) else ()
            cells = tuple(cells)
            names = parts.get(len(cells))
            if names is None:
                forms = ' or '.join(f'({", ".join(names)})' for names in parts.values())
                raise InputError(f'{row!r:.80}; give a dict, or a tuple as {forms}', where=where)
            row = dict(zip(names, cells))
        yield where, {column: plain_value(value) for column, value in row.items()}


def keep_rows(rows):
    """Return a path, or rows in memory, that can be read several times."""
    is_kept = is_path(rows) or _is_dataset(rows) or hasattr(rows, 'columns')
    return rows if is_kept else list(rows)


def plain_value(value):
    """Return a value with Python's numbers instead of NumPy's, and None for a NaN."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value


# -- columns ---------------------------------------------------------------------------------------


def find_column(names, usual):
    """Return the first of the usual names that a table has in any case, as spelt there, or None."""
    spelt = {str(name).lower(): name for name in reversed(list(names))}
    return next((spelt[name] for name in map(str.lower, usual) if name in spelt), None)


def choose_columns(names, given, usual, field, where=None):
    """Return the columns of a table that the user names, or that have usual names.

    Parameters
    ----------
    names : iterable of str or int
        The columns, such as a record.
    given : sequence of str or int, or None
        Names, in any case where only one column is meant, or numbers from 0.
    usual : sequence of tuple of str
        Usual names; the first of them that the table has is taken.
    field : str
        The setting that names the columns.
    where : Where or str, optional
        The table, for messages.

    Returns
    -------
    tuple of str or int
    """
    names = list(names)
    if given:
        found = tuple(_column(names, wanted) for wanted in given)
    else:
        options = (tuple(find_column(names, [name]) for name in wanted) for wanted in usual)
        found = next((option for option in options if None not in option), (None,))
    if None not in found:
        return found
    problem, hint = f'name the right column with `{field}`', ''
    if given:
        wanted = given[found.index(None)]
        similar = did_you_mean(wanted, list(map(str, names)))
        problem = f'`{field}`: there is no column {wanted!r}{similar}'
    shown = ', '.join(map(str, names))
    if len(names) == 1 and {*';\t,'}.intersection(shown):
        hint = '; a file with commas, semicolons or tabs between its fields must be called .csv'
    raise InputError(f'{problem}; the columns are {shown:.300}{hint}', where=where)


def _column(names, wanted):
    """Return the column that the user means, or None."""
    if wanted in names:
        return wanted
    if str(wanted).isdecimal() and int(wanted) < len(names):
        return names[int(wanted)]
    alike = [name for name in names if str(name).lower() == str(wanted).lower()]
    return alike[0] if len(alike) == 1 else None
