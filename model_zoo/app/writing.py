"""The records of a command: JSON, CSV or TSV, or a table on a terminal."""

import itertools
import os
import sys
import unicodedata

from ..errors import InputError
from ..tasks.tables import cell_text, table_lines
from ..util.files import atomic_write
from ..util.remote import is_url

_ENDINGS = {'.csv': 'csv', '.tsv': 'tsv', '.jsonl': 'jsonl', '.ndjson': 'jsonl', '.json': 'json'}
_ALIGNED = 100  # records of a table whose cells say how wide its columns are


class Scores(dict):
    """A value of each label; a table has a column for each."""


def write_records(records, format=None, output=None, names=(), form=(',', '\n', '')):
    """Write dicts as they come, a file whole or not at all.

    By default the file's ending says the format. A table has the columns `names`, and the first
    record's; `form` is what `csv_form` returns.
    """
    *form, mark = form
    if output is None:
        sys.stdout.reconfigure(errors='replace')  # a terminal may lack characters
        format = format or ('table' if sys.stdout.isatty() else 'jsonl')
        for line in _lines(records, format, names, form):
            print(line, end='', flush=True)
        return
    format = format or _ENDINGS.get(os.path.splitext(output)[1].lower())
    if format is None:
        problem = f'{output!r}: end it in {", ".join(_ENDINGS)}, or give `format`'
        raise InputError(problem, field='output')
    if not is_url(output):
        os.makedirs(os.path.dirname(output) or '.', exist_ok=True)
    with atomic_write(output) as file:
        file.write(mark if format == 'csv' else '')
        file.writelines(_lines(records, format, names, form))


def _lines(records, format, names, form):
    """Yield the lines of records; of CSV, TSV and tables the first has the names."""
    if format == 'json':
        between = '[\n'
        for record in records:
            yield between + cell_text(record)
            between = ',\n'
        yield '[]\n' if between == '[\n' else '\n]\n'
    elif format == 'jsonl':
        for record in records:
            yield cell_text(record) + '\n'
    else:
        rows = map(_flat, records)
        first = list(itertools.islice(rows, _ALIGNED if format == 'table' else 1))
        names = list(dict.fromkeys(itertools.chain(names, *first)))
        cells = ([row.get(name) for name in names] for row in itertools.chain(first, rows))
        cells = itertools.chain([names] * bool(first), cells)
        if format == 'table':
            yield from map(_aligned(names, first), cells)
        else:
            yield from table_lines(cells, *(form if format == 'csv' else ()))


def _aligned(names, rows):
    """Return a function that makes a table's line of cells; its first rows say how wide it is."""
    columns = [[name, *(_cell(row.get(name)) for row in rows)] for name in names]
    widths = [max(map(_width, column)) for column in columns]
    are_numbers = [rows and isinstance(rows[0].get(name), (int, float)) for name in names]
    if names and not are_numbers[-1]:
        widths[-1] = 0  # no spaces behind the last text

    def line(cells):
        padded = []
        for cell, width, is_number in zip(map(_cell, cells), widths, are_numbers):
            space = ' ' * (width - _width(cell))
            padded.append(space + cell if is_number else cell + space)
        return '  '.join(padded) + '\n'

    return line


def _flat(record):
    """A record with a column for each of its scores."""
    flat = {}
    for name, value in record.items():
        if isinstance(value, Scores):
            flat.update({f'{name}.{key}': inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat


def _cell(value):
    """A value for people: rounded, in one line."""
    text = f'{value:.4f}' if isinstance(value, float) else '' if value is None else str(value)
    return text.translate({9: ' ', 10: ' ', 13: ' '})


def _width(text):
    """Columns of a terminal that a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in text)
