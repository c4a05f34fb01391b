"""What the benchmarks share: contenders in processes of their own, timed in turn, and ratios.

Each contender runs in a worker process that imports its own framework only, because the OpenMP
runtimes of two frameworks in one process slow each other down. All workers have the same number of
threads. They take turns, so that a drift of the machine hits them all alike.

A benchmark names for each contender a function ``make(options, **arguments)`` of its file. It runs
in the worker and returns a function ``prepare(case)``, which returns a function without arguments:
the call that is timed. The file itself imports no framework at its top.
"""

import contextlib
import importlib
import importlib.util
import itertools
import multiprocessing
import multiprocessing.connection
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

#: seconds before each turn: the threads of the contender before it spin for a while after its call
PAUSE = 0.3
#: what keeps a processor busy -> the words before its program
NEIGHBOURS = {'busy': (), 'niced': ('nice', '-n', '19')}
SCALES = {'GF/s': 1e9, 'M parameters/s': 1e6}


class Contender(NamedTuple):
    """Something to be timed.

    `make` is a function at the top level of a file in this folder, see the module's text. Without
    the modules `needs` the contender is absent. `checkout` is the folder whose ``model_zoo`` the
    worker imports, by default that of this process, and `environment` its further variables.
    """

    name: str
    make: Callable
    needs: Tuple[str, ...] = ()
    arguments: Dict[str, Any] = {}
    checkout: str = None
    environment: Dict[str, str] = {}


class Case(NamedTuple):
    """What all contenders do, by turns: `value` is passed to ``prepare``."""

    label: str
    value: Any
    work: float  # operations, tokens, ...: what is counted a second


class Measured(NamedTuple):
    """The figures of one contender in one case."""

    case: Case
    contender: str
    seconds: List[float]
    cpu_seconds: List[float]
    megabytes: float  # what the calls added to the most memory that the process has had
    answer: Any  # what the call returned


def run(main):
    """Run a benchmark's ``main(argv)`` as the project's other scripts are run, and exit."""
    from model_zoo.app import cli

    cli.run_script(main)


def add_flags(description, rounds=10, seconds=60):
    """A parser with the flags of all benchmarks."""
    from model_zoo.app import cli

    parser = cli.parser(description)
    add = parser.add_argument
    add('--rounds', type=int, default=rounds, help='turns of each contender')
    add('--seconds', type=float, default=seconds, help='limit for one case')
    add('--json', help='file for the figures')
    add(
        '--checkout', action='append', default=[], metavar='DIR',
        help='another checkout of this project, as one more contender, with the Python and the '
        'libraries of its .venv, if it has one; may be repeated',
    )  # fmt: skip
    add(
        '--environment', action='append', default=[], metavar='VARIABLES',
        help="ours once more with such variables: 'OMP_NUM_THREADS=1 GOMP_SPINCOUNT=10'",
    )  # fmt: skip
    add('--neighbour', choices=list(NEIGHBOURS), help='keep a processor busy meanwhile')
    add(
        '--cpu_time', action='store_true',
        help='compare seconds of CPU, which other programs disturb less; set OMP_NUM_THREADS=1, '
        'for threads that wait count, too',
    )  # fmt: skip
    return parser


def threads():
    """Threads of each worker: ``OMP_NUM_THREADS``, or else all processors."""
    return int(os.environ['OMP_NUM_THREADS'])


def parse_shapes(text):
    """``'1x32,8x128'`` -> [(1, 32), (8, 128)]: batch and length."""
    return [tuple(int(size) for size in shape.split('x')) for shape in text.split(',')]


def bert_flops(layers, units, batch, length):
    """Floating-point operations of the matrix products in one forward pass of BERT's encoder."""
    weights = 12 * units * units
    attention = 2 * length * units
    return 2 * batch * length * layers * (weights + attention)


def measure(ours, peers, cases, options, warm=True, same=None):
    """Time contenders in turn.

    The first of `ours` is what the others are compared with; each is there once more for each
    checkout and environment of the options. Peers that aren't installed are left out. A case ends
    after the round in which ``options.seconds`` have passed; at least three rounds are made. The
    functions ``make`` get `options`, with ``folder``, where they may leave files for those that
    come after them. With `warm` each timed call comes after an untimed one.
    ``same(name, answer, expected)`` raises InputError if a contender's first answer differs from
    the first contender's.
    """
    from model_zoo.errors import InputError

    present, measured, workers = installed(ours, peers, options), [], {}
    with tempfile.TemporaryDirectory() as options.folder, contextlib.ExitStack() as stack:
        stack.enter_context(neighbour(options.neighbour))
        for contender in present:
            worker = stack.enter_context(contextlib.closing(Worker(contender, options)))
            try:
                worker.answer()
            except InputError as error:
                # an older checkout need not have all that this one has
                lacks = re.search('(Import|NotFound|Name)Error', str(error))
                if not contender.checkout or not lacks:
                    raise
                print(f'{contender.name}: absent ({error})', flush=True)
                continue
            workers[contender.name] = worker
        for case in cases:
            answers = {name: worker.ask('prepare', case.value) for name, worker in workers.items()}
            for name, answer in answers.items():
                if same is not None:
                    same(name, answer, answers[present[0].name])
            times = _take_turns(workers, options, warm)
            for name, worker in workers.items():
                wall, cpu = zip(*times[name])
                memory = worker.ask('memory')
                measured.append(Measured(case, name, wall, cpu, memory, answers[name]))
    return measured


