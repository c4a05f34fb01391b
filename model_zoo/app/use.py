"""Commands that use a model, in one grammar: their flags, texts and records.

zoo VERB MODEL [TEXT ...] [--file FILE] [--output FILE]
"""

import collections
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
import unicodedata

import numpy as np

from ..errors import InputError, reporting
from ..inference import pipeline
from ..inference.classification import LIKELY
from ..opening import open_tokenizer
from ..tasks.tables import PAIR_COLUMNS, TEXT_COLUMNS, is_table_file, read_rows, usual_columns
from ..util.display import counted
from ..util.files import atomic_write
from ..util.reading import read_json_objects, read_lines, state_of
from ..util.remote import is_url
from . import cli
from .engines import add_use_arguments, engine_of
from .job import describe_vocab
from .many_files import run_over_files

logger = logging.getLogger(__name__)

FORMATS = ('table', 'jsonl', 'csv', 'tsv')
_ENDINGS = {'.csv': 'csv', '.tsv': 'tsv', '.jsonl': 'jsonl', '.ndjson': 'jsonl', '.json': 'jsonl'}
_ALIGNED = 100  # records of a table whose cells say how wide its columns are
_MANY = 1000  # texts that are encoded together


# -- flags ----------------------------------------------------------------------------------------


def use_parser(doc, dest='texts', help='the texts, each in quotes', pairs=True, engine=True):
    """The parser of a command ``zoo VERB MODEL [TEXT ...]``."""
    parser = cli.parser(doc.split('\n')[0])
    add = parser.add_argument
    add('model', help='folder or name of the model')
    one = {'texts': 'text', 'questions': 'question', 'queries': 'query'}[dest]
    add(dest, nargs='*', default=None, metavar=one, help=help)
    add(
        '--file',
        help='file with one text per line (empty lines are skipped), or .csv, .tsv or '
        '.jsonl with a column of texts; -: standard input',
    )
    add(
        '--text_column',
        metavar='COLUMN',
        help="with --file: the texts' column, by name or by number from 0",
    )
    if pairs:
        add(
            '--text_pair_column',
            metavar='COLUMN',
            help='with --file: the column of the second text of a pair',
        )
    if engine:
        add_use_arguments(parser)
    add(
        '--format',
        choices=FORMATS,
        help='default: by the ending of --output (.csv, .tsv); else a '
        'table on a terminal, and jsonl (one JSON object per line) elsewhere',
    )
    add('--output', metavar='FILE', help='default: standard output')
    return parser


def take_model(args, flag, words):
    """Take the first of the words for the model, unless a flag has named that."""
    if words and not args.is_given(flag):
        setattr(args, flag, words[0])
        words = words[1:]
    return words


def run_pipeline(task, args, texts, records):
    """Write the records of a pipeline's results."""
    engine = engine_of(args.engine, args.precision, args.file)
    made = pipeline(task, args.model, engine=engine, precision=args.precision)
    write_records(records(made, texts), args.format, args.output)


def write_results(job, args, pairs=False):
    """Write a record for each text of a command, or with ``--files`` a file of results for each."""
    if args.files:
        if args.texts or args.file or args.text_column:
            raise InputError('--files names the texts: leave out other texts and --file')
        count = run_over_files(job, args, job.settings)
        logger.info('%d texts in %s', count, args.output_dir)
        return
    if args.output_dir or args.ray:
        raise InputError('--output_dir and --ray go with --files')
    format = write_format(args.format, args.output)
    rows = None if format == 'table' or args.texts else collections.deque()
    texts = read_texts(args, args.texts, pairs, rows, keeps_blank=True)
    write_records(_with_rows(_aligned(job.records, texts), rows), format, args.output)


def _aligned(make_records, texts):
    """The records of texts; those of blank ones have the same names, and no values."""
    blanks = collections.deque()  # of the texts that are read: a blank one, or None

    def others():
        for text in texts:
            is_blank = not (text if isinstance(text, str) else text[0]).strip()
            blanks.append(text if is_blank else None)
            if not is_blank:
                yield text

    record = {'text': None}
    for record in make_records(others()):
        while blanks[0] is not None:
            yield _without_values(record, blanks.popleft())
        blanks.popleft()
        yield record
    yield from (_without_values(record, text) for text in blanks)


