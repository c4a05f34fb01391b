"""Where the time of a training step of BERT base goes. ``--work`` chooses:

``operators``
    For each operator its seconds, its arithmetic, the bytes that it reads and writes, and its share
    of what the machine can do.
``processes``
    A step by several Horovod processes: measured here with one and two, and predicted for N workers
    from their computing, the bytes of the gradient and the bandwidth.
"""

import collections
import functools
import json
import math
import os
import re
import signal
import statistics
import tempfile
import time

from side_by_side import Contender, Worker, parse_shapes, rst_table, run, write_between
from training import labelled_batch

#: one entry for each operator, not for bulks of them; MXNet reads it when it loads
NO_BULKS = {'MXNET_EXEC_BULK_EXEC_TRAIN': '0'}
#: where `--docs` puts the table
BEGIN, END = '.. operators: begin', '.. operators: end'
#: clipping and Adam, which aren't operators
UPDATE = 'the update (NumPy)'
#: operators whose arithmetic is a product of matrices
PRODUCTS = ('FullyConnected', 'interleaved_matmul', 'dot', 'batch_dot')
#: ways to sum gradients: options of `HorovodWorkers`
VARIANTS = {
    'buckets': {},
    'one_by_one': {'bucket_bytes': 0},
    'float16': {'compression': 'float16'},
    'at_once': {'bucket_bytes': 2**40},
}


class Step:
    """The step of scripts/finetune_classifier.py."""

    def __init__(self, layers, shape, dtype='float32', units=768):
        import mxnet as mx

        from bert import BertConfig, BertForSequenceClassification
        from model_zoo.batches import Batch
        from model_zoo.optimizer import disable_weight_decay
        from model_zoo.training import Updater, Workers, mean_over_examples

        self.model = model = BertForSequenceClassification(BertConfig(
            num_hidden_layers=layers, hidden_size=units, intermediate_size=4 * units,
            num_attention_heads=units // 64,
        ))  # fmt: skip
        model.initialize()
        model.cast(dtype)
        model.hybridize(static_alloc=True, static_shape=True)
        disable_weight_decay(model)
        trainer = mx.gluon.Trainer(
            model.collect_params(), 'bertadam', {'wd': 0.01}, update_on_kvstore=False
        )
        words, types, lengths, labels = labelled_batch(shape)
        self.batch = Batch(
            *(mx.nd.array(array, dtype='int32') for array in (words, types)), mx.nd.array(lengths),
            mx.nd.array(labels, dtype='int32'), list(range(shape[0])),
        )  # fmt: skip
        self._objective = mean_over_examples(lambda batch: model(*batch.inputs, batch.labels))
        self.updater, self.alone = Updater(model, trainer, lambda number: 1e-5), Workers()
        self._number = 0

    def __call__(self, workers=None):
        """Compute gradients and update the model; returns the seconds of both parts."""
        import mxnet as mx

        workers = workers or self.alone
        self._number += 1
        started = time.perf_counter()
        counts = self._objective.count([self.batch])
        totals = workers.sum(counts.sum(axis=0))
        self._objective.backward([self.batch], counts, totals)
        if workers is self.alone:  # else the others' gradients come meanwhile
            mx.nd.waitall()
        computed = time.perf_counter()
        self.updater.update(self._number, workers)
        mx.nd.waitall()
        return computed - started, time.perf_counter() - computed


# -- operators -------------------------------------------------------------------------------------


def arithmetic(model, batch):
    """Operator -> (operations of products, bytes) of a forward pass, from the graph's shapes."""
    data, graph = model._cached_graph
    inputs = [*batch.inputs, batch.labels]
    shapes = {variable.name: array.shape for variable, array in zip(data, inputs)}
    internals = graph.get_internals()
    _, out_shapes, _ = internals.infer_shape(**shapes)
    sizes = dict(zip(internals.list_outputs(), out_shapes))
    nodes = json.loads(graph.tojson())['nodes']

    def outputs(node):
        name = node['name']
        if node['op'] == 'null':
            return [sizes[name]]
        return [shape for key, shape in sizes.items() if re.fullmatch(rf'{name}_\w+?', key)]

    work = collections.Counter()
    traffic = collections.Counter()
    for node in nodes:
        if node['op'] == 'null':
            continue
        made = outputs(node)[:1]
        taken = [outputs(nodes[n])[:1] for n, *_ in node['inputs']]
        taken = [shape for shapes in taken for shape in shapes]
        elements = sum(math.prod(shape) for shape in [*made, *taken])
        name = _plain(node['op'])
        if name == 'Embedding':  # reads the rows that it writes; its gradient has all rows
            elements = 2 * math.prod(made[0])
            traffic[f'backward {name}'] += 4 * (math.prod(made[0]) + math.prod(taken[1]))
        traffic[name] += 4 * elements
        if name.startswith(PRODUCTS):
            work[name] += 2 * math.prod(made[0]) * _inner(name, node, taken)
    return {name: (work[name], traffic[name]) for name in traffic}


