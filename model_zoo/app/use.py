"""Commands that use a model, in one grammar: their flags, texts and records.

zoo VERB MODEL [TEXT ...] [--file FILE] [--output FILE]
"""

import contextlib
import glob
import hashlib
import itertools
import logging
import os
import sys
import types
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..errors import InputError, reporting
from ..inference import pipeline
from ..inference.classification import LIKELY
from ..inference.pipeline_base import POOL_ITEMS
from ..records import PAIRS, TEXTS, choose_columns, csv_form, has_json, is_table_file, read_records
from ..tasks.tables import cell_text, table_lines
from ..tasks.targets import join_names
from ..util.display import in_number, progress
from ..util.files import atomic_write
from ..util.reading import check_encoding, read_lines
from ..util.remote import is_file, is_folder, is_url
from .arguments import engine_of
from .cli import setup_logging

logger = logging.getLogger(__name__)

_ENDINGS = {'.csv': 'csv', '.tsv': 'tsv', '.jsonl': 'jsonl', '.ndjson': 'jsonl', '.json': 'json'}
_ALIGNED = 100  # records of a table whose cells say how wide its columns are


def run_pipeline(task, args, records, pairs=False):
    """Write the records of a pipeline's results for a command's texts."""
    setup_logging()
    texts = read_texts(args, pairs)  # bad ones are errors before the model is opened
    write_records(records(_open(task, args), texts), args.format, args.output)


def _open(task, args, **options):
    engine = engine_of(args.engine, args.precision, args.file)
    return pipeline(task, args.model, engine=engine, precision=args.precision, **options)


# -- texts ----------------------------------------------------------------------------------------


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
    return texts_of(_given(args, pairs))


def texts_of(given):
    """Yield the texts that aren't blank; rows of a table without a text are counted and logged."""
    blank = 0
    for each in given:
        if not each.is_blank:
            yield each.text
        blank += each.is_blank and bool(each.columns)
    if blank:
        logger.warning('%s skipped: the text is blank', in_number(blank, 'rows'))


def _given(args, pairs, known=()):
    texts = args.texts
    if not texts and args.file is None:
        raise InputError('there is no text: give texts, or `file` FILE (- for standard input)')
    if (args.text_column or args.text_pair_column) and args.file is None:
        raise InputError('needs `file`', field='text_column')
    for text in texts:
        if is_table_file(text) and os.path.isfile(text):
            logger.warning('%r is read as a text; `file` %s reads the file', text, text)
    given = map(Given, map(_split_pair, texts) if pairs else texts)
    return given if args.file is None else itertools.chain(given, _rows(args, pairs, known))


def _rows(args, pairs, known):
    check_encoding(args.encoding)
    columns = args.text_column, args.text_pair_column
    return read_file(args.file, *columns, pairs, encoding=args.encoding, known=known)


def _split_pair(line):
    texts = tuple(line.split('\t'))
    if len(texts) != 2:
        raise InputError(f'needs two texts with a tab between: {line!r:.80}', field='pairs')
    return texts


