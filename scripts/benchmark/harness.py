"""Contenders in separate processes, timed in turns.

A contender is a function ``make(options, **arguments)`` of a module in this folder. It runs in the
contender's worker process and returns ``prepare(case)``, which returns the call that is timed. Each
module imports one framework, because the OpenMP runtimes of two in one process slow each other
down. All workers have the same number of threads. They take turns, so that a drift of the machine
affects them all alike.
"""

import contextlib
import importlib
import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import statistics
import subprocess
import sys
import time
import traceback
from typing import Any, NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
#: seconds before each turn: the previous contender's threads spin for a while after its call
PAUSE = 0.3


class Contender(NamedTuple):
    """A function ``module:name`` to be timed; without the modules `needs` it is absent.

    `checkout` is the folder whose ``model_zoo`` the worker imports, by default this one.
    """

    name: str
    make: str
    needs: tuple[str, ...] = ()
    arguments: dict[str, Any] = {}
    checkout: str | None = None


class Case(NamedTuple):
    """Work that all contenders do in turn; ``prepare`` receives its `value`."""

    label: str
    value: Any
    work: float  # operations, tokens or the like, which are counted per second


class Measured(NamedTuple):
    """The figures of one contender in one case."""

    case: Case
    contender: str
    seconds: list[float]
    megabytes: float  # added to the process's peak memory


class WorkerError(Exception):
    """A contender failed."""


class Worker:
    """A contender's process, in which ``make`` has run."""

    def __init__(self, contender, options):
        self._name = contender.name
        self._connection, theirs = multiprocessing.Pipe()
        root = contender.checkout or ROOT
        own = os.path.join(root, '.venv', 'bin', 'python')
        python = own if contender.checkout and os.path.exists(own) else sys.executable
        self._process = subprocess.Popen(
            [python, os.path.abspath(__file__), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, 'PYTHONPATH': root, 'MKL_NUM_THREADS': str(threads())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        try:
            self.ask(contender.make, options, contender.arguments)
        except WorkerError:
            self.close()
            raise

    def ask(self, *message):
        """Send a message, and return the answer."""
        try:
            self._connection.send(message)
            good, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerError(f'the process of {self._name} has ended') from error
        if not good:
            raise WorkerError(f'{self._name}: {answer}')
        return answer

    def close(self):
        self._connection.close()
        self._process.wait()


def run_apart(make, options, **arguments):
    """Run a function of this folder once, in a separate process."""
    Worker(Contender(make, make, (), arguments), options).close()


def threads():
    """Return the threads of each worker: ``OMP_NUM_THREADS``, or else all processors."""
    return int(os.environ.get('OMP_NUM_THREADS') or len(os.sched_getaffinity(0)))


def measure(contenders, cases, options, warm=True, check=None):
    """Time contenders in turn.

    A case ends after `options.rounds` rounds, or after the round, from the third on, in which
    `options.seconds` have passed. With `warm` each timed call comes after an untimed one.
    ``check(name, answer, expected)`` compares a contender's first answer with the first one's.
    """
    measured, workers = [], {}
    with contextlib.ExitStack() as stack:
        for contender in filter(_is_installed, contenders):
            try:
                worker = Worker(contender, options)
            except WorkerError as error:
                if not contender.checkout:  # an older version may lack a feature of this one
                    raise
                print(f'{contender.name}: absent ({error})', flush=True)
                continue
            workers[contender.name] = stack.enter_context(contextlib.closing(worker))
        for case in cases:
            answers = {name: worker.ask('prepare', case.value) for name, worker in workers.items()}
            for name, answer in answers.items() if check else ():
                check(name, answer, next(iter(answers.values())))
            times = _take_turns(workers, options, warm)
            for name, worker in workers.items():
                measured.append(Measured(case, name, times[name], worker.ask('memory')))
    return measured


def _is_installed(contender):
    missing = [name for name in contender.needs if importlib.util.find_spec(name) is None]
    if missing:
        print(f'{contender.name}: absent ({", ".join(missing)} not installed)', flush=True)
    return not missing


def _take_turns(workers, options, warm):
    times, begin = {name: [] for name in workers}, time.perf_counter()
    for done in range(options.rounds):
        if done >= 3 and time.perf_counter() - begin > options.seconds:
            break
        for name in workers if done % 2 == 0 else reversed(workers):
            time.sleep(PAUSE)
            times[name].append(workers[name].ask('time', warm))
    return times


def rows_of(measured, unit):
    """Return the table's rows as dictionaries; ratios are to the first contender of each case."""
    rows, first = [], {}
    for result in measured:
        ours = first.setdefault(result.case.label, result.seconds)
        median = statistics.median(result.seconds)
        rows.append(
            {
                'case': result.case.label,
                'contender': result.contender,
                'best ms': 1e3 * min(result.seconds),
                'median ms': 1e3 * median,
                unit: result.case.work / median,
                'added MB': result.megabytes,
                'best / first': min(result.seconds) / min(ours),
                # round by round, so that a slow moment counts for both
                'median / first': statistics.median(a / b for a, b in zip(result.seconds, ours)),
            }
        )
    return rows


def rst_table(head, rows):
    """Return the lines of a table of reStructuredText."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    rule = '  '.join('=' * width for width in widths)
    text = ['  '.join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return [rule, text[0], rule, *text[1:], rule]


def _serve(connection):
    """Answer a `Worker` until it closes the connection."""
    prepare = call = before = None
    while True:
        try:
            what, *more = connection.recv()
        except EOFError:
            return
        try:
            answer = None
            if what == 'prepare':
                call = None  # frees its memory
                call, before = prepare(*more), _peak_memory()
                answer = call()
            elif what == 'time':
                answer = _time(call, *more)
            elif what == 'memory':
                answer = _peak_memory() - before
            else:
                prepare = _make(what, *more)
        except Exception as error:
            traceback.print_exc()
            connection.send((False, f'{type(error).__name__}: {error}'))
        else:
            connection.send((True, answer))


def _make(make, options, arguments):
    root = os.environ['PYTHONPATH']
    # an editable installation would import the modules that a checkout lacks
    editable = [each for each in sys.meta_path if '__editable__' in getattr(each, '__module__', '')]
    sys.meta_path[:] = [each for each in sys.meta_path if each not in editable]
    module, name = make.split(':')
    prepare = getattr(importlib.import_module(module), name)(options, **arguments)
    project = sys.modules.get('model_zoo')
    if project and not os.path.abspath(project.__file__).startswith(os.path.join(root, '')):
        raise ImportError(f'model_zoo was imported from {project.__file__}')
    return prepare


def _time(call, warm):
    if warm:
        call()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _peak_memory():
    """Return this process's peak memory in MB; 0 if the system doesn't report it."""
    try:
        with open('/proc/self/status', encoding='ascii') as file:
            line = next(line for line in file if line.startswith('VmHWM'))
    except OSError:
        return 0
    return int(line.split()[1]) / 1024


if __name__ == '__main__':
    _serve(multiprocessing.connection.Connection(int(sys.argv[1])))