def _inner(name, node, taken):
    """Length of the sums of a product."""
    if name == 'FullyConnected':
        return taken[1][-1]
    heads = int(node['attrs'].get('heads', 1))
    if name.endswith('qk'):  # (length, batch, 3 x units): one head's units
        return taken[0][-1] // 3 // heads
    return taken[-1][-1]  # of the attention weights: the keys


def _plain(name):
    """An operator's name as the graph has it."""
    name = name.replace('_contrib_', '')
    return name[1:] if name.startswith('_') else name


def profile(step, rounds):
    """Operator -> seconds of a step; `UPDATE` is what NumPy does with the gradients."""
    import mxnet as mx

    for _ in range(2):
        step()
    with tempfile.TemporaryDirectory() as folder:
        mx.profiler.set_config(  # MXNet deletes the file of this name, a device, too
            profile_symbolic=True, profile_imperative=True, aggregate_stats=True,
            filename=os.path.join(folder, 'events.json'),
        )  # fmt: skip
        mx.profiler.set_state('run')
        started = time.perf_counter()
        updates = [step()[1] for _ in range(rounds)]
        seconds = (time.perf_counter() - started) / rounds
        mx.profiler.set_state('stop')
        stats = json.loads(mx.profiler.dumps(format='json', reset=True))
    times = collections.Counter()
    for name, entry in stats['Time']['operator'].items():
        times[name] += entry['Total'] / 1e3 / rounds
    times[UPDATE] = sum(updates) / rounds
    return dict(times), seconds


def machine():
    """The machine's product of matrices, operations per second, and memory, bytes per second."""
    import model_zoo  # noqa: F401  isort: skip  before MXNet
    import mxnet as mx

    def fastest(call):
        times = []
        for _ in range(5):
            mx.nd.waitall()
            started = time.perf_counter()
            call()
            mx.nd.waitall()
            times.append(time.perf_counter() - started)
        return min(times)

    square = mx.nd.ones((2048, 2048))
    long = mx.nd.ones((2**26,))
    product = fastest(
        lambda: mx.nd.FullyConnected(square, square, no_bias=True, num_hidden=len(square))
    )
    scaling = fastest(lambda: mx.nd.broadcast_mul(long, mx.nd.ones((1,)), out=long))
    return 2 * 2048**3 / product, 8 * 2**26 / scaling


def rows_of(times, forward, parameters):
    """A row for each operator, the longest first: its name, seconds, operations and bytes."""
    rows = []
    for name, seconds in times.items():
        is_backward = name.startswith('_backward')
        plain = _plain(name.replace('_backward_', ''))
        work, traffic = forward.get(plain, (0, 0))
        if is_backward:  # of a product it has two products; others read and write twice as much
            _, both = forward.get(f'backward {plain}', (0, 2 * traffic))
            work, traffic = 2 * work, both
        if name == UPDATE:  # reads the gradients twice, weights and moments; writes those three
            traffic = 32 * parameters
        rows.append((name, seconds, work, traffic))
    rows.sort(key=lambda row: -row[1])
    return rows


def table(rows, total, peaks, least=0.004):
    """Lines of a table in reStructuredText; what takes less than `least` is joined."""
    head = ('operator', 'ms', 'share', 'GF', 'MB', 'of the product peak', 'of the memory peak')
    shown = [row for row in rows if row[1] >= least * total]
    rest = sum(row[1] for row in rows if row[1] < least * total)
    lines = []
    for name, seconds, work, traffic in shown:
        label = name if name == UPDATE else f'``{name}``'
        cells = [label, f'{1e3 * seconds:.1f}', f'{seconds / total:.1%}']
        cells += [f'{work / 1e9:.2f}' if work else '', f'{traffic / 1e6:.0f}' if traffic else '']
        cells += [f'{work / seconds / peaks[0]:.0%}' if work else '']
        cells += [f'{traffic / seconds / peaks[1]:.0%}' if traffic else '']
        lines.append(cells)
    lines.append(['all others', f'{1e3 * rest:.1f}', f'{rest / total:.1%}', '', '', '', ''])
    return rst_table(head, lines)


