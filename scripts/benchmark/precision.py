"""BERT base in float32, bfloat16 and float16: a forward pass, and a step of fine-tuning (forward,
backward, clipping, Adam with decoupled weight decay), in one run, as ratios to bfloat16.

float16 is for GPUs; on the CPU its products are computed in float32, with casts around them."""

import sys

import model_zoo  # noqa: F401  isort: skip  sets MXNet's threads before it loads
import mxnet as mx
import numpy as np
from side_by_side import bert_flops, parse_shapes, report, time_in_turn

import model_zoo.optimizer  # noqa: F401  registers bertadam
from bert import BertConfig, BertForSequenceClassification
from model_zoo.app import cli
from model_zoo.optimizer import clip_grad_global_norm

PRECISIONS = ('bfloat16', 'float32', 'float16')  # the first is what the others are compared with


def make_block(config, dtype):
    """A classifier of that precision, as scripts/finetune_classifier.py runs it."""
    block = BertForSequenceClassification(config)
    block.initialize()
    block.cast(dtype)
    block.hybridize(static_alloc=True)
    return block


def make_forward(config, dtype):
    """A function of a batch that runs one forward pass to its end."""
    block = make_block(config, dtype)

    def forward(words, types, length, labels):
        block(words, types, length).wait_to_read()

    return forward


def make_step(config, dtype):
    """A function of a batch that trains on it."""
    block = make_block(config, dtype)
    options = {'learning_rate': 2e-5, 'wd': 0.01, 'multi_precision': dtype == 'float16'}
    trainer = mx.gluon.Trainer(
        block.collect_params(), 'bertadam', options, update_on_kvstore=False
    )
    parameters = [p for p in block.collect_params().values() if p.grad_req != 'null']

    def step(words, types, length, labels):
        with mx.autograd.record():
            loss = block(words, types, length, labels)
        loss.backward()
        trainer.allreduce_grads()
        clip_grad_global_norm(parameters, 1)
        trainer.update(1)
        mx.nd.waitall()

    return step


def compare(title, make, factor, args):
    """Time what `make` makes in each precision, and report it."""
    config = BertConfig()
    contenders = {dtype: make(config, dtype) for dtype in args.precisions.split(',')}
    random = np.random.RandomState(0)
    rows = []
    for batch, length in parse_shapes(args.shapes):
        words = mx.nd.array(random.randint(0, config.vocab_size, (batch, length)))
        labels = mx.nd.array(random.randint(0, 2, batch))
        inputs = words, mx.nd.zeros_like(words), mx.nd.full((batch,), length), labels
        calls = {
            name: lambda call=call, inputs=inputs: call(*inputs)
            for name, call in contenders.items()
        }
        times = time_in_turn(calls, args.rounds, args.seconds)
        rows.append((f'{batch}x{length}', factor * bert_flops(config, batch, length), times))
    path = args.json and f'{args.json}_{make.__name__[5:]}.json'
    report(f'BERT base {title}', rows, path)


def main(argv=None):
    parser = cli.parser(__doc__)
    parser.add_argument('--shapes', default='1x32,1x128,8x128,32x128', help='batch x length')
    parser.add_argument('--precisions', default=','.join(PRECISIONS))
    parser.add_argument('--rounds', type=int, default=10, help='calls of each contender')
    parser.add_argument('--seconds', type=float, default=40, help='limit for one shape')
    parser.add_argument('--only', choices=['forward', 'step'], help='default: both')
    parser.add_argument('--json', help='start of the names of two files for the figures')
    args = parser.parse_args(argv)
    if args.only != 'step':
        compare('forward', make_forward, 1, args)
    if args.only != 'forward':
        compare('fine-tuning step', make_step, 3, args)


if __name__ == '__main__':
    sys.exit(cli.run(main))