@contextlib.contextmanager
def neighbour(name):
    """Keep a processor busy meanwhile, as `NEIGHBOURS` has it."""
    if name is None:
        yield
        return
    process = subprocess.Popen([*NEIGHBOURS[name], sys.executable, '-c', 'while True: pass'])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def installed(ours, peers, options):
    """Contenders whose libraries are installed; ours in other checkouts and environments, too."""
    more = [
        contender._replace(name=f'{contender.name} in {folder}', checkout=folder)
        for folder in map(os.path.abspath, options.checkout) for contender in ours
    ] + [
        contender._replace(
            name=f'{contender.name}, {words}',
            environment=dict(word.split('=', 1) for word in words.split()),
        )
        for words in options.environment for contender in ours
    ]  # fmt: skip
    present = []
    for contender in [*ours, *more, *peers]:
        missing = [name for name in contender.needs if importlib.util.find_spec(name) is None]
        if missing:
            print(f'{contender.name}: absent ({", ".join(missing)} not installed)', flush=True)
        else:
            present.append(contender)
    return present


def _take_turns(workers, options, warm):
    times = {name: [] for name in workers}
    begin = time.perf_counter()
    for done in range(options.rounds):
        if done >= 3 and time.perf_counter() - begin > options.seconds:
            break
        names = list(workers) if done % 2 == 0 else reversed(workers)
        for name in names:
            time.sleep(PAUSE)
            times[name].append(workers[name].ask('time', warm))
    return times


class Worker:
    """A contender's process, which begins with ``make``: it has an `answer` then."""

    def __init__(self, contender, options):
        self._name = contender.name
        self._connection, theirs = multiprocessing.Pipe()
        self.process = subprocess.Popen(
            [_python(contender), os.path.abspath(__file__), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=_environment(contender),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        file = contender.make.__code__.co_filename
        module = os.path.splitext(os.path.basename(file))[0]
        folder = os.path.dirname(os.path.abspath(file))
        self.begin(
            folder, module, contender.make.__name__, options, contender.arguments,
            contender.checkout,
        )  # fmt: skip

    def ask(self, *message):
        self.begin(*message)
        return self.answer()

    def begin(self, *message):
        with contextlib.suppress(OSError):  # a process that has ended has no answer
            self._connection.send(message)

    def answer(self):
        from model_zoo.errors import InputError

        try:
            good, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise InputError(f'the process of {self._name} has ended') from error
        if not good:
            raise InputError(f'{self._name}: {answer}')
        return answer

    def close(self):
        self._connection.close()
        self.process.wait()


def _python(contender):
    own = os.path.join(contender.checkout or '', '.venv', 'bin', 'python')
    return own if contender.checkout and os.path.exists(own) else sys.executable


def _environment(contender):
    """A worker's variables: its project, its threads, and the contender's own."""
    import model_zoo  # sets OMP_NUM_THREADS where it isn't set

    here = os.path.dirname(os.path.dirname(os.path.abspath(model_zoo.__file__)))
    count = os.environ['OMP_NUM_THREADS']
    return {
        **os.environ, 'PYTHONPATH': contender.checkout or here, 'MKL_NUM_THREADS': count,
        **contender.environment,
    }  # fmt: skip


def _serve(connection):
    """Answer the questions of a `Worker` until it closes the connection."""
    call = prepare = before = None
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        try:
            if prepare is None:
                prepare, answer = _make(*message), None
            elif message[0] == 'prepare':
                call = None  # frees what it holds
                call = prepare(message[1])
                before = _peak_memory()
                answer = call()
            elif message[0] == 'time':
                answer = _time(call, warm=message[1])
            else:
                answer = _peak_memory() - before
        except Exception as error:
            traceback.print_exc()
            connection.send((False, f'{type(error).__name__}: {error}'))
        else:
            connection.send((True, answer))


def _make(folder, module, name, options, arguments, checkout):
    # an editable installation would give a checkout the modules that it lacks
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not getattr(finder, '__module__', '').startswith('__editable__')
    ]
    if name.startswith('our'):  # as README tells the user to: before MXNet, which the makers import
        importlib.import_module('model_zoo')
    sys.path.insert(0, folder)
    prepare = getattr(importlib.import_module(module), name)(options, **arguments)
    project = sys.modules.get('model_zoo')
    if checkout and not os.path.abspath(project.__file__).startswith(checkout + os.sep):
        raise ImportError(f'model_zoo was imported from {project.__file__}')
    return prepare


def _time(call, warm):
    """Seconds, and seconds of CPU, of a call."""
    if warm:
        call()
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def _peak_memory():
    """The most memory that this process has had, in MB; 0 where the system doesn't tell."""
    try:
        with open('/proc/self/status', encoding='ascii') as file:
            line = next(line for line in file if line.startswith('VmHWM'))
    except OSError:
        return 0
    return int(line.split()[1]) / 1024


def rst_table(head, rows):
    """The lines of a table of reStructuredText."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    rule = '  '.join('=' * width for width in widths)
    text = ['  '.join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in (head, *rows)]
    return [rule, text[0], rule, *text[1:], rule]


def write_between(path, begin, end, lines):
    """Put lines between two marks of a page."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    before, rest = text.split(begin)
    _, after = rest.split(end)
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join([before + begin, '', *lines, '', end + after]))


