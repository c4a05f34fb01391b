"""What Pytorchic BERT's scripts share: flags, JSON files, the schedule, files of steps."""

import itertools
import os
import sys

import mxnet as mx

from model_zoo.app import (
    add_training_arguments,
    check_at_least_one,
    check_training_arguments,
    cli,
)
from model_zoo.errors import InputError, did_you_mean
from model_zoo.training.callbacks import Callback
from model_zoo.util.files import read_json

__all__ = [
    'TRAIN_FIELDS',
    'StepFiles',
    'add_pytorchic_arguments',
    'choose_gpus',
    'linear_rate',
    'name_values',
    'parse_with_train_cfg',
    'read_fields',
]

#: field of a training's JSON file -> the flag that it is the default of, and the original's own
TRAIN_FIELDS = {
    'seed': ('seed', 3431),
    'batch_size': ('batch_size', 32),
    'lr': ('lr', 5e-5),
    'n_epochs': ('epochs', 10),
    'warmup': ('warmup_ratio', 0.1),
    'save_steps': ('save_steps', 100),
    'total_steps': ('total_steps', 100000),
}


def add_pytorchic_arguments(parser, **defaults):
    """Add the flags that classify.py and pretrain.py have in common, and those of our trainings."""
    add = parser.add_argument_group("the original's").add_argument
    add('--train_cfg', help='JSON file of the training, whose fields other flags replace')
    add('--model_cfg', default='config/bert_base.json', help='JSON file of the model')
    add('--model_file', help='model_steps_N.pt of a whole model to load')
    add('--vocab', default='../uncased_L-12_H-768_A-12/vocab.txt', help='vocab.txt, uncased')
    add('--max_len', type=int, help='of the tokens, the special ones counted')
    add('--data_parallel', type=cli.boolean, nargs='?', const=True, default=True,
        help='divide a batch among all GPUs; else: the first one alone')  # fmt: skip
    add('--save_steps', type=int, help='write model_steps_N.pt after so many updates')
    add('--total_steps', type=int, help='updates, until the learning rate is 0')
    add_training_arguments(parser)
    parser.add_alias('save_dir', 'output_dir')
    parser.set_defaults(output_dir=defaults.pop('save_dir'), **defaults)


def name_values(argv, names):
    """Give values at the beginning of a command line their flags, as python-fire does."""
    values = list(itertools.takewhile(lambda word: not word.startswith('-'), argv))
    if len(values) > len(names):
        raise InputError(f'there are {len(values)} values without flags, of at most {len(names)}')
    named = [f'--{name}={value}' for name, value in zip(names, values)]
    return [*named, *argv[len(values) :]]


def parse_with_train_cfg(parser, argv, names, beside):
    """Parse a command line of the original's; the fields of ``--train_cfg`` are flags' defaults."""
    words = name_values(sys.argv[1:] if argv is None else argv, names)
    path = parser.parse_args(words).train_cfg
    fields = read_fields('train_cfg', path, TRAIN_FIELDS, beside)
    for name, value in fields.items():
        if isinstance(TRAIN_FIELDS[name][1], int) and not isinstance(value, int):
            raise InputError(f'--train_cfg {path!r}: {name} is {value}; give a whole number')
    defaults = {flag: fields.get(name, value) for name, (flag, value) in TRAIN_FIELDS.items()}
    parser.set_defaults(**defaults)
    args = parser.parse_args(words)
    check_training_arguments(args)
    check_at_least_one(args, 'save_steps', 'total_steps')
    return args


def read_fields(flag, path, known, beside):
    """The fields of a JSON file."""
    there = next(filter(os.path.isfile, (path, os.path.join(beside, path))), None)
    if there is None:
        raise InputError(f'--{flag} {path!r}: no such file')
    fields = read_json(there, f'--{flag}')
    if not isinstance(fields, dict):
        raise InputError(f'--{flag} {path!r} is not a JSON object')
    for name, value in fields.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f'--{flag} {path!r}: unknown field {name!r}{hint}')
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f'--{flag} {path!r}: {name} is {value!r}; give a number')
    return fields


def choose_gpus(args):
    """Set ``gpus`` as the original chooses its devices: GPUs if there are any."""
    if args.gpu is None and args.gpus is None and mx.runtime.Features().is_enabled('CUDA'):
        count = mx.context.num_gpus()
        args.gpus = ','.join(map(str, range(count if args.data_parallel else min(count, 1))))
    parts = len((args.gpus or '').split(','))
    if args.batch_size % parts:
        raise InputError(
            f'a batch_size of {args.batch_size} cannot be divided among {parts} GPUs: name fewer '
            'with --gpus'
        )
    args.batch_size //= parts


def linear_rate(lr, warmup, total_steps):
    """The original's schedule: up from 0, and then on the line that falls from `lr` to 0."""

    def rate(number):
        progress = (number - 1) / total_steps
        return lr * (progress / warmup if progress < warmup else 1 - progress)

    return rate


class StepFiles(Callback):
    """Writes ``model_steps_N.pt`` after each `interval` updates, as the original does."""

    def __init__(self, save, folder, interval):
        self._save, self._folder, self._interval = save, folder, interval

    def on_step(self, loop):
        if loop.state.step % self._interval == 0:
            self.save(loop.state.step)

    def save(self, step):
        self._save(self._folder.file(f'model_steps_{step}.pt'))