def _without_values(record, text):
    empty = {
        name: dict.fromkeys(value) if isinstance(value, dict) else None
        for name, value in record.items()
    }
    return {**empty, 'text': text if isinstance(text, str) else '\t'.join(text)}


def _with_rows(records, rows):
    """Each record, with the other columns of its row of a table."""
    for record in records:
        row = rows.popleft() if rows else {}
        yield {**record, **{f'given_{name}' if name in record else name: row[name] for name in row}}


# -- texts ----------------------------------------------------------------------------------------


def read_texts(args, texts, pairs=False, rows=None, keeps_blank=False):
    """The texts of a command line, followed by those of its file; the rest as of `read_file`."""
    if not texts and args.file is None:
        raise InputError('there is no text: give texts, or --file FILE (- for standard input)')
    columns = [args.text_column, getattr(args, 'text_pair_column', None)]
    if any(columns) and args.file is None:
        other = '; the column of --corpus is --text_field' if hasattr(args, 'text_field') else ''
        raise InputError(f'--text_column needs --file{other}')
    for text in texts:
        if is_table_file(text) and os.path.isfile(text):
            logger.warning('%r is read as a text; --file %s reads the file', text, text)
    return _texts(texts, args.file, columns, pairs, rows, keeps_blank)


def _texts(texts, path, columns, pairs, rows, keeps_blank):
    texts = ((0, text, {}) for text in (map(_split_pair, texts) if pairs else texts))
    if path is not None:
        more = read_file(path, *columns, pairs=pairs, keeps_blank=keeps_blank)
        texts = itertools.chain(texts, more)
    for _, text, others in texts:
        if rows is not None:
            rows.append(others)
        yield text


def _split_pair(line):
    texts = tuple(line.split('\t'))
    if len(texts) != 2:
        raise InputError(f'--pairs: a line has {len(texts)} texts with tabs between: {line!r:.80}')
    return texts


def read_file(
    path, column=None, pair_column=None, pairs=False, flag='--text_column', keeps_blank=False
):
    """(number from 1, text, other columns) of a file's rows or lines.

    A table is a file ``.csv``, ``.tsv`` or ``.jsonl``, a folder of `datasets`, or any file whose
    columns are named; by default these have usual names, such as ``text``. A file with one column
    and no usual name, and pairs without names, have no header, and so no other columns. Rows and
    lines with a blank text are left out unless `keeps_blank`.
    """
    if path == '-' and column:
        raise InputError('--text_column needs a file that ends in .csv, .tsv or .jsonl')
    if path == '-' or not (column or pair_column or is_table_file(path)):
        for number, line in _standard_input() if path == '-' else read_lines(path):
            text = line.rstrip('\r\n')
            if text.strip():
                yield number, _split_pair(text) if pairs else text, {}
            elif keeps_blank:
                yield number, text, {}
        return
    rows = read_rows(path)
    first = next(rows, None)
    if first is None:
        raise InputError(f'{path!r} is empty')
    names = [str(name).strip() for name in first[1]]
    positions, has_header = _columns(path, names, [column, pair_column], pairs, flag)
    if not has_header:
        rows = itertools.chain([first], rows)
    others = [n for n in range(len(names)) if has_header and n not in positions]
    blank = 0
    for number, (where, cells) in enumerate(rows, 1 + has_header):
        if not any(cells):
            if not keeps_blank:
                continue
            cells = [''] * len(names)
        texts = [cells[n] if n < len(cells) else None for n in positions]
        if keeps_blank and texts[0] is None and positions[0] < len(cells):  # null in JSON
            texts = [''] * len(positions)
        if not all(isinstance(text, str) for text in texts):
            wanted = ' and '.join(str(n) if not has_header else repr(names[n]) for n in positions)
            raise InputError(f'{path}, {where}: there is no text in column {wanted}')
        if not texts[0].strip():
            blank += 1
            if not keeps_blank:
                continue
        line = where.rpartition(' ')[2]
        yield (
            int(line) if line.isdigit() else number,
            tuple(texts) if len(texts) == 2 else texts[0],
            {names[n]: cells[n] if n < len(cells) else '' for n in others},
        )
    if blank:
        kept = 'have no result' if keeps_blank else 'are skipped'
        logger.warning('%s: %d rows with a blank text %s', path, blank, kept)