def read_file(
    path,
    column=None,
    pair_column=None,
    pairs=False,
    encoding=None,
    format=None,
    known=(),
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
        yield Given(
            tuple(texts) if len(texts) == 2 else texts[0],
            where.line if where.unit == 'line' else number,
            record if has_names else {},
        )


def _standard_input(encoding):
    sys.stdin.reconfigure(encoding=encoding or 'utf-8', errors='strict')
    problem = f'standard input is not {encoding or "UTF-8"}'
    with reporting(problem, '; --encoding names another', errors=UnicodeDecodeError):
        yield from enumerate(sys.stdin, 1)


class Corpus:
    """Texts of a file, and their vectors in a file beside it.

    Attributes
    ----------
    rows : list of (int, str)
        The number of its line, and each text that isn't blank.
    """

    def __init__(self, path, column=None, encoding=None):
        is_json = not is_table_file(path) and has_json(path, encoding)
        column = column if is_json or is_table_file(path) else None
        rows = read_file(path, column, encoding=encoding, format='json' if is_json else None)
        self.path, self.rows = path, [(row.number, row.text) for row in rows if not row.is_blank]
        if not self.rows:
            raise InputError(f'{path!r} is empty: give a file with one text per line')

    def vectors(self, embed, model, keeps=True):
        """The texts' vectors, from the file beside the corpus if that has those of a `model`."""
        texts, model = [text for _, text in self.rows], model[:12]
        content = '\n'.join(texts).encode('utf-8', 'surrogatepass')
        digest = hashlib.blake2b(content, digest_size=12).hexdigest()
        path = f'{self.path}.{model}-{digest}.npy'
        if keeps and os.path.exists(path):
            with contextlib.suppress(Exception):  # Python's parser reads a damaged header
                kept = np.load(path, mmap_mode='r')
                if kept.ndim == 2 and len(kept) == len(texts) and kept.dtype == np.float32:
                    logger.info('using the vectors in %s', path)
                    return kept
        vectors = np.stack(list(progress(embed(texts), 'texts', total=len(texts))))
        if keeps:
            try:
                with atomic_write(path, 'wb') as file:
                    np.save(file, vectors)
            except InputError as error:
                logger.warning('the vectors are not kept: %s', error)
                return vectors
            for other in glob.glob(f'{glob.escape(self.path)}.{model}-*.npy'):
                if other != path:  # of what the corpus was before
                    with contextlib.suppress(OSError):
                        os.remove(other)
        return vectors


# -- records --------------------------------------------------------------------------------------


class Scores(dict):
    """A value of each label; a table has a column for each."""


def write_records(records, format=None, output=None, names=(), form=(',', '\n', '')):
    """Write dicts as they come, a file whole or not at all.

    By default the format is that of the file's ending. A table has the columns `names`, and those
    of the first record; `form` is what `csv_form` returns.
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


# -- labels of texts -------------------------------------------------------------------------------


def label_texts(args, pairs=False):
    """Write a record for each text of a command."""
    setup_logging()
    classifier = _open('text-classification', args, max_length=args.max_length)
    known = ()  # the texts' columns in the file that the model was trained on, if it says so
    if args.file and not args.text_column:
        known = classifier.block.config.extras.get('text_columns', ())
    given, names, like = _given(args, pairs, known), {}, None
    if args.file and (is_file(args.file) or is_folder(args.file)):  # a pipe is read only once
        like = args.file
        for row in _rows(args, pairs, known):  # rows of JSON have different columns
            names.update(row.columns)
    records = _labelled(classifier, given, args.all_scores, set(names))
    write_records(records, args.format, args.output, names, csv_form(like, args.encoding))


def _labelled(classifier, given, all_scores, taken):
    """Yield the columns of each text with its result, whose names none of the `taken` columns has.

    A blank text's result has no values.
    """
    given, empty = iter(given), None

    def free(name):
        while name in taken or any(column.startswith(f'{name}.') for column in taken):
            name = f'predicted_{name}'
        return name

    while chunk := list(itertools.islice(given, POOL_ITEMS)):
        texts = [each.text for each in chunk if not each.is_blank]
        results = results_of(classifier, texts, all_scores)
        for each in chunk:
            if each.is_blank and empty is None:
                empty = {
                    name: Scores.fromkeys(value) if isinstance(value, dict) else None
                    for name, value in next(results_of(classifier, ['-'], all_scores)).items()
                }
            result = empty if each.is_blank else next(results)
            taken.update(each.columns)
            named = {free(name): value for name, value in result.items()}
            if each.columns:
                yield {**each.columns, **named}
            else:
                line = each.text if isinstance(each.text, str) else '\t'.join(each.text)
                yield {**named, 'text': line}


def results_of(classifier, texts, all_scores=False):
    """Yield a dict for each text, or pair of texts."""
    several = classifier.is_multi_label
    for result in classifier(texts, top_k=None if all_scores or several else 1):
        scores = Scores((answer['label'], answer['score']) for answer in result)
        if all_scores:
            yield {'scores': scores}
        elif several:  # as in the files that train a model of several labels
            likely = [label for label in classifier.labels if scores[label] >= LIKELY]
            yield {'label': join_names(likely), 'scores': scores}
        else:
            yield scores if classifier.is_regression else result[0]
