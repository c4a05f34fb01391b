"""Work over many files of texts: a task for each, or for each part of a large one."""

import functools
import logging
import math
import os
import posixpath
from typing import NamedTuple

from ..environment import available_processors
from ..errors import InputError
from ..util.display import progress
from ..util.done import forget_done, mark_done, read_done
from ..util.files import make_output_dir, remove_leftovers
from ..util.ray_cluster import RayTasks
from ..util.reading import check_encoding, read_span
from ..util.remote import file_size, is_url, join
from .arguments import check_at_least_one

logger = logging.getLogger(__name__)


class FileTask(NamedTuple):
    """The lines of a file that begin between two of its bytes, and the file for their results."""

    path: str
    start: int
    stop: int
    output: str
    size: int  # of the file
    encoding: str | None = None

    def lines(self):
        """The lines without their ends."""
        for line in read_span(self.path, self.start, self.stop, self.encoding):
            yield line.rstrip('\r\n')


def run_over_files(job, args, settings):
    """Write a file of results for each of ``args.files``, or for each part of a large one.

    The results don't depend on the number of workers: each has one thread, and a task is whole.
    """
    tasks = plan_files(args)
    folder = make_output_dir(args.output_dir)
    found = [read_done(task.output, _job_of(settings, task)) for task in tasks]
    missing = [task for task, facts in zip(tasks, found) if facts is None]
    if len(missing) < len(tasks):
        logger.info('%d of %d files are there already', len(tasks) - len(missing), len(tasks))
    count = sum(facts['texts'] for facts in found if facts is not None)
    marking = functools.partial(_do_and_mark, job, settings)
    with _workers(marking, args, len(missing)) as workers:
        results = workers.map((task,) for task in missing)
        count += sum(progress(results, 'files', total=len(missing), leave=True))
    if not is_url(folder):  # what killed workers have left
        remove_leftovers(folder, {posixpath.basename(task.output) for task in tasks})
    return count


def _job_of(settings, task):
    """All that a task's file depends on, for its marker."""
    return [settings, task.size, task.start, task.stop, *filter(None, [task.encoding])]


def plan_files(args):
    """The `FileTask` of each file or part of a file, with a different output name for each."""
    if args.output_dir is None:
        raise InputError('needs `output_dir`, for the results', field='files')
    if not args.part_mb > 0:
        raise InputError(f'must be greater than 0, not {args.part_mb:g}', field='part_mb')
    check_at_least_one(args, 'num_workers')
    check_encoding(args.encoding)
    if '\n'.encode(args.encoding or 'utf-8') != b'\n':
        raise InputError(
            f'{args.encoding}: a line end of `files` must be one byte', field='encoding'
        )
    from ..tasks.pretraining.text import matching_files

    paths = matching_files(args.files)
    names = [posixpath.basename(path.replace(os.sep, '/')) for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f'two are called {name!r}, and so would be their results', field='files'
            )
    tasks = []
    for path, name in zip(paths, names):
        size = file_size(path)
        parts = max(1, math.ceil(size / (args.part_mb * 2**20)))
        for part in range(parts):
            which = f'-{part:05d}-of-{parts:05d}' if parts > 1 else ''
            output = join(
                os.path.expanduser(args.output_dir).rstrip('/'),
                f'{name}{which}.{args.output_format}',
            )
            span = size * part // parts, size * (part + 1) // parts
            tasks.append(FileTask(path, *span, output, size, args.encoding))
    return tasks


def _do_and_mark(job, settings, task):
    """Do a task, and mark its file as done; for a worker."""
    from mxnet.base import _LIB

    _LIB.MXSetNumOMPThreads(1)  # sums of several may differ in their last bits
    forget_done(task.output)
    count = job(task)
    mark_done(task.output, _job_of(settings, task), texts=count)
    return count


def _workers(job, args, count):
    if args.ray is not None and count:
        return RayTasks(job, args.ray)
    os.environ['OMP_NUM_THREADS'] = '1'  # of the processes, which load MXNet after this
    from ..tasks.pretraining.processes import Processes

    return Processes(job, min(args.num_workers or available_processors(), max(1, count)))
