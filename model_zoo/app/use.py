"""Commands that use a model, in one grammar: their flags, texts and records.

zoo VERB MODEL [TEXT ...] [--file FILE] [--output FILE]
"""

import contextlib
import csv
import functools
import glob
import hashlib
import io
import itertools
import json
import logging
import os
import sys
import tempfile
import types
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..errors import InputError, reporting
from ..inference import pipeline
from ..inference.classification import LIKELY
from ..inference.pipeline_base import POOL_ITEMS
from ..records import (
    PAIRS,
    TEXTS,
    choose_columns,
    has_json,
    is_table_file,
    read_records,
)
from ..util.display import counted, in_number
from ..util.files import atomic_write
from ..util.reading import check_encoding, read_lines, state_of
from ..util.remote import is_url
from .arguments import engine_of
from .many_files import run_over_files

logger = logging.getLogger(__name__)

_ENDINGS = {'.csv': 'csv', '.tsv': 'tsv', '.jsonl': 'jsonl', '.ndjson': 'jsonl', '.json': 'json'}
_ALIGNED = 100  # records of a table whose cells say how wide its columns are


# -- commands -------------------------------------------------------------------------------------


def run_pipeline(task, args, texts, records):
    """Write the records of a pipeline's results."""
    engine = engine_of(args.engine, args.precision, args.file)
    made = pipeline(task, args.model, engine=engine, precision=args.precision)
    write_records(records(made, texts), args.format, args.output)


def write_results(job, args, pairs=False):
    """Write a record for each text of a command, or with ``--files`` a file of results for each."""
    if args.files:
        if args.texts or args.file or args.text_column:
            raise InputError('names the texts: leave out other texts and `file`', field='files')
        count = run_over_files(job, args, job.settings)
        logger.info('%s in %s', in_number(count, 'texts'), args.output_dir)
        return
    if args.output_dir or args.ray:
        raise InputError('and `ray` go with `files`', field='output_dir')
    known = job.text_columns if args.file and not args.text_column else ()
    write_records(_answered(job, _given(args, args.texts, pairs, known)), args.format, args.output)


def _answered(job, given):
    """Yield the columns of each text with its result; a blank text's result has no values."""
    taken, given, empty = set(), iter(given), None
    while chunk := list(itertools.islice(given, POOL_ITEMS)):
        results = iter(job.results([each.text for each in chunk if not each.is_blank]))
        for each in chunk:
            if each.is_blank and empty is None:
                empty = _without_values(next(iter(job.results(['-']))))
            result = empty if each.is_blank else next(results)
            if not each.columns:
                yield {**result, 'text': each.line}
                continue
            taken.update(each.columns)
            named = {f'predicted_{k}' if k in taken else k: value for k, value in result.items()}
            yield {**each.columns, **named}


def _without_values(result):
    return {
        name: dict.fromkeys(value) if isinstance(value, dict) else None
        for name, value in result.items()
    }


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

    @property
    def line(self):
        """The text, or two with a tab between them."""
        return self.text if isinstance(self.text, str) else '\t'.join(self.text)


def read_texts(args, texts, pairs=False):
    """Read the texts of a command line, and then the texts of its file that aren't blank."""
    return texts_of(_given(args, texts, pairs))


def texts_of(given):
    """Yield the texts that aren't blank; rows of a table without a text are counted and logged."""
    blank = 0
    for each in given:
        if not each.is_blank:
            yield each.text
        blank += each.is_blank and bool(each.columns)
    if blank:
        logger.warning('%s skipped: the text is blank', in_number(blank, 'rows'))


def _given(args, texts, pairs, known=()):
    if not texts and args.file is None:
        raise InputError('there is no text: give texts, or `file` FILE (- for standard input)')
    columns = [args.text_column, args.text_pair_column]
    if any(columns) and args.file is None:
        raise InputError('needs `file`', field='text_column')
    if args.file is not None:
        check_encoding(args.encoding)
    for text in texts:
        if is_table_file(text) and os.path.isfile(text):
            logger.warning('%r is read as a text; `file` %s reads the file', text, text)
    given = map(Given, map(_split_pair, texts) if pairs else texts)
    if args.file is None:
        return given
    rows = read_file(args.file, *columns, pairs, encoding=args.encoding, known=known)
    return itertools.chain(given, rows)


def _split_pair(line):
    texts = tuple(line.split('\t'))
    if len(texts) != 2:
        raise InputError(
            f'a line has {len(texts)} texts with tabs between: {line!r:.80}', field='pairs'
        )
    return texts


