"""Trains a task object, or evaluates a model of one: what all fine-tuning commands do."""

import logging
import time

from ..batches import BucketedLoader
from ..errors import InputError
from ..tasks.labels import name_labels, write_labels
from ..tasks.scores import evaluate_segments
from ..tasks.task import Data
from ..training.workers import make_workers
from .distillation import Teacher
from .engines import calibrate, check_engine_arguments, forward_of, load_exported
from .job import describe, job_of
from .model_choice import ModelChoice
from .report import About
from .run import Outcome, Run, Score, Training
from .task_model import make_task_model

__all__ = ['Evaluator', 'TaskRun', 'run_task']

logger = logging.getLogger(__name__)


class Evaluator:
    """Scores, predictions and mistakes of a model on the sets of a task.

    Parameters
    ----------
    task : Task
    forward : callable
        ``forward(batch)``.
    sets : dict of str to Data
        By segment.
    metrics : callable, optional
        ``metrics(predictions, labels) -> dict``: further scores.
    """

    def __init__(self, task, forward, sets, metrics=None):
        self._task, self._forward, self.sets, self._metrics = task, forward, sets, metrics
        self._kept = None  # segment -> outputs of the trained model

    def labelled(self, *segments):
        """The segments that have labels and so can be scored."""
        return [
            name for name in segments
            if name in self.sets and self._task.is_labelled(self.sets[name].rows)
        ]  # fmt: skip

    def keep(self):
        """Compute the outputs of a set only once from now on, since the model no longer changes."""
        self._kept = {}

    def outputs(self, segment, guard=None):
        """The model's outputs on a set."""
        if self._kept is not None and segment in self._kept:
            return self._kept[segment]
        outputs = self._task.predict(self._forward, self.sets[segment], guard)
        if self._kept is not None:
            self._kept[segment] = outputs
        return outputs

    def evaluate(self, guard=None, segments=None):
        """See `evaluate_segments`: of the dev sets, or those named."""
        segments = self._task.evaluated(self.sets) if segments is None else segments
        return evaluate_segments(self._measure, self.labelled(*segments), self._task.metric, guard)

    def _measure(self, segment, guard):
        data, started = self.sets[segment], time.perf_counter()
        outputs = self.outputs(segment, guard)
        speed = data.loader.num_samples / max(time.perf_counter() - started, 1e-9)
        scores = self._task.score(data, outputs)
        if self._metrics is not None:
            labels = [row.label for row in data.rows]
            scores.update(self._metrics(self._task.decode(data, outputs), labels))
        return scores, speed

    def predict(self, folder):
        """Write the predictions; returns the files' names."""
        names = []
        for segment in self._task.predicted:
            if segment in self.sets:
                outputs = self.outputs(segment)
                names += self._task.write(folder, segment, self.sets[segment], outputs)
        if names:
            logger.info('predictions: %s', ', '.join(names))
        return names

    def examine(self):
        """The `Examination` of the first dev set; None if there is none with labels."""
        for segment in self.labelled(*self._task.evaluated(self.sets)):
            return self._task.examine(segment, self.sets[segment], self.outputs(segment))
        return None


