"""Measure the memory of a training step, by model, batch and length.

    python memory.py --model bert_12_768_12 --shapes 1x128,2x128,8x128
    python memory.py --model bert_24_1024_16 --shapes 1x512,2x512 --mirror

Each shape, batch x length, is trained on for two updates in a process of its own: what such a
process has had at most, minus what it had before the model, is what the step takes. This is the
CPU's memory; on a GPU the arrays are the same. The model has no head: a classifier's adds little, a
language model's its scores, batch x length x vocabulary x 4 bytes, and their gradient.
"""

import argparse
import json
import os
import re
import subprocess
import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly
import mxnet as mx

from model_zoo.app import cli
from model_zoo.app.arguments import check_at_least_one
from model_zoo.app.run import make_updater
from model_zoo.blocks.graphs import finish_backward
from model_zoo.errors import InputError, ZooError
from model_zoo.opening import find_family
from model_zoo.pretrained import resolve
from model_zoo.training.workers import Workers
from model_zoo.util.files import write_json

STEPS = 2


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('--model', default='bert_12_768_12', help='name; with --config_file one of the same family')
    add('--config_file', help="JSON file with a configuration, instead of --model's")
    add('--vocab_size', type=int, default=30522)
    add('--shapes', type=shapes, default='1x128,2x128', help='batch x length; separate several by '
        'commas')
    add('--optimizer', default='bertadam')
    add('--dtype', default='float32', choices=['float32', 'bfloat16'])
    add('--mirror', action='store_true', help='save memory: recompute layers in the backward pass')
    add('--output', help='also write the figures to this JSON file')
    add('--here', action='store_true', help=argparse.SUPPRESS)  # in this process: one shape
    args = parser.parse_args(argv)
    check_at_least_one(args, 'vocab_size')
    return args


def shapes(text):
    """``'1x128,2x64'`` -> [(1, 128), (2, 64)]"""
    matches = [re.fullmatch(r'([1-9]\d*)x([1-9]\d*)', part) for part in text.split(',')]
    if not all(matches):
        raise argparse.ArgumentTypeError(f'{text!r}: write batch x length, as 8x128,16x128')
    return [tuple(map(int, match.groups())) for match in matches]


def make_model(args):
    family = find_family(args.model)
    if args.config_file:
        config = family.base.config_class.from_json_file(args.config_file)
    else:
        fields = family.base.architectures[resolve(args.model)[0]]
        config = family.base.config_class.from_dict({**fields, 'vocab_size': args.vocab_size})
    model = family.base(config)
    model.initialize()
    if args.dtype != 'float32':
        model.cast(args.dtype)
    model.hybridize(static_alloc=True)
    if args.mirror:
        model.mirror()
    return model


def peak():
    """The most bytes of this process; ``ru_maxrss`` of getrusage begins with the parent's peak."""
    with open('/proc/self/status', encoding='ascii', errors='replace') as file:
        line = next(line for line in file if line.startswith('VmHWM'))
    return int(line.split()[1]) * 1024


def measure(args):
    """Bytes of the parameters, and of a step, at the only shape."""
    ((batch, length),) = args.shapes
    before = peak()
    model = make_model(args)
    if length > model.context_length:
        raise InputError(f'--shapes: the model takes {model.context_length} tokens, not {length}')
    args.wd, args.epsilon, args.loss_scale, args.optimize_on_cpu = 0.01, 1e-6, None, False
    updater = make_updater(args, model, lambda step: 1e-5)
    words = mx.nd.random.randint(0, 1000, (batch, length), dtype='int32')
    for number in range(1, STEPS + 1):
        with mx.autograd.record():
            outputs = model(words)
            loss = (outputs[0] if isinstance(outputs, (list, tuple)) else outputs).mean()
        loss.backward()
        finish_backward()
        updater.update(number, Workers())
        mx.nd.waitall()
    size = sum(parameter.data().size for parameter in model.collect_params().values())
    return {'batch': batch, 'length': length, 'parameters': size, 'bytes': peak() - before}


def measure_apart(argv, shape):
    shape = f'{shape[0]}x{shape[1]}'
    command = [sys.executable, os.path.abspath(__file__), *argv, '--here', '--shapes', shape]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        problem = done.stderr.strip().split('\n')[-1]
        raise ZooError(f'{shape}: {problem or "the process was killed"}')
    return json.loads(done.stdout)


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    args = parse_arguments(argv)
    if args.here:
        print(json.dumps(measure(args)))
        return
    rows = []
    print(f'{"batch":>6} {"length":>7} {"parameters":>12} {"step":>10} {"a sample":>10}  in MB')
    for shape in args.shapes:
        row = measure_apart(argv, shape)
        # weights, gradients, and what the optimizer keeps, are there at any shape
        earlier = [row for row in rows if row['length'] == shape[1] and row['batch'] < shape[0]]
        sample = ''
        if earlier:
            first = earlier[0]
            sample = (row['bytes'] - first['bytes']) / (shape[0] - first['batch'])
            sample = f'{sample / 2**20:.0f}'
        megabytes = f'{row["parameters"] * 4 / 2**20:12.0f} {row["bytes"] / 2**20:10.0f}'
        print(f'{shape[0]:6} {shape[1]:7} {megabytes} {sample:>10}', flush=True)
        rows.append(row)
    if args.output:
        write_json(args.output, {'args': vars(args), 'rows': rows})


if __name__ == '__main__':
    cli.run_script(main)
