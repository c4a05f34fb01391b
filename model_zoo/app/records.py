"""Input texts and output records of the commands that use a model."""

import contextlib
import json
import os
import sys

from ..errors import InputError
from ..util.files import atomic_write
from ..util.lines import read_lines
from ..util.remote import is_url

__all__ = ['add_record_arguments', 'read_texts', 'write_records']

FORMATS = ('table', 'jsonl', 'tsv')


def add_record_arguments(parser):
    """The flags of `write_records`."""
    parser.add_argument(
        '--format', choices=FORMATS,
        help='default: table on a terminal, jsonl (a JSON object a line) elsewhere',
    )  # fmt: skip
    parser.add_argument('--output', metavar='FILE', help='default: standard output')


def read_texts(texts, file=None):
    """The texts of a command line, followed by the lines of a file.

    Parameters
    ----------
    texts : list of str
    file : str, optional
        UTF-8, a path or URL; empty lines are left out. ``-`` is standard input.

    Returns
    -------
    iterator of str
    """
    if not texts and file is None:
        raise InputError('there is no text: give texts, or --file FILE (- for standard input)')
    return _texts(texts, file)


def _texts(texts, file):
    yield from texts
    if file == '-':
        sys.stdin.reconfigure(encoding='utf-8', errors='strict')
        try:
            for line in sys.stdin:
                if line.strip():
                    yield line.rstrip('\r\n')
        except UnicodeDecodeError as error:
            raise InputError(f'standard input is not UTF-8: {error}') from error
    elif file is not None:
        for _, line in read_lines(file):
            if line.strip():
                yield line.rstrip('\r\n')


def write_records(records, format=None, output=None):
    """Write records as they come.

    Parameters
    ----------
    records : iterable of dict
        All with the same keys.
    format : {'table', 'jsonl', 'tsv'}, optional
    output : str, optional
        Path or URL of a file, which is written whole or not at all; default: standard output.

    Returns
    -------
    int
        How many there were.
    """
    if format is None:
        format = 'table' if output is None and sys.stdout.isatty() else 'jsonl'
    count = 0
    with contextlib.ExitStack() as stack:
        file = sys.stdout
        if output is not None:
            if not is_url(output):
                os.makedirs(os.path.dirname(output) or '.', exist_ok=True)
            file = stack.enter_context(atomic_write(output))
        else:
            sys.stdout.reconfigure(errors='replace')  # a terminal may lack characters
        for count, record in enumerate(records, 1):
            if count == 1 and format == 'tsv':
                file.write('\t'.join(record) + '\n')
            file.write(_line(record, format) + '\n')
            if output is None:
                file.flush()
    return count


def _line(record, format):
    if format == 'jsonl':
        return json.dumps(record, ensure_ascii=False)
    cells = [f'{each:.4f}' if isinstance(each, float) else str(each) for each in record.values()]
    cells = [cell.translate({9: ' ', 10: ' ', 13: ' '}) for cell in cells]
    if format == 'tsv':
        return '\t'.join(cells)
    return '  '.join(f'{cell:<12}' for cell in cells[:-1]) + '  ' + cells[-1]
