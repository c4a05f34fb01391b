"""Input texts and output records of the commands that use a model, also over many files."""

import contextlib
import itertools
import json
import logging
import math
import os
import posixpath
import sys
from typing import NamedTuple

import numpy as np

from ..environment import available_processors
from ..errors import InputError
from ..opening import open_tokenizer
from ..tasks.pretraining.documents import matching_files
from ..tasks.pretraining.processes import Processes
from ..util.display import progress
from ..util.executor import FinishedTasks, RayTasks
from ..util.files import atomic_write, make_output_dir
from ..util.lines import read_lines, read_span
from ..util.remote import file_size, is_url, join
from .job import describe_vocab

__all__ = [
    'FileEncoder',
    'FileTask',
    'add_many_files_arguments',
    'add_record_arguments',
    'add_workers_arguments',
    'plan_files',
    'read_texts',
    'run_over_files',
    'write_records',
    'write_results',
]

logger = logging.getLogger(__name__)


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


class FileTask(NamedTuple):
    """The lines of a file that begin between two of its bytes, and the file for their results."""

    path: str
    start: int
    stop: int
    output: str
    size: int  # of the file

    def lines(self):
        """The lines without their ends."""
        for line in read_span(self.path, self.start, self.stop):
            yield line.rstrip('\r\n')


def add_many_files_arguments(parser, source, kinds):
    """Add the flags of `run_over_files`.

    Parameters
    ----------
    parser : Parser
    source : object
        With ``add_argument``, for ``--files``.
    kinds : sequence of str
        Values of ``--output_format``; the first is the default.
    """
    source.add_argument(
        '--files', help='files with a text a line; wildcards and commas; a file of results each'
    )
    add = parser.add_argument_group(
        'many files', 'Files that an earlier run of the same command has finished are left out.'
    ).add_argument
    add('--output_dir', help='of --files: folder or URL for the results')
    add('--output_format', choices=kinds, default=kinds[0], help='of --files')
    add_workers_arguments(add, 'of --files: ')
    for flag in ('files', 'output_dir', 'output_format', 'part_mb', 'num_workers', 'ray'):
        parser.rank_last(flag)  # abbreviations are those of the older flags


def add_workers_arguments(add, of=''):
    """Add the flags that say who works at files: ``--part_mb``, ``--num_workers`` and ``--ray``.

    Parameters
    ----------
    add : callable
        ``add_argument``.
    of : str
        Begins the helps.
    """
    add('--part_mb', type=float, default=8, help=f'{of}larger ones are divided in parts')
    add('--num_workers', type=int, help=f'{of}processes; default: one a processor')
    add(
        '--ray', metavar='ADDRESS',
        help=f'{of}work on a Ray cluster: HOST:PORT, or auto for the one that this machine '
        'belongs to, or local',
    )  # fmt: skip


def write_results(job, args):
    """Write a record for each text of a command, or with ``--files`` a file of results for each.

    Parameters
    ----------
    job : object
        ``job.records(texts)`` yields the records; for ``--files``, see `run_over_files`, whose
        settings are ``job.settings``.
    args : argparse.Namespace
        With ``texts``, ``file`` and the flags of `add_record_arguments` and
        `add_many_files_arguments`.
    """
    if args.files:
        if args.texts or args.file:
            raise InputError('--files has the texts: leave out other texts and --file')
        count = run_over_files(job, args, job.settings)
        logger.info('%d texts in %s', count, args.output_dir)
        return
    if args.output_dir or args.ray:
        raise InputError('--output_dir and --ray go with --files')
    write_records(job.records(read_texts(args.texts, args.file)), args.format, args.output)


def run_over_files(job, args, settings, tasks=None):
    """Write a file of results for each of ``args.files``, or for each part of a large one.

    The results don't depend on the number of workers: each has one thread, and a task is whole.

    Parameters
    ----------
    job : callable
        ``job(task)`` writes the output of a `FileTask`, and returns the number of its texts. Can be
        pickled.
    args : argparse.Namespace
        With the flags of `add_many_files_arguments`.
    settings : list
        Plain JSON: what the results depend on, besides the files.
    tasks : list of FileTask, optional
        Of `plan_files`, if it has been called.

    Returns
    -------
    int
        Number of texts.

    Raises
    ------
    InputError
        If no file matches, two have the same name, or the folder can't be written to.
    """
    tasks = plan_files(args) if tasks is None else tasks
    folder = make_output_dir(args.output_dir)
    finished = {
        each: FinishedTasks(folder, [settings, each.size, each.start, each.stop], int)
        for each in tasks
    }
    done = {each: finished[each].get(posixpath.basename(each.output)) for each in tasks}
    missing = [each for each in tasks if done[each] is None]
    if len(missing) < len(tasks):
        logger.info('%d of %d files are there already', len(tasks) - len(missing), len(tasks))
    count = sum(filter(None, done.values()))
    with _executor(_Noted(job, finished), args, len(missing)) as executor:
        results = executor.map((each,) for each in missing)
        for number in progress(results, 'files', total=len(missing), leave=True):
            count += number
    FinishedTasks.tidy(folder, [posixpath.basename(each.output) for each in tasks])
    return count


