"""The time of a training step by several Horovod processes: measured here with one and two, and
predicted for N workers from their computing, the bytes of the gradient and the bandwidth."""

import json
import os
import signal
import statistics
import subprocess
import sys

from side_by_side import add_flags, parse_shapes, run


def add_worker(parser):
    parser.add_argument('--shape', default='8x128', help='batch x length of all workers together')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--units', type=int, default=768, help='a multiple of 64')
    parser.add_argument('--processes', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5, help='turns of each contender')
    parser.add_argument('--variants', nargs='+', default=['buckets'], choices=list(VARIANTS))
    parser.add_argument('--bandwidths', type=float, nargs='+', default=[1, 10, 25, 100],
        metavar='GBIT', help='of the networks to predict for, a second')  # fmt: skip
    parser.add_argument('--workers', type=int, nargs='+', default=[2, 4, 8, 16, 64],
        help='numbers of workers to predict for')  # fmt: skip
    parser.add_argument('--accumulate', type=int, default=1, help='batches of an update')


#: ways to sum gradients: options of `HorovodWorkers`
VARIANTS = {
    'buckets': {},
    'one_by_one': {'bucket_bytes': 0},
    'float16': {'compression': 'float16'},
    'at_once': {'bucket_bytes': 2**40},
}


class Worker:
    """A process that trains: it does what is written to its standard input, line by line."""

    def __init__(self, options):
        import mxnet as mx

        from bert import BertConfig, BertForSequenceClassification
        from model_zoo.batches import Batch
        from model_zoo.optimizer import disable_weight_decay
        from model_zoo.training import HorovodWorkers, Updater, Workers, mean_over_examples

        self._mx = mx
        size = options['processes']
        self.workers = HorovodWorkers(**VARIANTS[options['variant']]) if size > 1 else Workers()
        self._alone = Workers()
        ((batch, length),) = parse_shapes(options['shape'])
        rows = batch // size
        units = options['units']
        config = BertConfig(
            num_hidden_layers=options['layers'], hidden_size=units, intermediate_size=4 * units,
            num_attention_heads=units // 64,
        )  # fmt: skip
        model = BertForSequenceClassification(config)
        model.initialize()
        model.hybridize(static_alloc=True, static_shape=True)
        disable_weight_decay(model)
        trainer = mx.gluon.Trainer(
            model.collect_params(), 'bertadam', {'wd': 0.01}, update_on_kvstore=False
        )
        words = mx.nd.random.randint(0, 30000, (rows, length)).astype('int32')
        self._batch = Batch(
            words, mx.nd.zeros_like(words), mx.nd.full((rows,), length),
            mx.nd.zeros((rows,), dtype='int32'), list(range(rows)),
        )  # fmt: skip
        self._objective = mean_over_examples(lambda batch: model(*batch.inputs, batch.labels))
        self._updater = Updater(model, trainer, lambda number: 1e-5)
        self.workers.prepare(self._updater.parameters)
        self.number = 0

    @property
    def num_bytes(self):
        """Bytes of the gradient."""
        return sum(4 * p.list_grad()[0].size for p in self._updater.parameters)

    def step(self, together=True):
        """Seconds of an update; alone, this worker's part without the others."""
        import time

        workers = self.workers if together else self._alone
        self._mx.nd.waitall()
        if together:
            workers.wait()  # begin at the same time
        started = time.perf_counter()
        counts = self._objective.count([self._batch])
        totals = workers.sum(counts.sum(axis=0))
        self._objective.backward([self._batch], counts, totals)
        self.number += 1
        self._updater.update(self.number, workers)
        self._mx.nd.waitall()
        return time.perf_counter() - started

    def sum(self, num_bytes):
        """Seconds to sum an array of some bytes over the workers."""
        import time

        array = self._mx.nd.zeros((num_bytes // 4,))
        array.wait_to_read()
        self.workers.wait()
        started = time.perf_counter()
        self.workers._sum(array, f'{num_bytes} bytes', 0)
        array.wait_to_read()
        return time.perf_counter() - started


def serve(options):
    """The life of a worker."""
    worker = Worker(json.loads(options))
    print(json.dumps(worker.num_bytes), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, name)(*arguments)), flush=True)


class Team:
    """Processes that train one model; they are stopped while others have their turn."""

    def __init__(self, options, processes, variant='buckets'):
        self.name = 'one process' if processes == 1 else f'{processes} processes, {variant}'
        options = json.dumps({**options, 'processes': processes, 'variant': variant})
        cores = len(os.sched_getaffinity(0))
        environment = {**os.environ, 'OMP_NUM_THREADS': str(max(1, cores // processes))}
        environment['HOROVOD_GLOO_TIMEOUT_SECONDS'] = '3600'  # members wait for their turn
        self._server, places = None, [{}]
        if processes > 1:
            self._server, places = _rendezvous(processes)
        self._members = [
            subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), '--serve', options],
                env={**environment, **place}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True,
            )
            for place in places
        ]  # fmt: skip
        self.num_bytes = self._read()[0]
        self._pause()

    def _read(self):
        return [json.loads(member.stdout.readline()) for member in self._members]

    def _pause(self):
        for member in self._members:
            member.send_signal(signal.SIGSTOP)

    def ask(self, *request, times=1):
        """The answers of the slowest member to some requests."""
        for member in self._members:
            member.send_signal(signal.SIGCONT)
        answers = []
        for _ in range(times):
            for member in self._members:
                member.stdin.write(json.dumps(request) + '\n')
                member.stdin.flush()
            answers.append(max(self._read()))
        self._pause()
        return answers

    def close(self):
        for member in self._members:
            member.kill()
            member.wait()
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
    places = [{**common, **gloo_run.create_slot_env_vars(slot)} for slot in slots]
    return server, [{name: str(value) for name, value in each.items()} for each in places]


def sum_seconds(num_bytes, workers, bandwidth, latency=0.0):
    """Seconds in which N workers sum their gradients by a ring."""
    if workers == 1:
        return 0.0
    return 2 * (workers - 1) * (num_bytes / workers / bandwidth + latency)


def main(argv=None):
    parser = add_flags(__doc__)
    add_worker(parser)
    args = parser.parse_args(argv)
    options = {'shape': args.shape, 'layers': args.layers, 'units': args.units}
    teams = [Team(options, 1)]
    try:
        teams += [Team(options, args.processes, variant) for variant in args.variants]
        figures = measure(teams, args)
    finally:
        for team in teams:
            team.close()
    show(figures, args)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump(figures, file, indent=2)


def measure(teams, args):
    """Medians and all times of all teams, which take turns."""
    one, first = teams[:2]
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
        'gradient_bytes': one.num_bytes, 'steps': steps, 'own_part': alone, 'sums': sums,
    }  # fmt: skip


def show(figures, args):
    """The measured times, the check of the prediction, and the predictions."""
    size, one = figures['processes'], figures['steps']['one process']
    print(
        f'BERT, {args.layers} layers of {args.units} units, {args.shape}: seconds of a step, best '
        'and median'
    )
    for name, times in figures['steps'].items():
        ratio = statistics.median(a / b for a, b in zip(one, times))
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


if __name__ == '__main__':
    if sys.argv[1:2] == ['--serve']:
        serve(sys.argv[2])
    else:
        run(main)
