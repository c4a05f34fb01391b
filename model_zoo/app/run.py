"""A training or an inference from its flags, with all its output files."""

import dataclasses
import inspect
import logging
import math
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import mxnet as mx

from ..errors import InputError, UnknownNameError
from ..optimizer import disable_weight_decay
from ..training.callbacks import Callback, ProgressLogger, TensorBoardWriter
from ..training.job import checkpoints_of
from ..training.loop import TrainingLoop
from ..training.objective import Objective
from ..training.plan import Evaluation, Plan
from ..training.updater import HostTrainer, LossScale, Updater
from ..training.workers import Workers
from ..util.arrays import check_gpu
from .cli import get_ctx
from .report import (
    About,
    Curves,
    log_summary,
    next_command,
    plot_curves,
    write_card,
    write_report_page,
)
from .run_folder import RunFolder

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Training:
    """What is trained, on what.

    Parameters
    ----------
    loader : object
        See `TrainingLoop`; has a length unless the flags say how many steps there are.
    schedule : callable
        Number of updates -> schedule (see `Updater`).
    evaluate : callable, optional
        See `Evaluation`, whose score is called `score`. Without it the last epoch counts as the
        best.
    draws_updates : bool
        Whether the loader draws the samples of an update for all devices together.
    """

    title: str
    model: mx.gluon.Block
    loader: Any
    objective: Objective
    score: str = 'score'
    evaluate: Callable | None = None
    max_grad_norm: float | None = 1.0
    schedule: Callable | None = None
    num_steps: int | None = None
    num_epochs: int | None = None
    updater: dict = dataclasses.field(default_factory=dict)
    callbacks: Sequence = ()
    draws_updates: bool = False


@dataclasses.dataclass
class Outcome:
    """What to do with the best epoch.

    save : callable
        ``save(folder, **options)`` writes the model as it is, with options of `save_trained`.
    predict : callable, optional
        ``predict(folder)`` writes predictions of the best model, and returns the files' names; with
        ``--save_last`` of the last epoch's.
    examine : callable, optional
        ``examine()`` is the `Examination` of the same model, or None.
    """

    save: Callable
    predict: Callable | None = None
    results: dict = dataclasses.field(default_factory=dict)
    examine: Callable | None = None
    about: About | None = None


