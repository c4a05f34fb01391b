"""Peak memory and time of a fine-tuning step of BERT base with and without mirroring (gradient
checkpointing). The memory is what the steps add to the model's."""

from inference import VOCAB_SIZE
from side_by_side import Case, Contender, add_flags, bert_flops, measure, parse_shapes, report, run


def ours(options, mirrors):
    import mxnet as mx
    import numpy as np

    from bert import BertConfig, BertForSequenceClassification

    try:
        from model_zoo.blocks.graphs import finish_backward
    except ImportError:  # a checkout of version 0.1
        from model_zoo.mirror import finish_backward

    config = BertConfig(
        num_hidden_layers=options.layers,
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
    )
    mx.random.seed(0)
    block = BertForSequenceClassification(config)
    block.initialize()
    block.hybridize(static_alloc=True)
    if mirrors:
        block.mirror()

    def prepare(shape):
        batch, length = shape
        random = np.random.RandomState(0)
        words = mx.nd.array(random.randint(0, VOCAB_SIZE, shape))
        labels = mx.nd.array(random.randint(0, 2, batch))
        mx.nd.waitall()

        def step():
            with mx.autograd.record():
                loss = block(words, valid_length=mx.nd.full((batch,), length), labels=labels)
            loss.backward()
            finish_backward()
            mx.nd.waitall()
            return float(loss.asscalar())

        return step

    return prepare


CONTENDERS = {
    '0': Contender('plain', ours, arguments={'mirrors': False}),
    '1': Contender('mirrored', ours, arguments={'mirrors': True}),
}


def main(argv=None):
    parser = add_flags(' '.join(__doc__.split()))
    parser.add_argument('--shapes', default='8x128,16x128', help='batch x length')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--dropout', type=float, default=0.1)
    parser.add_argument('--steps', type=int, default=2)
    parser.add_argument('--mirrors', choices=['0', '1'], help='only without (0), or with (1)')
    args = parser.parse_args(argv)
    args.rounds = args.steps
    contenders = [each for key, each in CONTENDERS.items() if args.mirrors in (None, key)]
    measured = []
    for batch, length in parse_shapes(args.shapes):
        work = 3 * bert_flops(args.layers, batch, length)
        case = Case(f'{batch}x{length}', (batch, length), work)
        # new processes for each shape, since the most memory that one has had never falls
        measured += measure(contenders, [], [case], args, warm=False, same=_print_loss)
    report(f'BERT base fine-tuning step, dropout {args.dropout}', measured, args.json)


def _print_loss(name, loss, expected):
    print(f'{name}: loss {loss:.7f}')


if __name__ == '__main__':
    run(main)