def matrix_product(options):
    """MXNet's product of two square matrices: the floor that all times stand on."""
    import model_zoo  # noqa: F401  isort: skip  before MXNet
    import mxnet as mx

    def prepare(size):
        x, w = (mx.nd.random.normal(shape=(size, size)) for _ in range(2))
        return lambda: mx.nd.FullyConnected(x, w, no_bias=True, num_hidden=size).wait_to_read()

    return prepare


def _matrix_product_speed(is_cpu, size=2048, rounds=8):
    with contextlib.closing(Worker(Contender('product', matrix_product), None)) as worker:
        worker.answer()
        worker.ask('prepare', size)
        times = [worker.ask('time', True)[is_cpu] for _ in range(rounds)]
    return 2 * size**3 / min(times) / 1e9


def report(title, measured, options, unit='GF/s'):
    """Print a table of what `measure` returned, and write it to the file of ``--json``.

    `unit` is what ``Case.work`` counts, a second. Seconds are of the CPU with ``--cpu_time``.
    """
    import model_zoo
    from model_zoo.util.files import write_json

    clock = 'cpu' if options.cpu_time else 'clock'
    peak = _matrix_product_speed(options.cpu_time)
    title = f'{title} (model_zoo {model_zoo.__version__})'
    print(f'{title}; seconds of the {clock}, {threads()} threads, matrix product {peak:.0f} GF/s')
    width = max(len(result.contender) for result in measured)
    print(
        f'{"case":>8}  {"contender":<{width}}{"best ms":>10}{"median ms":>11}{unit:>15}{"+MB":>7}'
        f'  best, median / ours'
    )
    results, ours = [], {}
    for result in measured:
        seconds = result.cpu_seconds if options.cpu_time else result.seconds
        first = ours.setdefault(result.case.label, seconds)
        row = {
            'case': result.case.label,
            'contender': result.contender,
            'best_s': min(seconds),
            'median_s': statistics.median(seconds),
            unit: result.case.work / statistics.median(seconds) / SCALES.get(unit, 1),
            'added_megabytes': result.megabytes,
            'best_over_ours': min(seconds) / min(first),
            # round by round, so that a slow moment counts for both
            'median_over_ours': statistics.median(a / b for a, b in zip(seconds, first)),
            'seconds': list(seconds),
        }
        print(
            f'{row["case"]:>8}  {row["contender"]:<{width}}{1e3 * row["best_s"]:>10.1f}'
            f'{1e3 * row["median_s"]:>11.1f}{row[unit]:>15.0f}{result.megabytes:>7.0f}'
            f'  {row["best_over_ours"]:.2f}, {row["median_over_ours"]:.2f}',
            flush=True,
        )
        results.append(row)
    if options.json:
        write_json(options.json, {
            'title': title, 'threads': threads(), 'matrix_product_gflops': peak,
            'seconds_of': clock, 'results': results,
        })  # fmt: skip


def our_update(block, optimizer, options):
    """A function that updates a block by its gradients, as our scripts do."""
    import mxnet as mx

    from model_zoo.blocks.graphs import finish_backward
    from model_zoo.training import Updater, Workers  # and registers our optimizers

    trainer = mx.gluon.Trainer(
        block.collect_params(), optimizer, dict(options), update_on_kvstore=False
    )
    updater, workers, numbers = Updater(block, trainer), Workers(), itertools.count(1)

    def update():
        finish_backward()  # of a mirrored block
        updater.update(next(numbers), workers)

    return update


def gluon_step(compute, update):
    """A step that waits for its end; `compute` gives the loss."""
    import mxnet as mx

    def step():
        with mx.autograd.record():
            loss = compute()
        loss.backward()
        update()
        mx.nd.waitall()

    return step


def torch_step(model, optimizer, compute):
    """The same step by torch."""
    import torch

    def step():
        compute().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == '__main__':
    _serve(multiprocessing.connection.Connection(int(sys.argv[1])))