def show_operators(args):
    os.environ.update(NO_BULKS)
    (shape,) = parse_shapes(args.shape)
    step = Step(args.layers, shape, args.dtype, args.units)
    peaks = machine()
    times, seconds = profile(step, args.rounds)
    parameters = sum(math.prod(p.shape) for p in step.model.collect_params().values())
    rows = rows_of(times, arithmetic(step.model, step.batch), parameters)
    total = sum(row[1] for row in rows)
    lines = table(rows, total, peaks)
    about = (
        f'A step at {args.shape} with {args.layers} layers in {args.dtype}: {seconds:.2f} s, '
        f'{total:.2f} s of them in these rows. A product of matrices reaches '
        f'{peaks[0] / 1e9:.0f} GF/s in float32, memory {peaks[1] / 1e9:.0f} GB/s.'
    )
    print(about)
    print('\n'.join(lines))
    if args.docs:
        write_between(args.docs, BEGIN, END, [about, '', *lines])
    return {'seconds': seconds, 'peaks': peaks, 'operators': rows}


# -- processes -------------------------------------------------------------------------------------


def our_member(options, variant=None):
    """A process of a team: ``prepare`` of a request, a tuple of a name and arguments."""
    import model_zoo  # noqa: F401  isort: skip  before MXNet
    import mxnet as mx

    from model_zoo.training import HorovodWorkers

    ((batch, length),) = parse_shapes(options.shape)
    size = options.processes if variant else 1
    step = Step(options.layers, (batch // size, length), units=options.units)
    workers = HorovodWorkers(**VARIANTS[variant]) if variant else step.alone
    workers.prepare(step.updater.parameters)

    def gradient_bytes():
        return sum(4 * p.list_grad()[0].size for p in step.updater.parameters)

    def step_seconds(together=True):
        """Of an update; alone, this process's part without the others."""
        mx.nd.waitall()
        if not together:
            return sum(step())
        workers.wait()  # begin at the same time
        return sum(step(workers))

    def sum_of(num_bytes):
        """Seconds to sum an array of some bytes over the processes."""
        array = mx.nd.zeros((num_bytes // 4,))
        array.wait_to_read()
        workers.wait()
        started = time.perf_counter()
        workers._sum(array, f'{num_bytes} bytes', 0)
        array.wait_to_read()
        return time.perf_counter() - started

    requests = {'bytes': gradient_bytes, 'step': step_seconds, 'sum': sum_of}
    return lambda request: functools.partial(requests[request[0]], *request[1:])


class Team:
    """Processes that train one model; they are stopped while others have their turn.

    Without a `variant` of summing gradients it is one process.
    """

    def __init__(self, args, variant=None):
        size = args.processes if variant else 1
        self.name = f'{size} processes, {variant}' if variant else 'one process'
        threads = str(max(1, len(os.sched_getaffinity(0)) // size))
        # members wait for their turn
        variables = {'HOROVOD_GLOO_TIMEOUT_SECONDS': '3600'}
        variables.update(dict.fromkeys(('OMP_NUM_THREADS', 'MKL_NUM_THREADS'), threads))
        self._server, slots = _rendezvous(size) if variant else (None, [{}])
        contender = Contender(self.name, our_member, arguments={'variant': variant})
        self._members = [
            Worker(contender._replace(environment={**variables, **slot}), args) for slot in slots
        ]
        for member in self._members:
            member.answer()
        (self.num_bytes,) = self.ask('bytes')

    def _signal(self, number):
        for member in self._members:
            member.process.send_signal(number)

    def ask(self, *request, times=1):
        """The answers of the slowest member to some requests."""
        self._signal(signal.SIGCONT)
        answers = []
        for _ in range(times):
            for member in self._members:
                member.begin('prepare', request)
            answers.append(max(member.answer() for member in self._members))
        self._signal(signal.SIGSTOP)
        return answers

    def close(self):
        self._signal(signal.SIGKILL)
        for member in self._members:
            member.close()
        if self._server is not None:
            self._server.stop()


def _rendezvous(processes):
    """Horovod's server on this machine, and the variables by which each process finds it."""
    from horovod.runner import gloo_run
    from horovod.runner.common.util import hosts

    slots = hosts.get_host_assignments(hosts.parse_hosts(f'localhost:{processes}'), processes)
    server = gloo_run.RendezvousServer()
    common = gloo_run.create_run_env_vars('127.0.0.1', ['lo'], server.start())
    server.init(slots)
    variables = [{**common, **gloo_run.create_slot_env_vars(slot)} for slot in slots]
    return server, [{name: str(value) for name, value in values.items()} for values in variables]


def sum_seconds(num_bytes, workers, bandwidth, latency=0.0):
    """Seconds in which N workers sum their gradients by a ring."""
    if workers == 1:
        return 0.0
    return 2 * (workers - 1) * (num_bytes / workers / bandwidth + latency)


def show_processes(args):
    teams = [Team(args)]
    try:
        teams += [Team(args, variant) for variant in args.variants]
        figures = measure(teams, args)
    finally:
        for team in teams:
            team.close()
    show(figures, args)
    return figures


def measure(teams, args):
    """Medians and all times of all teams, which take turns."""
    single, first = teams[:2]
    for team in teams:
        team.ask('step', times=2)  # the first ones plan memory
    steps = {team.name: [] for team in teams}
    alone, sums = [], {}
    for _ in range(args.rounds):
        for team in teams:
            steps[team.name] += team.ask('step')
        alone += first.ask('step', False)
    for num_bytes in (2**12, 2**22, first.num_bytes):
        sums[num_bytes] = first.ask('sum', num_bytes, times=5)[1:]
    return {
        'shape': args.shape, 'layers': args.layers, 'units': args.units,
        'processes': args.processes,
        'gradient_bytes': single.num_bytes, 'steps': steps, 'own_part': alone, 'sums': sums,
    }  # fmt: skip


def show(figures, args):
    """The measured times, the check of the prediction, and the predictions."""
    size, single = figures['processes'], figures['steps']['one process']
    print(
        f'BERT, {args.layers} layers of {args.units} units, {args.shape}: seconds of a step, best '
        'and median'
    )
    for name, times in figures['steps'].items():
        ratio = statistics.median(a / b for a, b in zip(single, times))
        print(
            f'  {name:26} {min(times):7.3f} {statistics.median(times):7.3f}   '
            f'one process over it, pairwise: {ratio:.3f}'
        )
    steps = {name: statistics.median(times) for name, times in figures['steps'].items()}
    compute = statistics.median(figures['own_part'])
    latency, bandwidth = network_of(figures)
    whole = sum_seconds(figures['gradient_bytes'], size, bandwidth, latency)
    print(
        f"  a process's own part {compute:.3f} s; summing {figures['gradient_bytes'] / 1e6:.0f} MB "
        f'by itself {whole:.3f} s ({bandwidth / 1e9:.2f} GB/s, {1e3 * latency:.2f} ms a message)'
    )
    expected = compute + whole
    for name, measured in list(steps.items())[1:]:
        print(f'  predicted {expected:.3f} s; {name} {expected / measured - 1:+.1%} of measured')
    part = steps['one process'] * args.accumulate
    print(
        f'\npredicted seconds of an update, in which each worker has {args.accumulate} x '
        f'{args.shape}, {part:.2f} s here; and the part of its time in which a worker computes:'
    )
    print('  Gbit/s' + ''.join(f'{n:>16}' for n in args.workers))
    for gbit in args.bandwidths:
        times = [
            part + sum_seconds(figures['gradient_bytes'], n, gbit * 1e9 / 8, latency)
            for n in args.workers
        ]
        print(f'  {gbit:<6g}' + ''.join(f'{t:>10.2f}  {part / t:4.2f}' for t in times))


def network_of(figures):
    """Seconds of a message, and bytes per second, from the sums of small and large arrays."""
    size = figures['processes']
    sums = {int(n): statistics.median(times) for n, times in figures['sums'].items()}
    small, large = min(sums), max(sums)
    moved = 2 * (size - 1) / size * (large - small)
    return sums[small] / (2 * (size - 1)), moved / max(1e-9, sums[large] - sums[small])


def main(argv=None):
    from model_zoo.app import cli
    from model_zoo.util.files import write_json

    parser = cli.parser(__doc__.split('. ')[0])
    add = parser.add_argument
    add('--work', default='operators', choices=['operators', 'processes'])
    add('--shape', default='8x128', help='batch x length, of all processes together')
    add('--layers', type=int, default=12)
    add('--units', type=int, default=768, help='a multiple of 64')
    add('--rounds', type=int, default=5, help='steps; of processes the turns of each')
    add('--json', help='file for the figures')
    add('--dtype', choices=('float32', 'bfloat16'), default='float32', help='of operators')
    add('--docs', metavar='FILE', help='page whose table of operators is replaced')
    add('--processes', type=int, default=2)
    add('--variants', nargs='+', default=['buckets'], choices=list(VARIANTS))
    add('--bandwidths', type=float, nargs='+', default=[1, 10, 25, 100], metavar='GBIT',
        help='of the networks to predict for, a second')  # fmt: skip
    add('--workers', type=int, nargs='+', default=[2, 4, 8, 16, 64],
        help='numbers of workers to predict for')  # fmt: skip
    add('--accumulate', type=int, default=1, help='batches of an update to predict for')
    args = parser.parse_args(argv)
    figures = (show_operators if args.work == 'operators' else show_processes)(args)
    if args.json:
        write_json(args.json, figures)


if __name__ == '__main__':
    run(main)