class Run:
    """A run of a command with the flags of `TrainingSettings`.

    Creating it starts the log ``log_NAME.txt`` in ``--output_dir`` and sets the seed.

    Parameters
    ----------
    family : str
        Comes before the name in the names of files with parameters, if there is one.
    trains : bool
        Whether the run is a new or resumed training: see `RunFolder`.

    Attributes
    ----------
    contexts : list of mx.Context
        The devices; several workers have one GPU each. An update takes a batch for each device.
    is_kept : bool
        Whether the folder stays after the run. Otherwise `train` writes no more to it than the
        epochs' parameters, which the best of them is taken from.
    """

    def __init__(self, args, name, family='', workers=None, trains=True, **options):
        self.args, self.workers = args, workers or Workers()
        self.contexts = find_contexts(args.gpus, self.workers, args.gpu)
        self.ctx = self.contexts[0]
        self.folder = RunFolder(
            args.output_dir, args, f'log_{name}.txt', self.workers, trains=trains, **options
        )
        self._model_name = f'{family}_{name}' if family else name
        self.is_kept = True

    def train(self, training, outcome, job):
        """Train according to the flags, and write all files of a training to the folder.

        These are ``model_NAME_EPOCH.params`` of the last epochs and the best one (epochs counted
        from 0, as GluonNLP's scripts count them in names of files), ``checkpoints/``,
        ``curves.png``, ``report.html``, ``results.json``, ``eval_results.txt`` (of the best epoch),
        and ``best_model/`` with its card. At the end the model has the best epoch's parameters.
        With ``--save_last`` the folder itself has the last epoch's model, as the originals' has,
        and ``eval_results.txt`` and the predictions are of that one.
        """
        args, loader = self.args, training.loader
        if args.mirror:
            training.model.mirror()
        if training.evaluate is None:
            if args.early_stop:
                raise InputError('needs a dev set to compare the epochs on', field='early_stop')
            logger.info('there is no dev set: the last epoch is the result')
        plan = self._plan(training)
        if self.workers.rank == 0:
            self.folder.clear()
        metric = None if training.evaluate is None else training.score
        files = EpochFiles(
            self.folder, self._model_name, training.title, metric, outcome.results, self.is_kept
        )
        callbacks = [ProgressLogger(), files, *training.callbacks]
        if args.tensorboard:
            callbacks.append(TensorBoardWriter(args.tensorboard))
        self.files = files
        self.loop = loop = TrainingLoop(
            self._updater(training, plan),
            training.objective,
            loader,
            plan,
            Evaluation(training.evaluate, early_stop=args.early_stop),
            checkpoints_of(
                args,
                self.folder.checkpoints() if self.is_kept else None,
                job,
                len(self.contexts),
                training.draws_updates,
            ),
            callbacks,
            self.workers,
        )
        if args.resume:
            path = loop.resume()
            if path is not None:
                logger.info('resuming from %s', path)
        tokens = getattr(args, 'batch_tokens', None)
        size = (tokens or args.batch_size) * plan.accumulate * self.workers.size
        unit = 'tokens at most' if tokens else 'examples'
        logger.info('training: %d steps of %d %s', plan.num_steps, size, unit)
        state = loop.run()
        if self.workers.rank > 0:
            return state
        best = state.best
        logger.info(
            '%s epoch: %d of %d%s; %.0f s of training',
            'last' if training.evaluate is None else 'best',
            best['epoch'],
            len(state.epochs),
            '' if training.evaluate is None else f', {training.score} {best["score"]:.4f}',
            state.seconds,
        )
        if args.save_last:
            outcome.save(self.folder.path, format=args.save_last)
            made = self._use(outcome)
        training.model.load_parameters(files.path(best['epoch']))
        if not self.is_kept:
            return state
        outcome.save(self.folder.file('best_model'))
        examination, more = made if args.save_last else self._use(outcome)
        files.finish(state, outcome.about or About(None, training.title, {}), examination, **more)
        best, last = (files.path(epoch) for epoch in (best['epoch'], len(state.epochs)))
        self.folder.tidy({best, last})
        return state

    def _use(self, outcome):
        """The examination and the predictions' files of the model as it is."""
        more = {}
        if outcome.predict is not None:
            more['predictions'] = outcome.predict(self.folder.path)
        return None if outcome.examine is None else outcome.examine(), more

    @property
    def accumulate(self):
        """The number of batches of an update, on all GPUs."""
        return (self.args.accumulate or 1) * len(self.contexts)

    def _plan(self, training):
        args, accumulate = self.args, self.accumulate
        # Buckets' last batches aren't full: an epoch has a few more batches than examples / batch
        # size, by which GluonNLP counts the steps and so ends within the last epoch.
        # Epochs may be a fraction; TensorFlow's scripts round their updates down.
        num_steps = training.num_steps or args.training_steps
        if num_steps is None:
            batches = len(training.loader)
            logger.info('%d batches per epoch', batches)
            num_steps = max(1, int(args.epochs * math.ceil(batches / accumulate)))
        return Plan(num_steps, accumulate, args.seed, args.log_interval, training.num_epochs)

    def _updater(self, training, plan):
        args, max_grad_norm, more = self.args, training.max_grad_norm, dict(training.updater)
        if args.as_bertadam and max_grad_norm is not None:  # the optimizer clips
            more['options'] = {**more.get('options', {}), 'max_grad_norm': max_grad_norm}
            max_grad_norm = None
        schedule = training.schedule(plan.num_steps)
        return make_updater(args, training.model, schedule, max_grad_norm, **more)

    def infer(self, evaluate, predict):
        """``--only_inference``: evaluate, predict, and write what came of it."""
        _, report = evaluate()
        names = predict(self.folder.path)
        if not report and not names:
            raise InputError('needs a dev set or a test set', field='only_inference')
        self.folder.write('inference.json', dev=report, predictions=names)
        self.folder.write_eval_results(report)


def find_contexts(gpus, workers, gpu=None):
    """The devices of this process: several GPUs, one, or the CPU."""
    if gpus and gpu is not None:
        raise InputError(f'{gpu} and `gpus` {gpus} both name the GPUs: give one', field='gpu')
    if not (gpus or '').strip():
        if workers.size > 1 and gpu is not None:
            gpu = workers.local_rank
        return [get_ctx(gpu)]
    try:
        numbers = [int(number) for number in gpus.split(',')]
    except ValueError:
        raise InputError(f'{gpus!r}: give numbers, such as 0 or 0,2,5', field='gpus') from None
    if len(set(numbers)) < len(numbers):
        raise InputError(f'{gpus}: give each number once', field='gpus')
    if workers.size > 1:
        if workers.local_rank >= len(numbers):
            raise InputError(
                f'{gpus}: there are more workers on this machine than these GPUs', field='gpus'
            )
        numbers = [numbers[workers.local_rank]]
    for number in numbers:
        check_gpu(number, 'gpus')
    return [mx.gpu(number) for number in numbers]