class TaskRun:
    """A training of a task, or an inference with ``only_inference``.

    Parameters
    ----------
    task : Task
    sources : dict, optional
        Segment -> what its rows are read from; by default the files that the settings name.
    opened : (block, tokenizer), optional
        The model; by default the one that the settings name.
    metrics : callable, optional
        See `Evaluator`.
    callbacks : sequence of Callback
    dev_share : float, optional
        The share of the training set that is held out as the dev set.
    is_kept : bool
        See `Run`.
    **options
        For `Run`.
    """

    def __init__(
        self, task, sources=None, opened=None, metrics=None, callbacks=(), dev_share=None,
        is_kept=True, **options,
    ):  # fmt: skip
        self.task, self.settings = task, task.settings
        self._callbacks, self._metrics = callbacks, metrics
        settings = self.settings
        given = None if sources is None else task.take(sources)
        task.begin()
        choice = None if opened else ModelChoice(settings, family=task.family)
        sources = task.sources() if given is None else given
        rows = None if task.reads_late else self._read(sources, dev_share, choice)
        self._base = choice.title if choice else type(opened[0]).__name__
        task.workers = make_workers(settings.comm_backend, settings.allreduce_dtype)
        trains = not settings.only_inference
        self.run = Run(settings, task.name, task.family, task.workers, trains=trains, **options)
        self.run.is_kept = is_kept
        task.adopt(choice)
        rows = self._read(sources, dev_share, choice) if rows is None else rows
        if opened:
            self._check_block(opened[0])
        self.model, self.tokenizer = opened or self._open(choice, trains)
        # bad dev and test sets fail before the training
        order = sorted(rows, key=lambda name: name == 'train')
        self.sets = {name: self._load(name, rows[name]) for name in order}
        self.training_set = self.sets.pop('train', None)
        forward = self._forward()
        self.evaluator = Evaluator(task, forward, self.sets, metrics)
        self.state = None

    def _read(self, sources, dev_share, choice):
        """Segment -> rows, which the task has seen."""
        rows = {name: self.task.read(source, name) for name, source in sources.items()}
        if dev_share is not None:
            rows['train'], rows['dev'] = self.task.split(rows['train'], dev_share)
        self.task.prepare(rows, choice)
        return rows

    def _open(self, choice, trains):
        task, settings = self.task, self.settings
        lowers = getattr(settings, 'do_lower_case', None)
        if getattr(settings, 'teacher', None):
            self._teacher = Teacher(settings, task.record, self.run.contexts)
            if settings.student_layers is not None:
                self._base = f'{settings.student_layers} layers of its teacher'
                return self._teacher.student()
        if getattr(settings, 'deploy', False):
            self.run.contexts = self.run.contexts[:1]
            return self._deployed(), choice.tokenizer(task.head, lowers)
        return make_task_model(
            settings, choice, task.head, self.run.contexts, trains=trains,
            length_flag=task.length, do_lower_case=lowers, **task.model_options(),
        )  # fmt: skip

    _teacher = None

    def _check_block(self, block):
        count = getattr(block, 'num_labels', getattr(block.config, 'num_labels', None))
        wanted = self.task.model_options()
        if wanted.get('num_labels', count) != count:
            raise InputError(
                f'`model` has {count} outputs, and the training set {wanted["num_labels"]} labels'
            )

    def _deployed(self):
        """An exported model as a function like the block."""
        task, prefix = self.task, self.settings.model_prefix
        length = getattr(self.settings, task.length)
        block = load_exported(prefix, length, self.run.ctx, task.length)

        def model(words, token_types, valid_length):
            outputs = task.adapt_outputs(words, block(words, token_types, valid_length))
            problem = task.check_outputs(words, outputs)
            if problem:
                raise InputError(
                    f"'{prefix}-symbol.json' gives {problem}: was it exported for another task?"
                )
            return outputs

        return model

    def calibrate(self):
        """``only_calibration``: write the model in INT8; see `calibrate`."""
        data = next(iter(self.sets.values()), None)
        if data is None:
            raise InputError('`only_calibration`: there is no dev set to calibrate with')

        def evaluate(forward):
            return Evaluator(self.task, forward, self.sets).evaluate()

        prefix = calibrate(
            self.run, self.settings, self.model, data.loader, evaluate, self.task.name,
            self.task.metric, self.task.most_lost,
        )  # fmt: skip
        write_labels(prefix, self.task.labels)

    def _forward(self):
        task, model, settings = self.task, self.model, self.settings
        if settings.engine == 'mxnet':
            return lambda batch: task.forward(model, batch)
        return forward_of(settings, model)

    def _load(self, segment, rows):
        settings, started = self.settings, time.perf_counter()
        samples = self.task.encode(rows, self.tokenizer)
        options = {'batch_size': settings.dev_batch_size}
        if segment == 'train':
            options = {'batch_size': settings.batch_size, 'batch_tokens': settings.batch_tokens}
            options.update(shuffle=True, workers=self.task.workers)
        loader = BucketedLoader(
            samples, seed=settings.seed, round_to=settings.round_to,
            pad_val=self.tokenizer.pad_token_id or 0, ctx=self.run.contexts,
            **{**options, **self.task.loader_options(segment)},
        )  # fmt: skip
        seconds = time.perf_counter() - started
        logger.info('%s: %d %s, %.1f s', segment, self.task.size(rows), self.task.unit, seconds)
        return Data(rows, samples, loader)

    def infer(self):
        """Evaluate and predict; see `Run.infer`."""
        evaluator = self.evaluator
        evaluator.keep()
        scored = self.task.scored(evaluator.sets)
        self.run.infer(lambda: evaluator.evaluate(segments=scored), evaluator.predict)

    def train(self):
        """Train, and write all files; see `Run.train`.

        Returns
        -------
        TrainingState
        """
        task, data, evaluator = self.task, self.training_set, self.evaluator
        if data is None:
            raise InputError('there is no training set')
        results, title = task.results(), self.title
        has_dev = bool(evaluator.labelled(*task.evaluated(self.sets)))

        def predict(folder):
            evaluator.keep()
            results['best_model'] = evaluator.evaluate(segments=evaluator.sets)[1]
            if 'test' in results['best_model']:
                results['test'] = results['best_model']['test']
            return evaluator.predict(folder)

        sizes = {name: task.size(part.rows) for name, part in {'train': data, **self.sets}.items()}
        described = {task.data_field: task.describe(data)}
        if described[task.data_field] is None:
            values = (part for sample in data.samples for part in sample.content)
            described[task.data_field] = describe(len(data.samples), task.samples_unit, values)
        objective = task.objective(self.model, data)
        if self._teacher is not None:
            objective = self._teacher.objective(self.model)
            described['teacher'] = self._teacher.description
        if hasattr(self.settings, 'do_predict'):
            described['do_predict'] = False
        self.state = self.run.train(
            Training(
                title, self.model, data.loader, objective,
                callbacks=self._callbacks, **task.training(),
            ),
            Score(task.metric, evaluator.evaluate if has_dev else None),
            Outcome(
                self.save, predict, results, evaluator.examine,
                About(task.use, self._base, sizes, task.unit, task.labels),
            ),
            job_of(self.settings, task.free, **described),
        )  # fmt: skip
        return self.state

    @property
    def title(self):
        """Title of the training: the task, and the model that it began with."""
        return f'{self.task.title}, {self._base}'

    def take_best(self):
        """After an interruption, give the model the best epoch's parameters, if there is one."""
        self.state = self.run.loop.state
        if self.state.best:
            self.model.load_parameters(self.run.files.path(self.state.best['epoch']))
        self.evaluator.keep()

    def close(self):
        """Let other runs write to the folder."""
        self.run.folder.close()

    def save(self, folder, **options):
        """Write the model as it is, with the names of its classes."""
        if self.task.trained_for is not None:
            name_labels(self.model, self.task.trained_for, self.task.labels)
        self.task.save(folder, self.model, self.tokenizer, **options)


def run_task(task):
    """Train a task, or with ``only_inference`` evaluate a model of it: what its command does."""
    check_engine_arguments(task.settings, task.settings.only_inference)
    run = TaskRun(task)
    if getattr(task.settings, 'only_calibration', False):
        run.calibrate()
    elif task.settings.only_inference:
        run.infer()
    else:
        run.train()
