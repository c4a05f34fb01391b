"""What Pytorchic BERT's scripts share: flags, JSON files, the schedule, files of steps."""

import dataclasses
import functools
import itertools
import logging
import numbers
import os
import sys

import mxnet as mx

from model_zoo.app import cli
from model_zoo.app.arguments import add_settings, check_at_least_one, check_training_arguments
from model_zoo.app.run import Outcome, Training
from model_zoo.errors import InputError
from model_zoo.tasks.tables import check_files
from model_zoo.tasks.task import save_trained
from model_zoo.training.callbacks import Callback
from model_zoo.training.settings import BatchTokensSettings, TrainingSettings
from model_zoo.util.reading import read_json

from .models import (
    CONFIG_FIELDS,
    load_model,
    load_transformer,
    make_config,
    reset_parameters,
    save_model,
)

logger = logging.getLogger(__name__)

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: field of a training's JSON file -> the flag whose default it is, and the original's default
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
    add('--train_cfg', help='JSON file of the training; other flags override its fields')
    add('--model_cfg', default='config/bert_base.json', help='JSON file of the model')
    add('--model_file', help='model_steps_N.pt of a whole model to load')
    add('--vocab', default='../uncased_L-12_H-768_A-12/vocab.txt', help='vocab.txt, uncased')
    add('--max_len', type=int, help='maximum number of tokens, including special tokens')
    add(
        '--data_parallel',
        type=cli.boolean,
        nargs='?',
        const=True,
        default=True,
        help='divide a batch among all GPUs, instead of using only the first one',
    )
    add('--save_steps', type=int, help='updates between two model_steps_N.pt')
    add('--total_steps', type=int, help='number of updates until the learning rate is 0')
    add_settings(parser, TrainingSettings)
    add_settings(parser, BatchTokensSettings)
    parser.add_aliases('output_dir', 'save_dir')
    parser.set_defaults(output_dir=defaults.pop('save_dir'), **defaults)


def name_values(argv, names):
    """Give values at the beginning of a command line their flags, as python-fire does."""
    values = list(itertools.takewhile(lambda word: not word.startswith('-'), argv))
    if len(values) > len(names):
        raise InputError(f'there are {len(values)} values without flags, of at most {len(names)}')
    named = [f'--{name}={value}' for name, value in zip(names, values)]
    return [*named, *argv[len(values) :]]


def parse_with_train_cfg(parser, argv, names):
    """Parse a command line of the original's, with the defaults that ``--train_cfg`` has."""
    words = name_values(sys.argv[1:] if argv is None else argv, names)
    path = parser.parse_args(words).train_cfg
    fields = read_fields('train_cfg', path, TRAIN_FIELDS)
    defaults = {flag: fields.get(name, value) for name, (flag, value) in TRAIN_FIELDS.items()}
    parser.set_defaults(**defaults)
    args = parser.parse_args(words)
    check_training_arguments(args)
    check_at_least_one(args, 'save_steps', 'total_steps')
    check_files(args, 'data_file', 'vocab', 'model_file')
    return args


def read_fields(flag, path, known):
    """The fields of a JSON file, which may be beside the scripts."""
    file = next(filter(os.path.isfile, (path, os.path.join(HERE, path))), path)
    types = [
        (name, numbers.Real if isinstance(value, float) else int, None)
        for name, (_, value) in known.items()
    ]
    return read_json(file, f'--{flag}', shape=dataclasses.make_dataclass('Fields', types))


def make_model(model_class, args, tokenizer, contexts, **options):
    """The model of the JSON file, with the parameters that the flags name."""
    fields = read_fields('model_cfg', args.model_cfg, CONFIG_FIELDS)
    model = model_class(make_config(fields, len(tokenizer.vocab), **options))
    reset_parameters(model, args.seed, contexts)
    if args.model_file:
        logger.info('loading the model from %s', args.model_file)
        load_model(model, args.model_file)
    elif getattr(args, 'pretrain_file', None):
        logger.info('loading the pretrained model from %s', args.pretrain_file)
        load_transformer(model, args.pretrain_file)
    if args.max_len > model.context_length:
        raise InputError(f'--max_len {args.max_len}: the model takes {model.context_length} tokens')
    if args.dtype != 'float32':
        model.cast(args.dtype)
    model.hybridize(static_alloc=True)
    return model


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


def train(args, run, title, model, tokenizer, loader, objective, score, job, **options):
    """The original's training, with ``model_steps_N.pt`` of the same updates."""
    files = StepFiles(lambda path: save_model(model, path), run.folder, args.save_steps)
    state = run.train(
        Training(
            f'{title}, as Pytorchic BERT',
            model,
            loader,
            objective,
            score,
            max_grad_norm=None,  # the optimizer clips the gradient of each parameter by itself
            schedule=lambda steps: linear_rate(args.lr, args.warmup_ratio, args.total_steps),
            updater={'options': {'max_grad_norm': 1.0}, 'decay_all': True},
            callbacks=[files],
            **options,
        ),
        Outcome(functools.partial(save_trained, model=model, tokenizer=tokenizer)),
        job,
    )
    files.save(state.step)


class StepFiles(Callback):
    """Writes ``model_steps_N.pt`` after each `interval` updates, as the original does."""

    def __init__(self, save, folder, interval):
        self._save, self._folder, self._interval = save, folder, interval

    def on_step(self, loop):
        if loop.state.step % self._interval == 0:
            self.save(loop.state.step)

    def save(self, step):
        self._save(self._folder.file(f'model_steps_{step}.pt'))