def _standard_input():
    sys.stdin.reconfigure(encoding='utf-8', errors='strict')
    with reporting('standard input is not UTF-8', errors=UnicodeDecodeError):
        yield from enumerate(sys.stdin, 1)


def _columns(path, names, wanted, pairs, flag):
    """Numbers of a table's columns with texts, and whether its first row names them."""
    if any(wanted):
        if wanted[0] is None:
            raise InputError('--text_pair_column goes with --text_column')
        wanted = [name for name in wanted if name is not None]
        if set(wanted) <= set(names):
            return [names.index(name) for name in wanted], True
        if all(name.isdigit() and int(name) < len(names) for name in wanted):
            has_header = not set(names).isdisjoint({*TEXT_COLUMNS, *itertools.chain(*PAIR_COLUMNS)})
            return [int(name) for name in wanted], has_header
        missing = next(name for name in wanted if name not in names)
        raise InputError(f'{path!r} has no column {missing!r}: it has {", ".join(names):.300}')
    pair, text = usual_columns(names)
    if pair and pairs is not False:
        return [names.index(name) for name in pair], True
    if text and not pairs:
        return [names.index(text)], True
    if len(names) == 1 and not pairs:
        return [0], False
    if len(names) == 2 and pairs:
        return [0, 1], False
    raise InputError(
        f'{path!r} has the columns {", ".join(names):.300}: name that of the texts with '
        + flag
        + (' and --text_pair_column' if pairs else '')
    )


# -- a file of texts, and their vectors in a file beside it ---------------------------------------


class Corpus:
    """Texts of a file, which is read through as often as it's needed."""

    def __init__(self, path, field='text'):
        self.path, self._field = path, field
        first = next((line for _, line in read_lines(path) if line.strip()), None)
        if first is None:
            raise InputError(f'{path!r} is empty: give a file with one text per line')
        self._is_json = first.lstrip().startswith('{')

    def __iter__(self):
        if self.path.lower().endswith(('.csv', '.tsv')):
            column = None if self._field == 'text' else self._field  # else one of the usual names
            for number, text, _ in read_file(self.path, column, flag='--text_field'):
                yield number, text
            return
        if self._is_json:
            for location, fields in read_json_objects(self.path):
                text = fields.get(self._field)
                if not isinstance(text, str):
                    raise InputError(
                        f'{self.path}, {location}: not a JSON object with the text in '
                        f'{json.dumps(self._field)}: {fields!r:.80}'
                    )
                yield int(location.split()[1]), text
            return
        for number, line in read_lines(self.path):
            if line.strip():
                yield number, line.rstrip('\r\n')

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
            with tempfile.TemporaryFile() as file:
                return _fill(file, embed(self._texts(), on_batch), count)

    def _texts(self):
        return (text for _, text in self)

    def _write(self, path, vectors, count, model):
        with atomic_write(path, 'w+b') as file:
            _fill(file, vectors, count)
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


def _fill(file, vectors, count):
    """Write vectors as an array of a .npy file, and map it."""
    mapped = None
    for number, vector in enumerate(vectors):
        if mapped is None:
            shape = (count, len(vector))
            header = {'descr': '<f4', 'fortran_order': False, 'shape': shape}
            np.lib.format.write_array_header_1_0(file, header)
            start = file.tell()
            file.truncate(start + 4 * count * len(vector))
            mapped = np.memmap(file, np.float32, 'r+', start, shape)
        mapped[number] = vector
    mapped.flush()
    return mapped


# -- records --------------------------------------------------------------------------------------


