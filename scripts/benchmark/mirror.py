"""Peak memory and time of a fine-tuning step of BERT base with and without mirroring (gradient
checkpointing). Each runs in a process of its own; the memory is what the steps add to the model's.
"""

import argparse
import json
import subprocess
import sys
import time

import model_zoo  # noqa: F401  isort: skip  sets MXNet's threads before it loads
import mxnet as mx
import numpy as np
from side_by_side import parse_shapes

from bert import BertConfig, BertForSequenceClassification
from model_zoo.app import cli
from model_zoo.blocks.mirror import finish_backward
from model_zoo.errors import InputError


def peak_memory():
    """The most memory that this process has had, in MB."""
    with open('/proc/self/status', encoding='ascii') as file:
        line = next(line for line in file if line.startswith('VmHWM'))
    return int(line.split()[1]) / 1024


def measure(batch, length, layers, dropout, mirrors, steps):
    """The memory that training steps take, the seconds of the last one, and the last loss."""
    config = BertConfig(
        num_hidden_layers=layers, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
    )
    mx.random.seed(0)
    block = BertForSequenceClassification(config)
    block.initialize()
    block.hybridize(static_alloc=True)
    if mirrors:
        block.mirror()
    random = np.random.RandomState(0)
    words = mx.nd.array(random.randint(0, config.vocab_size, (batch, length)))
    labels = mx.nd.array(random.randint(0, 2, batch))
    mx.nd.waitall()
    before = peak_memory()
    for _ in range(steps):
        start = time.perf_counter()
        with mx.autograd.record():
            loss = block(words, valid_length=mx.nd.full((batch,), length), labels=labels)
        loss.backward()
        finish_backward()
        mx.nd.waitall()
    return {
        'megabytes': peak_memory() - before,
        'seconds': time.perf_counter() - start,
        'loss': float(loss.asscalar()),
    }


def main(argv=None):
    parser = cli.parser(__doc__)
    parser.add_argument('--shapes', default='8x128,16x128', help='batch x length')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--dropout', type=float, default=0.1)
    parser.add_argument('--steps', type=int, default=2)
    parser.add_argument('--mirrors', choices=['0', '1'], help=argparse.SUPPRESS)  # for itself
    args = parser.parse_args(argv)
    if args.mirrors:
        ((batch, length),) = parse_shapes(args.shapes)
        result = measure(
            batch, length, args.layers, args.dropout, args.mirrors == '1', args.steps
        )
        print(json.dumps(result))
        return
    print(f'{"case":>8}{"dropout":>9}{"mirror":>8}{"MB":>8}{"s/step":>8}  loss')
    for shape in args.shapes.split(','):
        for mirrors in ('0', '1'):
            command = [sys.executable, __file__, '--shapes', shape, '--mirrors', mirrors]
            for name in ('layers', 'dropout', 'steps'):
                command += [f'--{name}', str(getattr(args, name))]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if run.returncode:
                raise InputError(f'the run of {shape} with --mirrors {mirrors} failed')
            result = json.loads(run.stdout)
            print(
                f'{shape:>8}{args.dropout:>9}{mirrors:>8}{result["megabytes"]:>8.0f}'
                f'{result["seconds"]:>8.2f}  {result["loss"]:.7f}'
            )


if __name__ == '__main__':
    sys.exit(cli.run(main))
