"""BERT base in float32, bfloat16 and float16: a forward pass, and a step of fine-tuning (forward,
backward, clipping, Adam with decoupled weight decay), in turn, as ratios to the first precision.

float16 is for GPUs; on the CPU its products are computed in float32, with casts around them."""

from finetune_step import OPTIONS, make_labelled
from side_by_side import (
    Case,
    Contender,
    add_flags,
    bert_flops,
    gluon_step,
    measure,
    our_update,
    parse_shapes,
    report,
    run,
)

PRECISIONS = ('bfloat16', 'float32', 'float16')


def _make_block(layers, dtype):
    """A classifier of that precision, as scripts/finetune_classifier.py runs it."""
    from bert import BertConfig, BertForSequenceClassification

    block = BertForSequenceClassification(BertConfig(num_hidden_layers=layers))
    block.initialize()
    block.cast(dtype)
    block.hybridize(static_alloc=True)
    return block


def forward(options, dtype):
    import mxnet as mx

    block = _make_block(options.layers, dtype)

    def prepare(shape):
        batch = [mx.nd.array(array) for array in make_labelled(shape)[:3]]
        return lambda: block(*batch).wait_to_read()

    return prepare


def step(options, dtype):
    import mxnet as mx

    block = _make_block(options.layers, dtype)
    settings = {**OPTIONS, 'multi_precision': dtype == 'float16'}
    update = our_update(block, 'bertadam', settings)

    def prepare(shape):
        batch = [mx.nd.array(array) for array in make_labelled(shape)]

        return gluon_step(lambda: block(*batch), update)

    return prepare


def compare(title, make, factor, args):
    """Time what `make` makes in each precision, and report it."""
    cases = [
        Case(f'{batch}x{length}', (batch, length), factor * bert_flops(args.layers, batch, length))
        for batch, length in parse_shapes(args.shapes)
    ]
    contenders = [
        Contender(dtype, make, arguments={'dtype': dtype}) for dtype in args.precisions.split(',')
    ]
    measured = measure(contenders, [], cases, args)
    path = args.json and f'{args.json}_{make.__name__}.json'
    report(f'BERT base {title}, {args.layers} layers', measured, path)


def main(argv=None):
    parser = add_flags(__doc__, rounds=10, seconds=40)
    parser.add_argument('--shapes', default='1x32,1x128,8x128,32x128', help='batch x length')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--precisions', default=','.join(PRECISIONS))
    parser.add_argument('--only', choices=['forward', 'step'], help='default: both')
    args = parser.parse_args(argv)
    if args.only != 'step':
        compare('forward', forward, 1, args)
    if args.only != 'forward':
        compare('fine-tuning step', step, 3, args)


if __name__ == '__main__':
    run(main)