def write_format(format, output):
    """The format of records: the given one, or that of the file's ending."""
    if format is not None:
        return format
    if output is None:
        return 'table' if sys.stdout.isatty() else 'jsonl'
    format = _ENDINGS.get(os.path.splitext(output)[1].lower())
    if format is None:
        raise InputError(f'--output {output!r}: end it in {", ".join(_ENDINGS)}, or give --format')
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
    """A line for each record; in CSV and TSV, the names before the first."""
    if format == 'jsonl':
        for record in records:
            yield json.dumps(record, ensure_ascii=False) + '\n'
        return
    for number, record in enumerate(map(_flat, records)):
        if number == 0:
            yield _row(record, format)
        yield _row(record.values(), format)


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
    rows = [list(map(_cell, record.values())) for record in first]
    is_number = [isinstance(value, (int, float)) for value in first[0].values()]
    widths = [max(map(_width, column)) for column in zip(names, *rows)]
    widths[-1] = 0 if not is_number[-1] else widths[-1]  # no spaces behind the last text

    def line(cells):
        padded = []
        for cell, width, right in zip(cells, widths, is_number):
            space = ' ' * (width - _width(cell))
            padded.append(space + cell if right else cell + space)
        return '  '.join(padded) + '\n'

    others = (list(map(_cell, record.values())) for record in records)
    yield from map(line, itertools.chain([names], rows, others))


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
    """What a process opens once; `options` are JSON."""
    return make(**json.loads(options))


class Labeller:
    """Labels texts, or a file of them; for a worker."""

    def __init__(self, options, pairs=False, all_scores=False):
        self._options, self._pairs, self._all_scores = options, pairs, all_scores

    @property
    def settings(self):
        """What the records depend on, plain JSON."""
        model = sorted(state_of(self._options['model']))
        return [self._options, self._pairs, self._all_scores, model]

    def records(self, texts):
        """A dict for each text, or pair of texts."""
        options = {'task': 'text-classification', **self._options}
        classifier = _opened(pipeline, json.dumps(options))
        texts, shown = itertools.tee(texts)
        several = classifier.is_multi_label
        for result in classifier(texts, top_k=None if self._all_scores or several else 1):
            scores = {answer['label']: answer['score'] for answer in result}
            if self._all_scores:
                best = {'scores': scores}
            elif several:  # as in the files that such a model is trained on
                likely = [label for label in classifier.labels if scores[label] >= LIKELY]
                best = {'label': ','.join(likely), 'scores': scores}
            elif classifier.is_regression:
                best = scores
            else:
                best = result[0]
            text = next(shown)
            yield {**best, 'text': text if isinstance(text, str) else '\t'.join(text)}

    def __call__(self, task):
        texts = task.lines()
        if self._pairs:
            texts = (_split_pair(line) if line.strip() else line for line in texts)
        records = _aligned(self.records, texts)
        return write_records(records, task.output.rpartition('.')[2], task.output)


class FileEncoder:
    """Turns texts, or a file of them, into ids; for a worker."""

    def __init__(self, options, encoding):
        self._options, self._encoding = options, encoding

    @property
    def _tokenizer(self):
        return _opened(open_tokenizer, json.dumps(self._options))

    @property
    def settings(self):
        """What the ids depend on, plain JSON."""
        tokenizer = self._tokenizer
        settings = tokenizer._settings()  # such as do_lower_case of a folder
        return [
            self._options,
            type(tokenizer).__name__,
            settings,
            describe_vocab(tokenizer.vocab),
            self._encoding,
        ]

    def _rows(self, texts):
        """(text, ids) of each text, or pair of texts."""
        for is_pair, group in itertools.groupby(texts, lambda text: isinstance(text, tuple)):
            for some in iter(lambda group=group: list(itertools.islice(group, _MANY)), []):
                parts = list(map(list, zip(*some))) if is_pair else [some]
                encoded = self._tokenizer.encode_batch(*parts, pad=False, **self._encoding)
                yield from zip(some, encoded.input_ids)

    def records(self, texts):
        """A dict for each text."""
        for text, ids in self._rows(texts):
            tokens = self._tokenizer.convert_ids_to_tokens(ids)
            text = text if isinstance(text, str) else '\t'.join(text)
            yield {'ids': ids.tolist(), 'tokens': tokens, 'text': text}

    def __call__(self, task):
        """Write the ids of a `FileTask`; returns the number of its texts."""
        texts = (line for line in task.lines() if line.strip())
        if task.output.endswith('.jsonl'):
            return write_records(self.records(texts), 'jsonl', task.output)
        rows = [ids for _, ids in self._rows(texts)]
        offsets = np.cumsum([0, *map(len, rows)])
        with atomic_write(task.output, 'wb') as file:
            np.savez(
                file,
                ids=np.concatenate([np.zeros(0, np.int32), *rows]).astype(np.int32),
                offsets=offsets,
            )
        return len(rows)
