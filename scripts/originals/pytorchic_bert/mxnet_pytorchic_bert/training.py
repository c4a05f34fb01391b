"""Parts that Pytorchic BERT's scripts share: flags, JSON files, the schedule, files of steps."""

import itertools
import logging
import os
import sys

import mxnet as mx

from bert import BertTokenizer
from model_zoo.app import cli
from model_zoo.app.arguments import add_settings
from model_zoo.app.trainer import Trainer
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.pretrained import local_path
from model_zoo.tasks.tables import check_files
from model_zoo.tasks.task import Task
from model_zoo.training.settings import Count, TrainingSettings, setting
from model_zoo.training.updater import make_updater
from model_zoo.util.reading import read_json

from . import models

logger = logging.getLogger(__name__)

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: field of a training's JSON file -> the flag whose default it is
TRAIN_FIELDS = {
    **{name: name for name in ('seed', 'batch_size', 'lr', 'save_steps', 'total_steps')},
    'n_epochs': 'epochs',
    'warmup': 'warmup_ratio',
}


class PytorchicSettings(TrainingSettings, seed=3431, lr=5e-5, epochs=10):
    """The flags that classify.py and pretrain.py have in common."""

    title = "the original's"

    train_cfg: str = setting(None, 'JSON file of the training, below other flags', 'mutable')
    model_cfg: str = setting('config/bert_base.json', 'JSON file of the model', 'mutable')
    model_file: str | None = setting(None, 'model_steps_N.pt of a whole model to load')
    data_file: str = setting(None, 'the data', 'mutable')
    vocab: str = setting('../uncased_L-12_H-768_A-12/vocab.txt', 'vocab.txt, uncased', 'mutable')
    max_len: int = setting(None, 'maximum number of tokens, including special tokens')
    data_parallel: bool = setting(True, 'divide a batch among all GPUs', 'mutable')
    save_steps: Count = setting(100, 'updates between two model_steps_N.pt', 'mutable')
    total_steps: Count = setting(100000, 'number of updates until the learning rate is 0')


def name_values(argv, names):
    """Add flags to the values at the beginning of a command line, as python-fire does."""
    values = list(itertools.takewhile(lambda word: not word.startswith('-'), argv))
    named = [f'--{name}={value}' for name, value in zip(names, values)]
    return [*named, *argv[len(named) :]]


def parse(settings_class, doc, argv, names, aliases=(), **defaults):
    """Return the settings of the original's command line, with the defaults of --train_cfg.

    `names` are the flags of values without a flag. `aliases` are pairs of the original's flags and
    this project's.
    """
    parser = cli.parser(doc.split('\n')[0])
    add_settings(parser, settings_class)
    for alias, ours in (('save_dir', 'output_dir'), *aliases):
        parser.add_aliases(ours, alias)
    parser.set_defaults(**defaults)
    words = name_values(sys.argv[1:] if argv is None else argv, names)
    fields = read_fields('train_cfg', parser.parse_args(words).train_cfg, TRAIN_FIELDS)
    parser.set_defaults(**{TRAIN_FIELDS[name]: value for name, value in fields.items()})
    parsed = settings_class(**vars(parser.parse_args(words)))
    check_files(parsed, 'data_file', 'vocab', 'model_file')
    return parsed


def read_fields(flag, path, known):
    """Return the fields of a JSON file, which may be beside the scripts."""
    file = next(filter(os.path.isfile, (path, os.path.join(HERE, path))), path)
    fields = read_json(file, flag, dict.fromkeys(known, float | None))
    for name in fields:
        UnknownNameError.check(f'field of {file}', name, known)
    return fields


def choose_gpus(settings):
    """Return settings with ``gpus`` as the original chooses its devices: GPUs if there are any."""
    gpus = settings.gpus
    if settings.gpu is None and gpus is None and mx.runtime.Features().is_enabled('CUDA'):
        count = mx.context.num_gpus()
        gpus = ','.join(map(str, range(count if settings.data_parallel else min(count, 1))))
    parts = len((gpus or '').split(','))
    if settings.batch_size % parts:
        problem = f'{settings.batch_size} cannot be divided among {parts} GPUs: name fewer `gpus`'
        raise InputError(problem, field='batch_size')
    return settings.with_defaults(gpus=gpus, batch_size=settings.batch_size // parts)


def linear_rate(lr, warmup, total_steps):
    """Return the original's schedule: up from 0, then along the line that falls from `lr` to 0."""

    def rate(number):
        progress = (number - 1) / total_steps
        return lr * (progress / warmup if progress < warmup else 1 - progress)

    return rate


class PytorchicTask(Task):
    """Base of the original's two trainings, whose `head` is a block's class."""

    family = use = unit = predicted = None
    has_own_head, base, trains = False, 'as Pytorchic BERT', True
    pretrain_file = None

    def locate(self, given=None):
        return {'train': self.settings.data_file}

    def open(self, choice, contexts):
        """Return the model of the JSON file, with the parameters that the flags name."""
        settings = self.settings
        tokenizer = BertTokenizer(local_path(settings.vocab)[0], do_lower_case=True, never_split=())
        fields = read_fields('model_cfg', settings.model_cfg, models.CONFIG_FIELDS)
        config = models.make_config(fields, len(tokenizer.vocab), **self.model_options())
        model = self.head(config)
        models.reset_parameters(model, settings.seed, contexts)
        if settings.model_file:
            logger.info('loading the model from %s', settings.model_file)
            models.load_model(model, local_path(settings.model_file)[0])
        elif self.pretrain_file:
            logger.info('loading the pretrained model from %s', self.pretrain_file)
            models.load_transformer(model, self.pretrain_file)
        self.settings = settings.fit_length('max_len', model.context_length)
        if settings.dtype != 'float32':
            model.cast(settings.dtype)
        model.hybridize(static_alloc=True)
        return model, tokenizer

    def end_after(self, steps):
        """End after `steps` updates, unless the settings have a number."""
        if self.settings.training_steps is None:
            self.assume(training_steps=steps)

    def job(self, train):
        return {'data_file': train}

    def schedule(self, num_steps):
        settings = self.settings
        return linear_rate(settings.lr, settings.warmup_ratio, settings.total_steps)

    def results(self):
        return {}


class PytorchicTrainer(Trainer):
    """The original's training, with ``model_steps_N.pt`` of the same updates."""

    def make_updater(self, num_steps):
        # the optimizer clips the gradient of each parameter by itself
        options, schedule = {'max_grad_norm': 1.0}, self.task.schedule(num_steps)
        return make_updater(self.settings, self.block, schedule, None, True, options)

    def on_step(self, loop):
        if loop.state.step % self.settings.save_steps == 0:
            self._save_step()

    def write(self):
        super().write()
        self._save_step()

    def _save_step(self):
        models.save_model(self.model, self.folder.file(f'model_steps_{self.state.step}.pt'))
