"""The rows of tables: TSV, CSV, JSON lines, and folders of Hugging Face's `datasets`."""

import csv
import os

from ...errors import InputError, MissingExtraError
from ...util.files import parse_json, read_json
from ...util.lines import read_lines

__all__ = ['find_splits', 'has_named_fields', 'is_table', 'read_rows']

_JSON = ('.jsonl', '.ndjson', '.json')
_SPLITS = {'train': ('train',), 'dev': ('validation', 'dev', 'valid'), 'test': ('test',)}


def is_table(path):
    """Whether there is a file, or a data set's folder."""
    return os.path.isfile(path) or os.path.isfile(os.path.join(path, 'state.json'))


def find_splits(folder):
    """The data sets in a folder that ``DatasetDict.save_to_disk`` has written.

    Parameters
    ----------
    folder : str

    Returns
    -------
    dict of str to str
        'train', 'dev' and 'test' -> folder, for those that are there; empty for another folder.
    """
    index = os.path.join(folder, 'dataset_dict.json')
    if not os.path.isfile(index):
        return {}
    content = read_json(index)
    names = content.get('splits') if isinstance(content, dict) else None
    if not isinstance(names, list):
        raise InputError(f'{index!r} does not list splits')
    found = {
        segment: next((os.path.join(folder, name) for name in known if name in names), None)
        for segment, known in _SPLITS.items()
    }
    return {segment: path for segment, path in found.items() if path}


def has_named_fields(path):
    """Whether the rows of a table name their fields, so that positions mean nothing."""
    return os.path.isdir(path) or path.lower().endswith(_JSON)


def read_rows(path):
    """Read a table row by row.

    The ending tells the format: ``.csv``; ``.jsonl``, ``.ndjson`` or ``.json``, with an object a
    line; any other is TSV, whose fields are never quoted. A folder is read by `datasets`.

    Parameters
    ----------
    path : str

    Yields
    ------
    str
        The row's place, for messages.
    list of str or None
        The fields, None for one that is no text; where `has_named_fields`, first the names.

    Raises
    ------
    InputError
        If the table can't be read; the message names the place.
    """
    if os.path.isdir(path):
        return _dataset_rows(path)
    if path.lower().endswith('.csv'):
        return _csv_rows(path)
    return _json_rows(path) if has_named_fields(path) else _tsv_rows(path)


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
    reader = csv.reader((line for _, line in read_lines(path)), strict=True)
    first = 1  # line of a row, which may have several
    try:
        for cells in reader:
            if cells:
                yield f'line {first}', cells
            first = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f'{path}, line {first}: {error}') from None


def _json_rows(path):
    names = None
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise InputError(f'{path}, line {number}: not JSON: {error}') from None
        if not isinstance(row, dict):
            raise InputError(f'{path}, line {number}: a JSON object a line is expected')
        if names is None:
            names = list(row)
            yield f'line {number}', names
        yield f'line {number}', [_text(row.get(name)) for name in names]


def _dataset_rows(path):
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError.of('datasets', 'datasets') from error
    try:
        data = datasets.load_from_disk(path)
    except Exception as error:  # of many kinds
        raise InputError(f'cannot read the data set {path!r}: {error}') from error
    names = data.column_names
    yield 'its columns', names
    classes = {
        name: feature for name, feature in data.features.items()
        if isinstance(feature, datasets.ClassLabel)
    }  # fmt: skip
    for number, row in enumerate(data.with_format(None)):
        for name, feature in classes.items():
            known = row[name] is not None and row[name] >= 0  # -1: there is no label
            row[name] = feature.int2str(row[name]) if known else None
        yield f'row {number}', [_text(row[name]) for name in names]


def _text(value):
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None
