"""Time one optimizer update of all parameters of a BERT, ours and the installed peers'."""

import logging
import statistics
import time
import warnings

from model_zoo.app import cli
from model_zoo.util import threads


def parse_arguments(argv):
    parser = cli.parser(__doc__)
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--units', type=int, default=768)
    parser.add_argument('--hidden_size', type=int, default=3072)
    parser.add_argument('--vocab_size', type=int, default=30522)
    parser.add_argument('--repeats', type=int, default=7, help='rounds over all candidates')
    return parser.parse_args(argv)


def bert_shapes(layers, units, hidden, vocab):
    """Shapes of the parameters of a BERT with fused query, key and value."""
    shapes = [(vocab, units), (2, units), (512, units), (units,), (units,)]
    for _ in range(layers):
        shapes += [(3 * units, units), (3 * units,), (units, units), (units,), (units,), (units,)]
        shapes += [(hidden, units), (hidden,), (units, hidden), (units,), (units,), (units,)]
    return shapes + [(units, units), (units,)]


def mxnet_update(optimizer, weights, grads):
    """A function that runs one update of `optimizer` to its end."""
    import mxnet as mx

    updater = mx.optimizer.get_updater(optimizer)
    indices = list(range(len(weights)))

    def update():
        updater(indices, grads, weights)
        mx.nd.waitall()

    return update


def torch_candidates(shapes):
    """(name, function) of the optimizers of torch and pytorch-pretrained-bert, where installed."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads.available_processors())
    parameters = [torch.nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter) * 1e-3
    options = {'lr': 2e-5, 'weight_decay': 0.01}
    yield 'torch AdamW', torch.optim.AdamW(parameters, **options).step
    try:
        from pytorch_pretrained_bert.optimization import BertAdam
    except ImportError:
        return
    warnings.simplefilter('ignore')  # torch's on the original's old calls
    logging.getLogger('pytorch_pretrained_bert').setLevel(logging.ERROR)
    for norm in (-1, 1.0):
        name = 'pytorch-pretrained-bert BertAdam' + (', clipped' if norm > 0 else '')
        yield name, BertAdam(parameters, schedule='none', max_grad_norm=norm, **options).step


def candidates(shapes):
    """(name, function) of all optimizers."""
    import gluonnlp
    import mxnet as mx

    from model_zoo.optimizer import BERTAdam, OpenAIAdam

    weights = [mx.nd.random.normal(0, 0.02, shape=shape) for shape in shapes]
    grads = [mx.nd.random.normal(0, 1e-3, shape=shape) for shape in shapes]
    options = {'learning_rate': 2e-5, 'wd': 0.01}
    for name, optimizer in (
        ('BERTAdam', BERTAdam(**options)),
        ('gluonnlp BERTAdam', gluonnlp.optimizer.BERTAdam(**options)),
        ('BERTAdam, clipped', BERTAdam(max_grad_norm=1.0, **options)),
        ('OpenAIAdam', OpenAIAdam(**options)),
    ):
        yield name, mxnet_update(optimizer, weights, grads)
    yield from torch_candidates(shapes)


def main(argv=None):
    args = parse_arguments(argv)
    shapes = bert_shapes(args.layers, args.units, args.hidden_size, args.vocab_size)
    updates = dict(candidates(shapes))
    for update in updates.values():
        update()  # makes the state
    times = {name: [] for name in updates}
    for _ in range(args.repeats):  # in turns, so that a slow moment of the machine meets all
        for name, update in updates.items():
            start = time.perf_counter()
            update()
            times[name].append(time.perf_counter() - start)
    count = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes)
    processors = threads.available_processors()
    print(f'{count / 1e6:.1f} million parameters, {processors} processors, median of updates')
    reference = statistics.median(times['gluonnlp BERTAdam'])
    for name, measured in times.items():
        median = statistics.median(measured)
        print(f'{name:42}{1000 * median:8.1f} ms   {median / reference:5.2f} x gluonnlp')


if __name__ == '__main__':
    raise SystemExit(cli.run(main))
