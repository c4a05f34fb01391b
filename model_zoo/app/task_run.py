"""Trains a task object, or evaluates a model of one: what all fine-tuning commands do."""

import copy
import functools
import logging
import time

import numpy as np

from ..errors import InputError
from ..pretrained.labels import write_labels
from ..tasks.labels import name_labels
from ..tasks.task import check_finite
from ..training.job import job_of
from ..training.settings import DeploySettings, FinetuneSettings, ScheduleSettings
from ..training.updater import freeze_parameters
from ..training.workers import make_workers
from .engines import calibrate, check_engine, forward_of, load_exported
from .model_choice import ModelChoice
from .report import About
from .run import Outcome, Run, Training

logger = logging.getLogger(__name__)


class Evaluator:
    """Scores, predictions and mistakes of a model on the sets of a task."""

    def __init__(self, task, forward, sets, metrics=None):
        self._task, self.forward, self.sets, self._metrics = task, forward, sets, metrics
        self._kept = None  # segment -> outputs of the trained model

    def labelled(self, *segments):
        """The segments that have labels and so can be scored."""
        return [
            name
            for name in segments
            if name in self.sets and self._task.is_labelled(self.sets[name].rows)
        ]

    @property
    def dev_sets(self):
        """The sets that are scored after each epoch."""
        return [name for name in self.sets if name.startswith('dev')]

    def keep(self):
        """Compute the outputs of a set only once from now on, since the model no longer changes."""
        self._kept = {}

    def outputs(self, segment, guard=None):
        """The model's outputs on a set."""
        if self._kept is not None and segment in self._kept:
            return self._kept[segment]
        outputs = self._task.predict(self.forward, self.sets[segment], guard)
        if isinstance(outputs, np.ndarray):
            check_finite(outputs, segment)
        if self._kept is not None:
            self._kept[segment] = outputs
        return outputs

    def evaluate(self, guard=None, segments=None):
        """See `Task.evaluate`: of the dev sets, or those named."""
        segments = self.dev_sets if segments is None else segments
        return self._task.evaluate(self, self.labelled(*segments), guard)

    def measure(self, segment, guard=None):
        """The scores of a set, and samples per second."""
        data, started = self.sets[segment], time.perf_counter()
        outputs = self.outputs(segment, guard)
        speed = data.loader.num_samples / max(time.perf_counter() - started, 1e-9)
        scores = self._task.score(data, outputs)
        if self._metrics is not None:
            labels = self._task.as_given([row.label for row in data.rows])
            predictions = self._task.as_given(self._task.decode(data, outputs))
            scores.update(self._metrics(predictions, labels))
        return scores, speed

    def predict(self, folder):
        """Write the predictions; returns the files' names."""
        names = []
        for segment in self._task.predicted or ():
            if segment in self.sets:
                outputs = self.outputs(segment)
                names += self._task.write(folder, segment, self.sets[segment], outputs)
        if names:
            logger.info('predictions: %s', ', '.join(names))
        return names

    def examine(self):
        """The `Examination` of the first dev set; None if there is none with labels."""
        for segment in self.labelled(*self.dev_sets):
            return self._task.examine(segment, self.sets[segment], self.outputs(segment))
        return None


