"""A training run from its flags: checkpoints, parameters of each epoch, curves, results.json."""

import inspect
import json
import logging
import math
import os
import re

import mxnet as mx

from ..errors import InputError, UnknownNameError
from ..optimizer import disable_weight_decay, finetune_schedule
from ..training.callbacks import Callback, ProgressLogger, TensorBoardWriter
from ..training.checkpoint import CheckpointStore
from ..training.loop import TrainingLoop
from ..training.loss_scale import LossScale
from ..training.plan import Checkpoints, Evaluation, Plan
from ..training.seed import seed_all
from ..training.updater import Updater
from ..training.workers import Workers
from ..util.files import make_writable_dir
from . import cli
from .plot import plot_curves
from .report import write_results

__all__ = ['make_updater', 'run_inference', 'run_training', 'start_run']

logger = logging.getLogger(__name__)


def start_run(args, name, workers=None):
    """Make the output folder, begin the log ``log_NAME.txt``, and set the seed.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags of `add_training_arguments`.
    name : str
    workers : Workers, optional
        All but number 0 log errors only.

    Returns
    -------
    mx.Context
        That of ``--gpu``; with several workers each has a GPU of its own.

    Raises
    ------
    InputError
        If there is no such GPU, or the folder can't be written to.
    """
    workers = workers or Workers()
    gpu = workers.local_rank if workers.size > 1 and args.gpu is not None else args.gpu
    ctx = cli.get_ctx(gpu)
    make_writable_dir(args.output_dir)
    if workers.rank == 0:
        cli.setup_logging(os.path.join(args.output_dir, f'log_{name}.txt'))
    else:
        cli.setup_logging(level=logging.ERROR)
    logger.info('%s', json.dumps(vars(args)))
    seed_all(args.seed)
    return ctx


def make_updater(args, model, schedule, max_grad_norm=1.0, trainer=mx.gluon.Trainer):
    """The Updater of ``--optimizer``, ``--wd``, ``--epsilon`` and ``--dtype``.

    Biases and layer norms don't decay. The learning rate is that of the schedule alone.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags of `add_training_arguments`.
    model : mxnet.gluon.Block
    schedule, max_grad_norm
        See `Updater`.
    trainer : type
        `HostTrainer`, for instance.

    Returns
    -------
    Updater

    Raises
    ------
    UnknownNameError
        If MXNet has no such optimizer.
    """
    registry = mx.optimizer.Optimizer.opt_registry
    if args.optimizer.lower() not in registry:
        raise UnknownNameError.of('optimizer', args.optimizer, registry)
    options = {'wd': args.wd}
    if 'epsilon' in inspect.signature(registry[args.optimizer.lower()].__init__).parameters:
        options['epsilon'] = args.epsilon
    if args.dtype == 'float16':
        options['multi_precision'] = True  # the weights follow copies in float32
    disable_weight_decay(model)
    trainer = trainer(model.collect_params(), args.optimizer, options, update_on_kvstore=False)
    loss_scale = LossScale() if args.dtype == 'float16' else None
    return Updater(model, trainer, schedule, max_grad_norm, loss_scale)