def plan_files(args):
    """The `FileTask` of each file or part of one, with names of outputs that tell them apart."""
    if args.output_dir is None:
        raise InputError('--files needs --output_dir, for the results')
    if not args.part_mb > 0:
        raise InputError(f'--part_mb {args.part_mb}: give a number above 0')
    if args.num_workers is not None and args.num_workers < 1:
        raise InputError(f'--num_workers {args.num_workers}: give 1 or more')
    paths = matching_files(args.files)
    names = [posixpath.basename(path.replace(os.sep, '/')) for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'--files: two are called {name!r}, and so would be their results')
    tasks = []
    for path, name in zip(paths, names):
        size = file_size(path)
        parts = max(1, math.ceil(size / (args.part_mb * 2**20)))
        for part in range(parts):
            which = f'-{part:05d}-of-{parts:05d}' if parts > 1 else ''
            output = join(os.path.expanduser(args.output_dir).rstrip('/'),
                          f'{name}{which}.{args.output_format}')  # fmt: skip
            tasks.append(
                FileTask(path, size * part // parts, size * (part + 1) // parts, output, size)
            )
    return tasks


class _Noted:
    """A job that notes what it has finished; for a worker."""

    def __init__(self, job, finished):
        self._job, self._finished = job, finished

    def __call__(self, task):
        _use_one_thread()
        count = self._job(task)
        self._finished[task].put(posixpath.basename(task.output), count)
        return count


def _use_one_thread():
    """Sums of several threads may differ in their last bits from those of one."""
    from mxnet.base import _LIB

    _LIB.MXSetNumOMPThreads(1)


def _executor(job, args, count):
    if args.ray is not None and count:
        return RayTasks(job, args.ray)
    os.environ['OMP_NUM_THREADS'] = '1'  # of the processes, which load MXNet after this
    return Processes(job, min(args.num_workers or available_processors(), max(1, count)))


_tokenizer = None  # of this process: (options, tokenizer)
_MANY = 1000  # texts at a time


class FileEncoder:
    """Turns texts, or a file of them, into ids; for a worker.

    Parameters
    ----------
    options : dict
        Of `open_tokenizer`.
    encoding : dict
        Of the tokenizer's ``encode_batch``.
    """

    def __init__(self, options, encoding):
        self._options, self._encoding = options, encoding

    @property
    def _tokenizer(self):
        global _tokenizer
        if _tokenizer is None or _tokenizer[0] != self._options:
            _tokenizer = self._options, open_tokenizer(**self._options)
        return _tokenizer[1]

    @property
    def settings(self):
        """What the ids depend on, plain JSON."""
        tokenizer = self._tokenizer
        kind = type(tokenizer).__name__, tokenizer._settings()  # such as do_lower_case of a folder
        return [self._options, *kind, describe_vocab(tokenizer.vocab), self._encoding]

    def _rows(self, texts):
        """(text, ids) of each."""
        texts = iter(texts)
        while True:
            some = list(itertools.islice(texts, _MANY))
            if not some:
                return
            encoded = self._tokenizer.encode_batch(some, pad=False, **self._encoding)
            yield from zip(some, encoded.input_ids)

    def records(self, texts):
        """A dict for each text."""
        for text, ids in self._rows(texts):
            tokens = self._tokenizer.convert_ids_to_tokens(ids)
            yield {'ids': ids.tolist(), 'tokens': tokens, 'text': text}

    def __call__(self, task):
        """Write the ids of a `FileTask`; returns the number of its texts."""
        texts = (line for line in task.lines() if line.strip())
        if task.output.endswith('.jsonl'):
            return write_records(self.records(texts), 'jsonl', task.output)
        rows = [ids for _, ids in self._rows(texts)]
        offsets = np.cumsum([0, *map(len, rows)])
        with atomic_write(task.output, 'wb') as file:
            np.savez(file, ids=np.concatenate([np.zeros(0, np.int32), *rows]).astype(np.int32),
                     offsets=offsets)  # fmt: skip
        return len(rows)
