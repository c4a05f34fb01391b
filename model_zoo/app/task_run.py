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
from ..training.settings import DeploySettings, FinetuneSettings
from ..training.updater import freeze_parameters
from ..training.workers import make_workers
from .engines import calibrate, check_engine, forward_of, load_exported
from .job import describe, describe_model, job_of
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
        segments = self._task.evaluated(self.sets) if segments is None else segments
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
        for segment in self.labelled(*self._task.evaluated(self.sets)):
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
    dev_share : float, optional
        The share of the training set that is held out as the dev set.
    """

    def __init__(
        self,
        task,
        sources=None,
        opened=None,
        metrics=None,
        callbacks=(),
        dev_share=None,
        is_kept=True,
        **options,
    ):
        self.task, self.settings = task, task.settings
        self._callbacks = callbacks
        settings = self.settings
        given = None if sources is None else task.take(sources)
        task.begin()
        choice = None if opened else ModelChoice(settings, family=task.family)
        sources = task.sources() if given is None else given
        rows = None if task.reads_late else self._read(sources, dev_share, choice)
        self._base = choice.title if choice else type(opened[0]).__name__
        task.workers = make_workers(settings.comm_backend, settings.allreduce_dtype)
        self.run = self._begin(**options)
        self.run.is_kept = is_kept
        task.adopt(choice)
        rows = self._read(sources, dev_share, choice) if rows is None else rows
        job = self.run.folder.checkpoints().job() if settings.resume else None
        if job is not None:
            task.go_on(job)
        if opened:
            self._check_block(opened[0])
        self.model, self.tokenizer = opened or self._open(choice)
        self._block = task.fit(self.model, self.tokenizer)
        if isinstance(settings, FinetuneSettings) and settings.freeze is not None:
            layers = self.model.config.num_layers
            freeze_parameters(
                self.model, layers if settings.freeze == 'encoder' else int(settings.freeze)
            )
        # bad dev and test sets fail before the training
        order = sorted(rows, key=lambda name: name == 'train')
        self.sets = {name: self._load(name, rows[name]) for name in order}
        self.training_set = self.sets.pop('train', None)
        forward = functools.partial(task.forward, self.model)
        if isinstance(settings, FinetuneSettings) and settings.engine != 'mxnet':
            forward = forward_of(settings, self.model)
        self.evaluator = Evaluator(task, forward, self.sets, metrics)
        self.state = None

    def _begin(self, **options):
        """The run, with its folder and log."""
        task = self.task
        return Run(
            self.settings, task.name, task.prefix, task.workers, trains=task.trains, **options
        )

    def _read(self, sources, dev_share, choice):
        rows = {name: self.task.read(source, name) for name, source in sources.items()}
        if dev_share is not None:
            rows['train'], rows['dev'] = self.task.split(rows['train'], dev_share)
        self.task.prepare(rows, choice)
        return rows

    def _open(self, choice):
        task, settings = self.task, self.settings
        self._teacher = task.teacher(self.run.contexts)
        if self._teacher is not None and settings.student_layers is not None:
            self._base = f'{settings.student_layers} layers of its teacher'
            return self._teacher.student()
        if task.is_exported:
            self.run.contexts = self.run.contexts[:1]
            return self._deployed(), choice.tokenizer(task.head, task.lowers)
        lowers, options = task.lowers, task.model_options()
        if not task.has_own_head:
            return choice.build(task.head, self.run.contexts, do_lower_case=lowers, **options)
        model, tokenizer = make_task_model(
            choice,
            task.head,
            self.run.contexts,
            trains=task.trains,
            do_lower_case=lowers,
            **options,
        )
        settings.fit_length(task.length, model.context_length)
        return model, tokenizer

    _teacher = None

    def _check_block(self, block):
        count = block.num_labels or getattr(block.config, 'num_labels', None)
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
            count = self.task.size(rows)
            logger.info('%s: %d %s, %.1f s', segment, count, self.task.unit, seconds)
        return data

    def infer(self):
        """Evaluate and predict; see `Run.infer`."""
        evaluator = self.evaluator
        evaluator.keep()
        scored = self.task.scored(evaluator.sets)
        self.run.infer(lambda: evaluator.evaluate(segments=scored), evaluator.predict)

    def train(self):
        """Train, and write all files; see `Run.train`."""
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

        sets = {'train': data, **self.sets} if task.unit else {}
        sizes = {name: task.size(part.rows) for name, part in sets.items()}
        task.initialize(self.model, data)
        objective = task.objective(self.model, data)
        if self._teacher is not None:
            objective = self._teacher.objective(self.model)
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
                **task.training(),
            ),
            Outcome(
                self.save,
                None if task.predicted is None else predict,
                results,
                evaluator.examine,
                About(
                    task.use,
                    self._base,
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
        described = {
            name: value if value is None or isinstance(value, (str, bool)) else describe(*value)
            for name, value in self.task.describe(self.training_set).items()
        }
        described['class_names'] = self.task.labels and list(self.task.labels)
        if self._teacher is not None:
            described['teacher'] = describe_model(self._teacher.block)
        return job_of(self.settings, **described)

    @property
    def title(self):
        """Title of the training: the task, and the model that it began with."""
        return f'{self.task.title}, {self._base}'

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
        if settings.engine != 'mxnet' and task.is_exported:
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


def make_task_model(choice, task, ctx, trains, do_lower_case=None, **task_options):
    """A task's model with its parameters, and its tokenizer.

    With `trains` false a random head gets a warning, and a model of another task is refused. By
    default a vocabulary that was published with its model lowers texts as that did, as in
    pytorch-pretrained-bert.
    """
    if not trains and not choice.has_task:
        logger.warning(
            'neither a folder of a trained model nor `model_parameters` is given: the predictions '
            'come from a random head'
        )
    if not trains:
        choice.check_trained_for(task)
    lowers = do_lower_case if choice.is_folder or choice.vocab_file else None
    model, tokenizer = choice.build(task, ctx, do_lower_case=lowers, **task_options)
    if do_lower_case not in (None, tokenizer.do_lower_case):
        logger.warning(
            'the vocabulary of %s decides: texts are %s',
            choice.model,
            'lower-cased' if tokenizer.do_lower_case else 'not lower-cased',
        )
    return model, tokenizer
