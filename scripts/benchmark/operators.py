"""Where the time of a fine-tuning step of BERT base goes: for each operator its seconds, its
arithmetic, the bytes that it reads and writes, and its share of what the machine can do."""

import collections
import json
import os
import re
import tempfile
import time

# one entry for each operator, not for bulks of them; read when MXNet loads
os.environ['MXNET_EXEC_BULK_EXEC_TRAIN'] = '0'

from finetune_step import make_labelled
from side_by_side import add_flags, parse_shapes, rst_table, run, write_between

#: where `--docs` puts the table
BEGIN, END = '.. operators: begin', '.. operators: end'
#: clipping and Adam, which aren't operators
UPDATE = 'the update (NumPy)'
#: operators whose arithmetic is a product of matrices
PRODUCTS = ('FullyConnected', 'interleaved_matmul', 'dot', 'batch_dot')


def make_step(layers, shape, dtype):
    """The step of scripts/finetune_classifier.py, and its model."""
    import mxnet as mx

    from bert import BertConfig, BertForSequenceClassification
    from model_zoo.batches import Batch
    from model_zoo.optimizer import disable_weight_decay
    from model_zoo.training import Updater, Workers, mean_over_examples

    model = BertForSequenceClassification(BertConfig(num_hidden_layers=layers))
    model.initialize()
    model.cast(dtype)
    model.hybridize(static_alloc=True, static_shape=True)
    disable_weight_decay(model)
    trainer = mx.gluon.Trainer(
        model.collect_params(), 'bertadam', {'wd': 0.01}, update_on_kvstore=False
    )
    objective = mean_over_examples(lambda batch: model(*batch.inputs, batch.labels))
    updater, workers = Updater(model, trainer, lambda number: 1e-5), Workers()
    words, types, lengths, labels = make_labelled(shape)
    batch = Batch(
        *(mx.nd.array(each, dtype='int32') for each in (words, types)), mx.nd.array(lengths),
        mx.nd.array(labels, dtype='int32'), list(range(shape[0])),
    )  # fmt: skip

    def step(number=1):
        counts = objective.count([batch])
        objective.backward([batch], counts, counts.sum(axis=0))
        mx.nd.waitall()
        started = time.perf_counter()
        updater.update(number, workers)
        mx.nd.waitall()
        return time.perf_counter() - started

    return model, batch, step


def arithmetic(model, batch):
    """Operator -> (operations of products, bytes) of a forward pass, from the graph's shapes."""
    data, graph = model._cached_graph
    inputs = [*batch.inputs, batch.labels]
    shapes = {each.name: array.shape for each, array in zip(data, inputs)}
    internals = graph.get_internals()
    _, found, _ = internals.infer_shape(**shapes)
    sizes = dict(zip(internals.list_outputs(), found))
    nodes = json.loads(graph.tojson())['nodes']

    def outputs(node):
        name = node['name']
        if node['op'] == 'null':
            return [sizes[name]]
        return [shape for each, shape in sizes.items() if re.fullmatch(rf'{name}_\w+?', each)]

    work = collections.Counter()
    traffic = collections.Counter()
    for node in nodes:
        if node['op'] == 'null':
            continue
        made = outputs(node)[:1]
        taken = [outputs(nodes[place])[:1] for place, *_ in node['inputs']]
        taken = [shape for shapes in taken for shape in shapes]
        elements = sum(_size(shape) for shape in [*made, *taken])
        name = _plain(node['op'])
        if name == 'Embedding':  # reads the rows that it writes; its gradient has all rows
            elements = 2 * _size(made[0])
            traffic[f'backward {name}'] += 4 * (_size(made[0]) + _size(taken[1]))
        traffic[name] += 4 * elements
        if name.startswith(PRODUCTS):
            work[name] += 2 * _size(made[0]) * _inner(name, node, taken)
    return {name: (work[name], traffic[name]) for name in traffic}


def _inner(name, node, taken):
    """Length of the sums of a product."""
    if name == 'FullyConnected':
        return taken[1][-1]
    heads = int(node['attrs'].get('heads', 1))
    if name.endswith('qk'):  # (length, batch, 3 x units): one head's units
        return taken[0][-1] // 3 // heads
    return taken[-1][-1]  # of the attention weights: the keys


def _size(shape):
    count = 1
    for each in shape:
        count *= each
    return count


def _plain(name):
    """An operator's name as the graph has it."""
    name = name.replace('_contrib_', '')
    return name[1:] if name.startswith('_') else name


def profile(step, rounds):
    """Operator -> seconds of a step; `UPDATE` is what NumPy does with the gradients."""
    import mxnet as mx

    for number in range(2):
        step(number + 1)
    with tempfile.TemporaryDirectory() as folder:
        mx.profiler.set_config(  # MXNet deletes the file of this name, a device, too
            profile_symbolic=True, profile_imperative=True, aggregate_stats=True,
            filename=os.path.join(folder, 'events.json'),
        )  # fmt: skip
        mx.profiler.set_state('run')
        started = time.perf_counter()
        updates = [step(number + 3) for number in range(rounds)]
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
        if is_backward:  # a product's has two products; the others read and write twice as much
            _, own = forward.get(f'backward {plain}', (0, 2 * traffic))
            work, traffic = 2 * work, own
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


def main(argv=None):
    parser = add_flags(__doc__, rounds=3)
    parser.add_argument('--shape', default='8x128', help='batch x length')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--dtype', choices=('float32', 'bfloat16'), default='float32')
    parser.add_argument('--docs', metavar='FILE', help='page whose table is replaced')
    args = parser.parse_args(argv)
    (shape,) = parse_shapes(args.shape)
    model, batch, step = make_step(args.layers, shape, args.dtype)
    peaks = machine()
    times, seconds = profile(step, args.rounds)
    parameters = sum(_size(p.shape) for p in model.collect_params().values())
    rows = rows_of(times, arithmetic(model, batch), parameters)
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
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump({'seconds': seconds, 'peaks': peaks, 'operators': rows}, file, indent=2)


if __name__ == '__main__':
    run(main)