class TaskRun:
    """A training of a task, or an inference with ``only_inference``.

    Parameters
    ----------
    sources : dict, optional
        Segment -> what its rows are read from; by default the files that the settings name.
    opened : (block, tokenizer), optional
        The model; by default the one that the settings name.
    metrics : callable, optional
        ``metrics(predictions, labels) -> dict``: further scores.
    """

    def __init__(
        self,
        task,
        sources=None,
        opened=None,
        metrics=None,
        callbacks=(),
        is_kept=True,
        **options,
    ):
        self.task, self._callbacks = task, callbacks
        sources = task.locate(sources)
        settings = task.settings
        choice = None if opened else ModelChoice(settings, family=task.family)
        task.base = choice.title if choice else type(opened[0]).__name__
        task.workers = make_workers(settings.comm_backend, settings.allreduce_dtype)
        self.run = self._begin(**options)
        self.run.is_kept = is_kept
        task.configure(choice and choice.located)
        rows = self._read(sources)
        job = self.run.folder.checkpoints().job() if settings.resume else None
        if job is not None:
            task.resume(job)
        if opened:
            self._check_block(opened[0])
        self.model, self.tokenizer = opened or self._open(choice)
        self._block = task.setup(self.model, self.tokenizer)
        if isinstance(settings, FinetuneSettings) and settings.freeze is not None:
            layers = self.model.config.num_layers
            freeze_parameters(
                self.model, layers if settings.freeze == 'encoder' else int(settings.freeze)
            )
        # bad dev and test sets fail before the training
        order = sorted(rows, key=lambda name: name == 'train')
        self.sets = {name: self._load(name, rows[name]) for name in order}
        self.training_set = self.sets.pop('train', None)
        self.run.args = self.run.folder.args = task.settings
        forward = functools.partial(task.forward, self.model)
        if isinstance(settings, FinetuneSettings) and settings.engine != 'mxnet':
            forward = forward_of(settings, self.model)
        self.evaluator = Evaluator(task, forward, self.sets, metrics)
        self.state = None

    @property
    def settings(self):
        """The task's settings."""
        return self.task.settings

    def _begin(self, **options):
        """The run, with its folder and log."""
        task = self.task
        return Run(
            self.settings, task.name, task.prefix, task.workers, trains=task.trains, **options
        )

    def _read(self, sources):
        rows = {name: self.task.read(source, name) for name, source in sources.items()}
        if self.task.dev_share is not None and 'train' in rows:
            rows['train'], rows['dev'] = self.task.split(rows['train'], self.task.dev_share)
        self.task.prepare(rows)
        return rows

    def _open(self, choice):
        task = self.task
        if isinstance(task.settings, DeploySettings) and task.settings.deploy:
            self.run.contexts = self.run.contexts[:1]
            return self._deployed(), choice.tokenizer(task.head, task.lowers)
        return task.open(choice, self.run.contexts)

    def _check_block(self, block):
        count = getattr(block, 'num_labels', getattr(block.config, 'num_labels', None))
        wanted = self.task.model_options()
        if wanted.get('num_labels', count) != count:
            raise InputError(
                f'has {count} outputs, and the training set {wanted["num_labels"]} labels',
                field='model',
            )

    def _deployed(self):
        """An exported model as a function like the block."""
        task, prefix = self.task, self.settings.model_prefix
        length = getattr(self.settings, task.length)
        block = load_exported(prefix, length, self.run.ctx, task.length)

        def model(words, token_types, valid_length):
            try:
                return task.exported_outputs(words, block(words, token_types, valid_length))
            except InputError as error:
                raise InputError(
                    f"'{prefix}-symbol.json' gives {error}: was it exported for another task?"
                ) from error

        return model

    def calibrate(self):
        """``only_calibration``: write the model in INT8; see `calibrate`."""
        data = next(iter(self.sets.values()), None)
        if data is None:
            raise InputError('needs a dev set to calibrate with', field='only_calibration')

        def evaluate(forward):
            return Evaluator(self.task, forward, self.sets).evaluate()

        prefix = calibrate(
            self.run,
            self.settings,
            self.model,
            data.loader,
            evaluate,
            self.task.name,
            self.task.metric,
            self.task.most_lost,
        )
        write_labels(prefix, self.task.labels)

    def _load(self, segment, rows):
        started, run = time.perf_counter(), self.run
        data = self.task.load(segment, rows, self.tokenizer, run.contexts, run.accumulate)
        seconds = time.perf_counter() - started
        if self.task.unit:
            count = self.task.size(data)
            logger.info('%s: %d %s, %.1f s', segment, count, self.task.unit, seconds)
        return data

    def infer(self):
        """Evaluate and predict; see `Run.infer`."""
        evaluator = self.evaluator
        evaluator.keep()
        self.run.infer(lambda: evaluator.evaluate(segments=evaluator.sets), evaluator.predict)

    def train(self):
        """Train, and write all files; see `Run.train`."""
        task, data, evaluator = self.task, self.training_set, self.evaluator
        if data is None:
            raise InputError('there is no training set')
        results, title, settings = task.results(), self.title, task.settings
        max_grad_norm = settings.max_grad_norm if isinstance(settings, ScheduleSettings) else 1.0
        has_dev = bool(evaluator.labelled(*evaluator.dev_sets))

        def predict(folder):
            evaluator.keep()
            results['best_model'] = evaluator.evaluate(segments=evaluator.sets)[1]
            if 'test' in results['best_model']:
                results['test'] = results['best_model']['test']
            return evaluator.predict(folder)

        sets = {'train': data, **self.sets} if task.unit else {}
        sizes = {name: task.size(part) for name, part in sets.items()}
        objective = task.objective(self.model, data)
        self.state = self.run.train(
            Training(
                title,
                self._block,
                data.loader,
                objective,
                task.score_name,
                evaluator.evaluate if has_dev else None,
                callbacks=self._callbacks,
                draws_updates=task.draws_updates,
                schedule=task.schedule,
                max_grad_norm=max_grad_norm,
            ),
            Outcome(
                self.save,
                None if task.predicted is None else predict,
                results,
                evaluator.examine,
                About(
                    task.use,
                    task.base,
                    sizes,
                    task.unit,
                    task.labels,
                    task.takes_pairs,
                    self.tokenizer.mask_token,
                ),
            ),
            self.job(),
        )
        return self.state

    def job(self):
        """What a training must have in common with the one that it goes on with."""
        described = self.task.job(self.task.describe(self.training_set))
        described['class_names'] = self.task.labels and list(self.task.labels)
        return job_of(self.settings, **described)

    @property
    def title(self):
        """Title of the training: the task, and the model that it began with."""
        return f'{self.task.title}, {self.task.base}'

    def take_best(self):
        """After an interruption, give the model the best epoch's parameters, if there is one."""
        self.state = self.run.loop.state
        if self.state.best:
            self._block.load_parameters(self.run.files.path(self.state.best['epoch']))
        self.evaluator.keep()

    def close(self):
        """Upload what a URL is to have, and let other runs write to the folder."""
        self.task.close()
        self.run.folder.close()

    def save(self, folder, **options):
        """Write the model as it is, with the names of its classes."""
        if self.task.has_own_head:
            name_labels(self.model, self.task.trained_for, self.task.labels)
        self.task.save(folder, self.model, self._tokenizer_of_use(), **options)

    def _tokenizer_of_use(self):
        """The tokenizer, which cuts texts where the training did."""
        length = getattr(self.settings, self.task.length, None)
        if not self.task.has_own_head or length is None:
            return self.tokenizer
        tokenizer = copy.copy(self.tokenizer)
        tokenizer.max_len = min(length, tokenizer.max_len)
        return tokenizer


def run_task(task, run_class=TaskRun):
    """Train a task, or with ``only_inference`` evaluate a model of it: what its command does."""
    settings = task.settings
    if isinstance(settings, FinetuneSettings):
        if settings.engine != 'mxnet' and not settings.only_inference:
            raise InputError(
                f'{settings.engine} is for inference: only MXNet trains', field='engine'
            )
        exported = isinstance(settings, DeploySettings) and settings.deploy
        if settings.engine != 'mxnet' and exported:
            raise InputError(
                'runs an exported model with MXNet: leave `engine` out', field='deploy'
            )
        check_engine(settings)
    try:
        run = run_class(task)
        if isinstance(settings, DeploySettings) and settings.only_calibration:
            run.calibrate()
        elif task.trains:
            run.train()
        else:
            run.infer()
    finally:
        task.close()