def make_updater(args, model, schedule, max_grad_norm=1.0, decay_all=False, options=None):
    """The Updater that the settings describe."""
    registry = mx.optimizer.Optimizer.opt_registry
    if args.optimizer.lower() not in registry:
        raise UnknownNameError.of('optimizer', args.optimizer, registry)
    options = {'wd': args.wd, **(options or {})}
    known = inspect.signature(registry[args.optimizer.lower()].__init__).parameters
    if 'epsilon' in known:
        options['epsilon'] = args.epsilon
    if 'max_grad_norm' in options and 'max_grad_norm' not in known:
        raise InputError(
            f'{args.optimizer} does not clip each parameter by itself, as '
            '`as_bertadam` requires: bertadam and openaiadam do',
            field='optimizer',
        )
    if args.dtype == 'float16':
        options['multi_precision'] = True  # the weights follow copies in float32
    if not decay_all:
        disable_weight_decay(model)
    trainer = HostTrainer if args.optimize_on_cpu else mx.gluon.Trainer
    trainer = trainer(model.collect_params(), args.optimizer, options, update_on_kvstore=False)
    loss_scale = None
    if args.dtype == 'float16':
        fixed = args.loss_scale
        loss_scale = LossScale() if fixed is None else LossScale(fixed, dynamic=False)
    elif args.loss_scale is not None:
        logger.warning('`loss_scale` has an effect with `dtype` float16 only')
    return Updater(model, trainer, schedule, max_grad_norm, loss_scale)


class EpochFiles(Callback):
    """After each epoch: its parameters, and results so far; the curves at times."""

    def __init__(self, folder, name, title, metric, results, is_kept=True):
        self._folder, self._name, self._is_kept = folder, name, is_kept
        self._title, self._metric, self._results = title, metric, results
        path = folder.file('curves.png')
        self._curves = Curves(lambda *made: self.plot(path, *made))
        self._pattern = re.compile(rf'model_{re.escape(name)}_\d+\.params')

    def path(self, epoch):
        """The file of an epoch, which a record counts from 1 and the name of the file from 0."""
        return self._folder.file(f'model_{self._name}_{epoch - 1}.params')

    def plot(self, path, state, examination=None):
        """Draw the curves; the baseline is that of the `Examination` at the end."""
        metric = self._metric
        guess = examination and (f'always "{examination.guess}"', examination.baseline.get(metric))
        plot_curves(path, state, self._title, f'dev {metric}' if metric else 'updates', guess)

    def on_epoch(self, loop, record):
        state, epoch = loop.state, record['epoch']
        loop.block.save_parameters(self.path(epoch))
        loop.weights = self.path(epoch)
        last = range(epoch + 1 - self._folder.args.keep_checkpoints, epoch + 1)
        kept = {os.path.basename(self.path(epoch)) for epoch in (*last, state.best['epoch'])}
        for name in os.listdir(self._folder.path):
            if self._pattern.fullmatch(name) and name not in kept:
                os.remove(self._folder.file(name))
        if self._is_kept:
            self._curves.update(state)
            self._write(state)

    def _write(self, state, command=None, **more):
        epoch = state.best['epoch']
        parameters = os.path.basename(self.path(epoch))
        best = {'epoch': epoch, 'parameters': parameters, **state.best['report']}
        results = self._folder.write(
            'results.json', state, **{**self._results, 'best': best, **more}
        )
        record = state.epochs[-1] if self._folder.args.save_last else state.best
        self._folder.write_eval_results(record['report'], record)
        path = self._folder.file('report.html')
        write_report_page(path, self._title, results, self._metric, command)
        return results

    def finish(self, state, about, examination=None, **more):
        model = self._folder.file('best_model')
        command = next_command(about, self._folder.location('best_model'))
        if examination is not None:
            more['examination'] = {examination.segment: examination.to_dict()}
        self._curves.finish(state, examination)
        results = self._write(state, command, **more)
        curves = self._folder.file('curves.png')
        write_card(model, self._title, about, results, self._metric, curves)
        log_summary(results, self._folder.path, command, self._folder.location())