def run_training(
    args,
    model,
    loader,
    objective,
    evaluate,
    *,
    name,
    title,
    score_name,
    config,
    save_best,
    predict=None,
    results=None,
    max_grad_norm=1.0,
    schedule=None,
    workers=None,
):
    """Train as the flags say, and leave all files of a training in ``--output_dir``.

    These are ``model_NAME_EPOCH.params`` of the last epochs and the best one (epochs counted from
    0, as GluonNLP's scripts count them in names of files), ``checkpoints/``, ``curves.png``,
    ``results.json``, and ``best_model/``. At the end the model has the best epoch's parameters.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags of `add_training_arguments`, checked.
    model : mxnet.gluon.Block
        Initialized.
    loader, objective, evaluate, max_grad_norm, workers
        See `TrainingLoop`. `loader` has a length: the batches of an epoch. With None for `evaluate`
        the last epoch counts as the best.
    name : str
        Part of the names of files.
    title : str
        Of the curves.
    score_name : str
        What the score of `evaluate` is.
    config : dict
        See `training_config`.
    save_best : callable
        ``save_best(folder)`` writes the model, once it has the best epoch's parameters.
    predict : callable, optional
        ``predict(folder)`` writes predictions of the best model, and returns the files' names.
    results : dict, optional
        Further entries of results.json.
    schedule : callable, optional
        Number of updates -> schedule (see `TrainingLoop`); by default `finetune_schedule` of
        ``--lr`` and ``--warmup_ratio``.

    Returns
    -------
    TrainingState

    Raises
    ------
    ZooError, Interrupted
        As `TrainingLoop` does.
    """
    accumulate = args.accumulate or 1
    # Buckets' last batches aren't full: an epoch has a few more batches than examples / batch size,
    # by which GluonNLP counts the steps and so ends within the last epoch.
    num_steps = args.training_steps or args.epochs * math.ceil(len(loader) / accumulate)
    if schedule is None:
        schedule = finetune_schedule(args.lr, num_steps, args.warmup_ratio)
    else:
        schedule = schedule(num_steps)
    label = 'updates' if evaluate is None else f'dev {score_name}'
    files = _EpochFiles(args, name, title, label, results or {})
    callbacks = [ProgressLogger(), files]
    if args.tensorboard:
        callbacks.append(TensorBoardWriter(args.tensorboard))
    store = CheckpointStore(os.path.join(args.output_dir, 'checkpoints'), args.keep_checkpoints)
    workers = workers or Workers()
    if store.paths() and not args.resume and workers.rank == 0:
        logger.warning(
            '%s has checkpoints of an earlier training, which this one replaces at its first: stop '
            'now and add --resume to go on with that one',
            args.output_dir,
        )
    loop = TrainingLoop(
        make_updater(args, model, schedule, max_grad_norm),
        objective,
        loader,
        Plan(num_steps, accumulate, args.seed, args.log_interval),
        Evaluation(evaluate, early_stop=args.early_stop),
        Checkpoints(store, config=config),
        callbacks,
        workers,
    )
    if args.resume:
        path = loop.resume()
        if path is not None:
            logger.info('resuming from %s', path)
    size = args.batch_size * accumulate * workers.size
    logger.info(
        'training: %d steps of %d examples, %d batches an epoch', num_steps, size, len(loader)
    )
    state = loop.run()
    if workers.rank > 0:
        return state
    best = state.best
    logger.info(
        '%s epoch: %d of %d%s; %.0f s of training',
        'last' if evaluate is None else 'best',
        best['epoch'],
        len(state.epochs),
        '' if evaluate is None else f', {score_name} {best["score"]:.4f}',
        state.seconds,
    )
    model.load_parameters(files.path(best['epoch']))
    save_best(os.path.join(args.output_dir, 'best_model'))
    files.write(state, **({} if predict is None else {'predictions': predict(args.output_dir)}))
    return state


class _EpochFiles(Callback):
    """After each epoch: its parameters, the curves, and results so far."""

    def __init__(self, args, name, title, score_label, results):
        self._args, self._name = args, name
        self._title, self._score_label, self._results = title, score_label, results
        self._pattern = re.compile(rf'model_{re.escape(name)}_\d+\.params')

    def path(self, epoch):
        """The file of an epoch, which a record counts from 1 and the name of the file from 0."""
        return os.path.join(self._args.output_dir, f'model_{self._name}_{epoch - 1}.params')

    def on_epoch(self, loop, record):
        state, epoch = loop.state, record['epoch']
        loop.block.save_parameters(self.path(epoch))
        last = range(epoch + 1 - self._args.keep_checkpoints, epoch + 1)
        kept = {os.path.basename(self.path(epoch)) for epoch in (*last, state.best['epoch'])}
        for name in os.listdir(self._args.output_dir):
            if self._pattern.fullmatch(name) and name not in kept:
                os.remove(os.path.join(self._args.output_dir, name))
        self.write(state)

    def write(self, state, **more):
        folder, epoch = self._args.output_dir, state.best['epoch']
        plot_curves(os.path.join(folder, 'curves.png'), state, self._title, self._score_label)
        parameters = os.path.basename(self.path(epoch))
        best = {'epoch': epoch, 'parameters': parameters, **state.best['report']}
        results = {**self._results, 'best': best, **more}
        write_results(os.path.join(folder, 'results.json'), vars(self._args), state, **results)


def run_inference(args, evaluate, predict):
    """``--only_inference``: evaluate, predict, and write ``inference.json``.

    Parameters
    ----------
    args : argparse.Namespace
    evaluate : callable
        ``evaluate() -> (score, report)``.
    predict : callable
        ``predict(folder)`` writes predictions, and returns the files' names.

    Raises
    ------
    InputError
        If there was nothing to evaluate and nothing to predict.
    """
    _, report = evaluate()
    names = predict(args.output_dir)
    if not report and not names:
        raise InputError('--only_inference: there is neither a dev set nor a test set')
    path = os.path.join(args.output_dir, 'inference.json')
    write_results(path, vars(args), dev=report, predictions=names)