def read_file(
    path,
    column=None,
    pair_column=None,
    pairs=False,
    field='text_column',
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
    if path == '-' and column:
        raise InputError('needs a file that ends in .csv, .tsv or .jsonl', field='text_column')
    if path == '-' or not (column or pair_column or format or is_table_file(path)):
        lines = _standard_input(encoding) if path == '-' else read_lines(path, encoding)
        for number, line in lines:
            text = line.rstrip('\r\n')
            yield Given(_split_pair(text) if pairs and text.strip() else text, number)
        return
    if pair_column is not None and column is None:
        raise InputError('goes with `text_column`', field='text_pair_column')
    wanted = None if column is None else [c for c in (column, pair_column) if c is not None]
    usual = {None: (*PAIRS, *TEXTS), True: PAIRS, False: TEXTS}[pairs]
    usual = (tuple(known), *usual) if known else usual
    has_names, usual_names = True, {*itertools.chain(*PAIRS, *TEXTS), *map(str.lower, known)}

    def has_header(cells):
        nonlocal has_names
        are_numbers = wanted and all(name.isdecimal() for name in wanted)
        if are_numbers or (wanted is None and len(cells) == (2 if pairs else 1)):
            has_names = not usual_names.isdisjoint(cell.strip().lower() for cell in cells)
        return has_names

    number, columns = 0, None
    records = read_records(
        path, format=format, encoding=encoding, header=has_header, keep_blank=True
    )
    for number, (where, record) in enumerate(records, 1):
        if columns is None:
            bare = tuple(record) if not has_names else None
            columns = choose_columns(record, wanted or bare, usual, field, str(path))
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


# -- a file of texts, and their vectors in a file beside it ---------------------------------------


class Corpus:
    """Texts of a file, which is read anew each time they are needed."""

    def __init__(self, path, field='text', encoding=None):
        self.path, self._encoding = path, encoding
        self._column = None if field == 'text' else field  # else one of the usual names
        self._format = None
        if not is_table_file(path):
            self._format = 'json' if has_json(path, encoding) else None
            self._column = self._column if self._format else None
        if next(iter(self), None) is None:
            raise InputError(f'{path!r} is empty: give a file with one text per line')

    def __iter__(self):
        """Yield the line's number and the text."""
        rows = read_file(
            self.path,
            self._column,
            field='text_field',
            encoding=self._encoding,
            format=self._format,
        )
        return ((row.number, row.text) for row in rows if not row.is_blank)

    def vectors(self, embed, settings, keeps=True):
        """The texts' vectors, taken from the file beside the corpus if that has them."""
        digest, count = self._digest()
        model = hashlib.blake2b(json.dumps(settings).encode(), digest_size=6).hexdigest()
        path = f'{self.path}.{model}-{digest}.npy'
        if keeps and os.path.exists(path):
            with contextlib.suppress(Exception):  # Python's parser reads a damaged header
                kept = np.load(path, mmap_mode='r')
                if kept.ndim == 2 and len(kept) == count and kept.dtype == np.float32:
                    logger.info('using the vectors in %s', path)
                    return kept
        with counted('texts', count) as on_batch:
            if keeps:
                try:
                    return self._write(path, embed(self._texts(), on_batch), count, model)
                except InputError as error:
                    logger.warning('the vectors are not kept: %s', error)
            with tempfile.NamedTemporaryFile() as file:
                return _fill(file.name, embed(self._texts(), on_batch), count)

    def _texts(self):
        return (text for _, text in self)

    def _write(self, path, vectors, count, model):
        with atomic_write(path, None) as temporary:
            _fill(temporary, vectors, count)
        for other in glob.glob(f'{glob.escape(self.path)}.{model}-*.npy'):
            if other != path:  # of what the corpus was before
                with contextlib.suppress(OSError):
                    os.remove(other)
        return np.load(path, mmap_mode='r')

    def _digest(self):
        """A checksum of the texts, and their number."""
        digest, count = hashlib.blake2b(digest_size=12), 0
        for _, text in self:
            digest.update(text.encode('utf-8', 'surrogatepass') + b'\n')
            count += 1
        return digest.hexdigest(), count


def _fill(path, vectors, count):
    """Write vectors to a .npy file, and return its array."""
    mapped = None
    for number, vector in enumerate(vectors):
        if mapped is None:
            shape = (count, len(vector))
            mapped = np.lib.format.open_memmap(path, 'w+', np.float32, shape)
        mapped[number] = vector
    mapped.flush()
    return mapped


# -- records --------------------------------------------------------------------------------------


def write_format(format, output):
    """The format of records: the given format, or the format of the file's ending."""
    if format is not None:
        return format
    if output is None:
        return 'table' if sys.stdout.isatty() else 'jsonl'
    format = _ENDINGS.get(os.path.splitext(output)[1].lower())
    if format is None:
        raise InputError(
            f'{output!r}: end it in {", ".join(_ENDINGS)}, or give `format`', field='output'
        )
    return format


def write_records(records, format=None, output=None):
    """Write dicts with the same keys as they come, a file whole or not at all; returns how many."""
    format = write_format(format, output)
    count = 0

    def noted():
        nonlocal count
        for record in records:
            count += 1
            yield record

    with contextlib.ExitStack() as stack:
        file = sys.stdout
        if output is not None:
            if not is_url(output):
                os.makedirs(os.path.dirname(output) or '.', exist_ok=True)
            file = stack.enter_context(atomic_write(output))
        else:
            sys.stdout.reconfigure(errors='replace')  # a terminal may lack characters
        for line in _table(noted()) if format == 'table' else _lines(noted(), format):
            file.write(line)
            if output is None:
                file.flush()
    return count


def _lines(records, format):
    """Yield a line for each record, or an array's; of CSV and TSV also one with the names."""
    if format == 'json':
        between = '[\n'
        for record in records:
            yield between + json.dumps(record, ensure_ascii=False)
            between = ',\n'
        yield '[]\n' if between == '[\n' else '\n]\n'
        return
    if format == 'jsonl':
        for record in records:
            yield json.dumps(record, ensure_ascii=False) + '\n'
        return
    names = None
    for record in map(_flat, records):
        if names is None:
            names = list(record)
            yield _row(names, format)
        yield _row([record.get(name) for name in names], format)


def _row(cells, format):
    if format == 'tsv':
        return '\t'.join(map(_cell, cells)) + '\n'
    text = io.StringIO()
    csv.writer(text, lineterminator='\n').writerow(
        [json.dumps(cell, ensure_ascii=False) if isinstance(cell, list) else cell for cell in cells]
    )
    return text.getvalue()


def _table(records):
    records = map(_flat, records)
    first = list(itertools.islice(records, _ALIGNED))
    if not first:
        return
    names = list(first[0])
    rows = [_cells(record, names) for record in first]
    is_number = [isinstance(first[0][name], (int, float)) for name in names]
    widths = [max(map(_width, column)) for column in zip(names, *rows)]
    widths[-1] = 0 if not is_number[-1] else widths[-1]  # no spaces behind the last text

    def line(cells):
        padded = []
        for cell, width, right in zip(cells, widths, is_number):
            space = ' ' * (width - _width(cell))
            padded.append(space + cell if right else cell + space)
        return '  '.join(padded) + '\n'

    others = (_cells(record, names) for record in records)
    yield from map(line, itertools.chain([names], rows, others))


def _cells(record, names):
    return [_cell(record.get(name)) for name in names]


def _flat(record):
    """A record with a column for each value of a dict in it."""
    flat = {}
    for name, value in record.items():
        if isinstance(value, dict):
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


# -- jobs that workers do, too ---------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _opened(make, options):
    """Open something once per process, with the items of its options."""
    return make(**dict(options))


class Labeller:
    """Labels texts, or a file of them; for a worker."""

    def __init__(self, options, pairs=False, all_scores=False):
        self._options = {'task': 'text-classification', **options}
        self._pairs, self._all_scores = pairs, all_scores

    @property
    def settings(self):
        """All that the records depend on, plain JSON."""
        model = sorted(state_of(self._options['model']))
        return [self._options, self._pairs, self._all_scores, model]

    @property
    def _classifier(self):
        return _opened(pipeline, tuple(self._options.items()))

    @property
    def text_columns(self):
        """The texts' columns in the file that the model was trained on, if it says so."""
        return self._classifier.block.config.extras.get('text_columns', ())

    def results(self, texts):
        """Yield a dict for each text, or pair of texts."""
        classifier = self._classifier
        several = classifier.is_multi_label
        for result in classifier(texts, top_k=None if self._all_scores or several else 1):
            scores = {answer['label']: answer['score'] for answer in result}
            if self._all_scores:
                yield {'scores': scores}
            elif several:  # as in the files that train a model of several labels
                likely = [label for label in classifier.labels if scores[label] >= LIKELY]
                yield {'label': ','.join(likely), 'scores': scores}
            else:
                yield scores if classifier.is_regression else result[0]

    def __call__(self, task):
        given = (
            Given(_split_pair(line) if self._pairs and line.strip() else line)
            for line in task.lines()
        )
        return write_records(_answered(self, given), task.output.rpartition('.')[2], task.output)
