"""One optimizer update of all parameters of a BERT: ours beside the installed peers', in turn."""

import logging
import warnings

from side_by_side import Case, Contender, add_flags, measure, report, run, threads

SGD = {'learning_rate': 2e-5, 'wd': 0.01}


def bert_shapes(layers, units, hidden, vocab):
    """Shapes of the parameters of a BERT with fused query, key and value."""
    shapes = [(vocab, units), (2, units), (512, units), (units,), (units,)]
    for _ in range(layers):
        shapes += [(3 * units, units), (3 * units,), (units, units), (units,), (units,), (units,)]
        shapes += [(hidden, units), (hidden,), (units, hidden), (units,), (units,), (units,)]
    return shapes + [(units, units), (units,)]


def _gluon_update(optimizer):
    import mxnet as mx

    def prepare(shapes):
        weights = [mx.nd.random.normal(0, 0.02, shape=shape) for shape in shapes]
        grads = [mx.nd.random.normal(0, 1e-3, shape=shape) for shape in shapes]
        updater = mx.optimizer.get_updater(optimizer)
        indices = list(range(len(shapes)))

        def update():
            updater(indices, grads, weights)
            mx.nd.waitall()

        return update

    return prepare


def ours(options, name, **arguments):
    from model_zoo import optimizer

    return _gluon_update(getattr(optimizer, name)(**SGD, **arguments))


def gluonnlp(options):
    import gluonnlp

    return _gluon_update(gluonnlp.optimizer.BERTAdam(**SGD))


def _torch_update(make):
    import torch

    torch.set_num_threads(threads())

    def prepare(shapes):
        parameters = [torch.nn.Parameter(torch.randn(shape) * 0.02) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter) * 1e-3
        step = make(parameters, lr=2e-5, weight_decay=0.01).step

        def update():
            step()

        return update

    return prepare


def adamw(options):
    import torch

    return _torch_update(torch.optim.AdamW)


def pytorch_pretrained_bert(options, max_grad_norm):
    import functools

    from pytorch_pretrained_bert.optimization import BertAdam

    warnings.simplefilter('ignore')  # torch's on the original's old calls
    logging.getLogger('pytorch_pretrained_bert').setLevel(logging.ERROR)
    make = functools.partial(BertAdam, schedule='none', max_grad_norm=max_grad_norm)
    return _torch_update(make)


OURS = [
    Contender('BERTAdam', ours, arguments={'name': 'BERTAdam'}),
    Contender('BERTAdam, clipped', ours, arguments={'name': 'BERTAdam', 'max_grad_norm': 1.0}),
    Contender('OpenAIAdam', ours, arguments={'name': 'OpenAIAdam'}),
]
ORIGINAL = 'torch', 'pytorch_pretrained_bert'
PEERS = [
    Contender('gluonnlp BERTAdam', gluonnlp, ('gluonnlp',)),
    Contender('torch AdamW', adamw, ('torch',)),
    Contender(
        'pytorch-pretrained-bert BertAdam', pytorch_pretrained_bert, ORIGINAL, {'max_grad_norm': -1}
    ),
    Contender(
        'pytorch-pretrained-bert BertAdam, clipped',
        pytorch_pretrained_bert,
        ORIGINAL,
        {'max_grad_norm': 1.0},
    ),
]


def main(argv=None):
    parser = add_flags(__doc__)
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--units', type=int, default=768)
    parser.add_argument('--hidden_size', type=int, default=3072)
    parser.add_argument('--vocab_size', type=int, default=30522)
    parser.add_argument('--repeats', type=int, default=7, help='turns of each contender')
    args = parser.parse_args(argv)
    args.rounds = args.repeats
    shapes = bert_shapes(args.layers, args.units, args.hidden_size, args.vocab_size)
    count = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes)
    measured = measure(OURS, PEERS, [Case('update', shapes, count)], args)
    title = f'Update of {count / 1e6:.1f} million parameters'
    report(title, measured, args.json, 'M parameters/s')


if __name__ == '__main__':
    run(main)
