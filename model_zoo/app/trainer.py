"""One training of a task, from its settings to its files; or the use of a trained model."""

import contextlib
import copy
import functools
import logging
import math
import os
import time

from ..errors import InputError
from ..inference.engines import make_engine
from ..tasks.labels import name_labels
from ..tasks.rows import warn_of_texts
from ..training.callbacks import Callback, Profiler, ProgressLogger, TensorBoardWriter
from ..training.job import Job
from ..training.loop import Interrupted, TrainingLoop
from ..training.updater import freeze_parameters, make_updater
from ..training.workers import make_workers
from ..util.display import in_number
from .cli import collected_warnings
from .devices import find_contexts
from .engines import calibrate, engine_forward, load_exported
from .evaluator import Evaluator
from .model_choice import ModelChoice
from .report import describe_training, explain_choice, write_eval_results, write_report
from .run_folder import RunFolder

logger = logging.getLogger(__name__)

FEW_UPDATES = 50


class Trainer(Callback):
    """Trains a task; or, if its settings say so, evaluates a model or writes it in INT8.

    `run` does it in steps: `locate` the data and the model, `open_folder`, `read` the rows, `open`
    the model, `encode` the rows, and then `train`, which makes the loop, runs it and calls `write`.
    Call `run` in a ``with`` block: its end uploads the files to a URL, and unlocks the folder.

    Parameters
    ----------
    task : Task
        With its settings.
    data : dict, optional
        Segment -> rows or path; by default the settings name the files.
    opened : (block, tokenizer), optional
        The model; by default the settings name it.
    metrics : callable, optional
        ``metrics(predictions, labels) -> dict``: further scores.
    callbacks : sequence of Callback
    is_kept : bool
        Whether the folder stays after the run. Otherwise only the epochs' parameters are written,
        from which the best ones are loaded at the end.
    setup_logging : callable, optional
        Instead of `cli.setup_logging`.

    Attributes
    ----------
    folder : RunFolder
    contexts : list of mx.Context
        The devices; several workers have one GPU each. An update takes a batch for each device.
    model, tokenizer
        At the end of a training with the best epoch's parameters.
    block : Block
        What is trained, the model or a block around it.
    sets : dict of str to Data
    evaluator : Evaluator
    loop : TrainingLoop or None
    num_epochs : int or None
        End after this many epochs, if the updates aren't done before; see `TrainingLoop`.
    keeps_epochs : bool
        Whether epochs leave their parameters.
    """

    loop, num_epochs, logger_class = None, None, ProgressLogger
    keeps_epochs, _began = True, False

    def __init__(
        self,
        task,
        data=None,
        opened=None,
        *,
        metrics=None,
        callbacks=(),
        is_kept=True,
        setup_logging=None,
    ):
        self.task, self._data, self._opened = task, data, opened
        self._metrics, self._callbacks = metrics, callbacks
        self._is_kept, self._setup_logging = is_kept, setup_logging
        self._results, self._ending = {}, contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._ending.__exit__(*error)

    @property
    def settings(self):
        """The task's settings."""
        return self.task.settings

    @property
    def state(self):
        """The `TrainingState`."""
        return self.loop.state

    @property
    def title(self):
        """Title of the training: the task, and the model that it began with."""
        return f'{self.task.title or self.task.name}, {self.task.base}'

    @property
    def accumulate(self):
        """The number of batches of an update, on all GPUs."""
        return (self.settings.accumulate or 1) * len(self.contexts)

    def run(self):
        """Train, evaluate or calibrate, as the settings say."""
        sources, choice = self.locate()
        self.folder, self.contexts = self.open_folder()
        with collected_warnings('model_zoo.tasks') as self._warnings:
            rows = self.read(sources, choice)
            self.model, self.tokenizer, self.block = self.open(choice)
            self.sets = self.encode(rows)
        self.evaluator = self.make_evaluator()
        if self.settings.only_calibration:
            calibrate(self)
        elif self.task.trains:
            self.train()
        else:
            self.infer()

    # -- the steps before a training

    def locate(self):
        """Return the sources of the rows of each set, and the `ModelChoice`, or None."""
        task = self.task
        task.workers = make_workers(self.settings.comm_backend, self.settings.allreduce_dtype)
        sources, choice = task.locate(self._data), None
        if self._opened:
            task.base = type(self._opened[0]).__name__
        elif 'model' in vars(self.settings):
            choice = ModelChoice(self.settings, family=task.family)
            task.base = choice.title
        return sources, choice

    def open_folder(self):
        """Lock the folder and begin the log; returns the `RunFolder` and the devices."""
        task, settings = self.task, self.settings
        contexts = find_contexts(settings.gpus, task.workers, settings.gpu)
        begins = task.trains and not (settings.phase2 or settings.start_step)
        options = {'verbose': settings.verbose, 'setup_logging': self._setup_logging}
        folder = RunFolder(settings, f'log_{task.name}.txt', task.workers, trains=begins, **options)
        self._ending.push(lambda error, *_: folder.close(error is not None and not self._began))
        task.output_dir = folder.path
        return folder, contexts

    def read(self, sources, choice):
        """Return the rows of each set, from which the task has learned what it needs."""
        task = self.task
        task.located = choice and choice.located
        task.configure(task.located)
        rows = {name: task.read(source, name) for name, source in sources.items()}
        if task.dev_share is not None and 'train' in rows:
            train, dev = task.split(rows.pop('train'), task.dev_share)
            rows = {**({'train': train} if task.trains else {}), 'dev': dev, **rows}
        task.prepare(rows)
        warn_of_texts(rows, task.has_own_rows)
        job = self.folder.checkpoints().job() if self.settings.resume else None
        if job is not None:
            task.resume(job)
        return rows

    def open(self, choice):
        """Return the model, its tokenizer, and the block to train."""
        task, settings = self.task, self.settings
        if self._opened:
            model, tokenizer = self._opened
            count = model.num_labels or getattr(model.config, 'num_labels', None)
            expected = task.model_options().get('num_labels', count)
            if expected != count:
                raise InputError(f'has {count} outputs for {expected} labels', field='model')
        elif settings.deploy:
            self.contexts = self.contexts[:1]
            model = load_exported(settings.model_prefix, settings.max_length, self.contexts[0])
            tokenizer = choice.tokenizer(task.head, task.lowers)
        else:
            model, tokenizer = task.open(choice, self.contexts)
        block = task.setup(model, tokenizer)
        if settings.freeze is not None:
            whole = settings.freeze == 'encoder'
            freeze_parameters(model, model.config.num_layers if whole else int(settings.freeze))
        return model, tokenizer, block

    def encode(self, rows):
        """Return the `Data` of each set; bad dev and test sets fail before the training."""
        task, sets = self.task, {}
        for name in sorted(rows, key=lambda name: name == 'train'):
            started = time.perf_counter()
            data = task.load(name, rows[name], self.tokenizer, self.contexts, self.accumulate)
            self._ending.callback(data.loader.close)
            seconds = time.perf_counter() - started
            if task.unit:
                logger.info('%s: %d %s, %.1f s', name, len(data.rows), task.unit, seconds)
            sets[name] = data
        return sets

    def make_evaluator(self):
        """Return the `Evaluator` of the dev and test sets."""
        task, settings = self.task, self.settings
        sets = {name: data for name, data in self.sets.items() if name != 'train'}
        forward = functools.partial(task.forward, self.model)
        if settings.engine != 'mxnet':
            precision = settings.precision or settings.dtype
            forward = engine_forward(make_engine(self.model, settings.engine, precision))
        return Evaluator(task, forward, sets, self._metrics)

    # -- the use of a trained model

    def infer(self):
        """``only_inference``: evaluate, predict, and write the results."""
        evaluator = self.evaluator
        evaluator.keep()
        _, report = evaluator.evaluate(segments=evaluator.sets)
        names = evaluator.predict(self.folder.path)
        self.folder.write('inference.json', self.settings, dev=report, predictions=names)
        write_eval_results(self.folder.path, report)

    # -- a training

    def train(self):
        """Train, and write all files."""
        task, settings, has_dev = self.task, self.settings, bool(self.evaluator.dev_sets)
        if not has_dev and settings.early_stop:
            raise InputError('needs a dev set to compare the epochs on', field='early_stop')
        if not has_dev and settings.eval_interval is None:
            logger.info('there is no dev set: the last epoch is the result')
        self.loop = self.make_loop(self.count_steps())
        is_first = task.workers.rank == 0
        if is_first:
            kept = self._is_kept, self.keeps_epochs
            self.folder.check_room(self.block, settings, self.loop.num_steps, *kept)
        path = self.restore()
        if path is not None:
            logger.info('resuming from %s', path)
        begun = task.fitted or f'training: {self.extent()}'
        logger.info('%s', begun, extra={'progress': False})  # also where lines replace the bar
        self._began = True
        try:
            self.loop.run()
        except Interrupted:
            if is_first and self._is_kept:
                self._results['interrupted'] = {'step': self.state.step, 'of': self.loop.num_steps}
                self.write_so_far()
            raise
        if is_first:
            self.write()

    def restore(self):
        """Make the folder ready, and restore what an earlier run has saved; returns its path."""
        if self.settings.overwrite_output_dir and self.task.workers.rank == 0:
            self.folder.clear()
        return self.loop.resume() if self.settings.resume else None

    def extent(self):
        """Return how long the training is, and the size of an update, for the log."""
        tokens = self.settings.batch_tokens
        size = (tokens or self.settings.batch_size) * self.accumulate * self.task.workers.size
        unit = 'tokens at most' if tokens else 'examples'
        return f'{in_number(self.loop.num_steps, "steps")} of {size} {unit}'

    def count_steps(self):
        """Return the number of updates."""
        settings = self.settings
        if settings.training_steps is not None:
            return settings.training_steps
        # Buckets' last batches aren't full: an epoch has a few more batches than examples / batch
        # size, by which GluonNLP counts the steps and so ends within the last epoch.
        # Epochs may be a fraction; TensorFlow's scripts round their updates down.
        loader, epochs = self.sets['train'].loader, math.ceil(settings.epochs)
        logger.info('batches per epoch: %d', len(loader))
        steps = [math.ceil(loader.count_batches(e) / self.accumulate) for e in range(epochs)]
        left_out = (epochs - settings.epochs) * steps[-1]
        num_steps = max(1, int(round(sum(steps) - left_out, 6)))
        if num_steps < FEW_UPDATES:
            few = in_number(num_steps, 'updates')
            logger.warning('only %s: use more `epochs`, or a smaller `batch_size`', few)
        return num_steps

    def make_loop(self, num_steps):
        """Return the `TrainingLoop`."""
        task, settings, data = self.task, self.settings, self.sets['train']
        described = {name: task.describe(part) for name, part in self.sets.items()}
        callbacks, kept = [self, *self._callbacks], self._is_kept
        # the second phase counts its steps anew
        name = 'checkpoints_phase2' if settings.phase2 else 'checkpoints'
        if settings.profile and task.workers.rank == 0:
            callbacks.append(Profiler(settings.profile))
        if settings.tensorboard and task.workers.rank == 0:
            callbacks.append(TensorBoardWriter(settings.tensorboard))
        started = time.perf_counter()
        objective = task.objective(self.model, data)
        seconds = time.perf_counter() - started
        description = describe_training(self)
        self._results = {'data': described, **task.results(), 'description': description}
        self._results['warnings'] = self._warnings
        if kept and task.workers.size == 1:
            self._results.update(self.evaluator.compare(self.model, data))
        if task.fitted is None:
            callbacks = [self.logger_class(), *callbacks]
        more = {'class_names': task.labels and list(task.labels), **task.job(described['train'])}
        loop = TrainingLoop(
            self.make_updater(num_steps),
            objective,
            data.loader,
            num_steps,
            accumulate=self.accumulate,
            seed=settings.seed,
            log_interval=settings.log_interval,
            num_epochs=self.num_epochs,
            evaluate=self.evaluator.evaluate if self.evaluator.dev_sets else None,
            evaluate_interval=settings.eval_interval,
            early_stop=settings.early_stop,
            store=self.folder.checkpoints(settings.keep_checkpoints, name) if kept else None,
            checkpoint_interval=settings.ckpt_interval if kept else None,
            job=Job.of(settings, len(self.contexts), task.draws_updates, **more),
            callbacks=callbacks,
            workers=task.workers,
        )
        if task.fitted is not None:
            loop.state.seconds = seconds
        return loop

    def make_updater(self, num_steps):
        """Return the `Updater` of `num_steps` updates."""
        settings, schedule = self.settings, self.task.schedule(num_steps)
        norm, options = settings.max_grad_norm, None
        if settings.clip_each:
            options, norm = {'max_grad_norm': norm}, None  # the optimizer clips
        return make_updater(settings, self.block, schedule, norm, options=options)

    def path(self, epoch):
        """Return the file of an epoch, counted from 1; its name counts from 0, as GluonNLP's."""
        task = self.task
        prefix = task.family if task.prefix is None else task.prefix
        names = filter(None, ('model', prefix, task.name))
        return self.folder.file(f'{"_".join(names)}_{epoch - 1}.params')

    def on_epoch(self, loop, record):
        """Write the epoch's parameters, and the results so far."""
        epoch = record['epoch']
        with self.task.as_saved(self.model):
            loop.block.save_parameters(self.path(epoch))
        last = range(epoch + 1 - self.settings.keep_checkpoints, epoch + 1)
        self.folder.keep_epochs(map(self.path, (*last, loop.state.best['epoch'])))
        if self._is_kept:
            self.write_results()

    def write(self):
        """Write a training's files, and set the model's parameters to the best epoch's.

        The files are ``model_NAME_EPOCH.params`` of the last epoch and the best one,
        ``curves.png``, ``report.html``, ``results.json``, ``eval_results.txt`` (of the best epoch),
        predictions, and ``best_model/`` with its card. With ``last_model`` the folder itself has
        the last epoch's model; ``eval_results.txt`` and the predictions are then this model's.
        """
        settings, state = self.settings, self.state
        if self.task.fitted is None:
            metric = self._results['description']['metric']
            chosen = explain_choice(state.epochs, state.best['epoch'], metric)
            logger.info('the result is %s; %.0f s of training', chosen, state.seconds)
        if settings.last_model:
            self.task.finalize(self.model, state.epochs[-1]['report'])
            self.save(self.folder.path, format=settings.last_model)
            self._examine()
        self.load_best()
        if not self._is_kept:
            return
        self.save(self.folder.file('best_model'))
        if not settings.last_model:
            self._examine()
        self.write_results(is_final=True)
        self.folder.tidy(map(self.path, (state.best['epoch'], len(state.epochs))), settings)

    def write_so_far(self):
        """Write the best epoch's model, and how far an interrupted training came."""
        state, results = self.state, self._results
        if not state.best:
            logger.info('no epoch has ended: there is no best_model yet')
            self.folder.write('results.json', self.settings, state, **results)
            return
        self.load_best()
        self.save(self.folder.file('best_model'))
        self.write_results()
        logger.info('best_model is of epoch %d, the best so far', state.best['epoch'])

    def _examine(self):
        """Note what the evaluator finds about the model as it is."""
        record = self.state.epochs[-1] if self.settings.last_model else self.state.best
        self._results.update(self.evaluator.examine(self.folder.path, record['report']))

    def write_results(self, is_final=False):
        """Write ``results.json``, ``eval_results.txt`` and the report of the best epoch so far."""
        state, settings, epoch = self.state, self.settings, self.state.best['epoch']
        parameters = os.path.basename(self.path(epoch))
        best = {'epoch': epoch, **state.best['report'], 'parameters': parameters}
        results = self.folder.write('results.json', settings, state, best=best, **self._results)
        record = state.epochs[-1] if settings.last_model else state.best
        write_eval_results(self.folder.path, record['report'], record)
        write_report(self.folder.path, results, is_final)

    def load_best(self):
        """Give the model the best epoch's parameters, if an epoch has ended."""
        best = self.state.best
        self.task.finalize(self.model, best['report'] if best else {})
        if best:
            self.block.load_parameters(self.path(best['epoch']))

    def save(self, folder, **options):
        """Write the model as it is, with the names of its classes, and options of `save_trained`.

        Its tokenizer cuts texts where the training did.
        """
        task, tokenizer = self.task, self.tokenizer
        if task.has_own_head:
            name_labels(self.model, task.trained_for, task.labels)
            tokenizer = copy.copy(tokenizer)
            length = self.settings.max_length or tokenizer.max_len
            tokenizer.max_len = min(length, tokenizer.max_len)
        task.save(folder, self.model, tokenizer, **options)


def run_task(task, trainer_class=Trainer):
    """Train a task, or use a model of it: what its command does."""
    with trainer_class(task) as trainer:
        trainer.run()
