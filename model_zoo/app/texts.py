"""The texts of a command: words of its line, lines of a file, rows of a table."""

import itertools
import logging
import os
import sys
import types
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import InputError, reporting
from ..records import PAIRS, TEXTS, choose_columns, is_table_file, read_records
from ..util.display import in_number
from ..util.reading import check_encoding, read_lines

logger = logging.getLogger(__name__)


class Given(NamedTuple):
    """A text or a pair of texts, and where it comes from.

    Parameters
    ----------
    number : int
        Of its line or row, from 1.
    columns : dict
        All columns of its row; empty if these have no names.
    """

    text: str | tuple[str, str]
    number: int = 0
    columns: Mapping[str, object] = types.MappingProxyType({})

    @property
    def is_blank(self):
        """Whether there is no text, or no first text of a pair."""
        return not (self.text if isinstance(self.text, str) else self.text[0]).strip()


def read_texts(args, pairs=False):
    """Read the texts of a command line, and then the texts of its file that aren't blank."""
    return texts_of(given_texts(args, pairs))


def texts_of(given):
    """Yield the texts that aren't blank; rows of a table without a text are counted and logged."""
    blank = 0
    for each in given:
        if not each.is_blank:
            yield each.text
        blank += each.is_blank and bool(each.columns)
    if blank:
        logger.warning('%s skipped: the text is blank', in_number(blank, 'rows'))


def given_texts(args, pairs, known=()):
    """Return a `Given` for each text of a command line, and then of its file."""
    texts = args.texts
    if not texts and args.file is None:
        cure = 'give one or more, each in quotes, or `file` FILE (- for standard input)'
        raise InputError(f'there is no {args.one}: {cure}')
    if (args.text_column or args.text_pair_column) and args.file is None:
        raise InputError('needs `file`', field='text_column')
    for text in texts:
        if is_table_file(text) and os.path.isfile(text):
            logger.warning('%r is read as a text; `file` %s reads the file', text, text)
    given = map(Given, map(_split_pair, texts) if pairs else texts)
    return given if args.file is None else itertools.chain(given, rows_of(args, pairs, known))


def rows_of(args, pairs, known):
    """Return a `Given` for each row of a command's file; see `read_file`."""
    check_encoding(args.encoding)
    columns = args.text_column, args.text_pair_column
    return read_file(args.file, *columns, pairs, encoding=args.encoding, known=known)


def _split_pair(line):
    texts = tuple(line.split('\t'))
    if len(texts) != 2:
        raise InputError(f'needs two texts with a tab between: {line!r:.80}', field='pairs')
    return texts


def read_file(
    path, column=None, pair_column=None, pairs=False, encoding=None, format=None, known=()
):
    """Yield a `Given` for each row of a table, or line of a text; its text may be blank.

    Files of known endings are tables, and any file whose columns are named. By default the columns
    have the names that are `known`, or usual ones, such as ``text``; without these, a file with one
    column, or with two where `pairs` are read, has no header. `pairs` None takes pairs if the
    columns are called so.
    """
    is_table = column or pair_column or format or is_table_file(path)
    if path == '-' and column:
        raise InputError('needs a file that ends in .csv, .tsv or .jsonl', field='text_column')
    if path == '-' or not is_table:
        lines = _standard_input(encoding) if path == '-' else read_lines(path, encoding)
        for number, line in lines:
            text = line.rstrip('\r\n')
            yield Given(_split_pair(text) if pairs and text.strip() else text, number)
        return
    if pair_column is not None and column is None:
        raise InputError('goes with `text_column`', field='text_pair_column')
    wanted = [name for name in (column, pair_column) if name is not None]
    usual = {None: (*PAIRS, *TEXTS), True: PAIRS, False: TEXTS}[pairs]
    usual = (tuple(known), *usual) if known else usual
    names = {*itertools.chain(*PAIRS, *TEXTS), *map(str.lower, known)}
    has_names, columns = True, None

    def has_header(cells):
        nonlocal has_names
        if all(name.isdecimal() for name in wanted) if wanted else len(cells) == 1 + bool(pairs):
            has_names = not names.isdisjoint(cell.strip().lower() for cell in cells)
        return has_names

    rows = read_records(path, format=format, encoding=encoding, header=has_header, keep_blank=True)
    for number, (where, record) in enumerate(rows, 1):
        if columns is None:
            bare = None if has_names else tuple(record)
            columns = choose_columns(record, wanted or bare, usual, 'text_column', str(path))
        texts = [record.get(name) for name in columns]
        texts = [''] * len(texts) if texts[0] is None else texts
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f'there is no text in column {columns[0]!r}', where=where)
        text = tuple(texts) if len(texts) == 2 else texts[0]
        line = where.line if where.unit == 'line' else number
        yield Given(text, line, record if has_names else {})


def _standard_input(encoding):
    sys.stdin.reconfigure(encoding=encoding or 'utf-8', errors='strict')
    problem = f'standard input is not {encoding or "UTF-8"}'
    with reporting(problem, '; --encoding names another', errors=UnicodeDecodeError):
        yield from enumerate(sys.stdin, 1)
