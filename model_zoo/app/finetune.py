"""`model_zoo.finetune`: training from Python, as the fine-tuning commands do it."""

from __future__ import annotations

import contextlib
import copy
import html
import logging
import numbers
import os
import pkgutil
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..blocks.block import ZooBlock
from ..errors import InputError, UnknownNameError, ZooError, is_ours
from ..records import is_path
from ..tasks.task import Task
from ..training.loop import Interrupted
from ..util.display import has_viewer, in_number, is_notebook
from .trainer import Trainer

if TYPE_CHECKING:
    from ..inference.pipeline_base import Pipeline
    from ..tokenization import Tokenizer
    from ..training.callbacks import Callback
    from ..training.settings import Settings

__all__ = ['TASKS', 'Trained']

logger = logging.getLogger(__name__)

#: pipelines' names of tasks -> a class in `model_zoo.tasks`
TASKS = {
    'text-classification': 'classification.ClassificationTask',
    'token-classification': 'tagging.TaggingTask',
    'question-answering': 'squad.SquadTask',
    'multiple-choice': 'choice.ChoiceTask',
    'sentence-similarity': 'sentences.SentenceTask',
    'text-generation': 'language_model.LanguageModelTask',
    'fill-mask': 'masked_lm.MaskedLMTask',
}
_ALIASES = {'sentiment-analysis': 'text-classification', 'ner': 'token-classification'}
#: setting -> keyword of `finetune`
_KEYWORDS = {'train_file': 'train', 'dev_file': 'dev', 'dev_split': 'dev', 'test_file': 'test'}


def finetune(
    model: str | os.PathLike | ZooBlock,
    task: str | Task | type[Task],
    train: str | os.PathLike | Iterable[Any],
    dev: str | os.PathLike | Iterable[Any] | float | None = None,
    test: str | os.PathLike | Iterable[Any] | None = None,
    *,
    epochs: float | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    max_length: int | None = None,
    seed: int | None = None,
    output_dir: str | os.PathLike | None = None,
    resume: bool = False,
    tokenizer: Tokenizer | None = None,
    text: str | None = None,
    text_pair: str | None = None,
    label: str | None = None,
    settings: Settings | None = None,
    metrics: Callable[[list, list], dict[str, float]] | None = None,
    callbacks: Iterable[Callback] = (),
    **more: Any,
) -> Trained:
    """Train a model on your own data; the result is a `Trained`.

    Parameters
    ----------
    model : str or ZooBlock
        A name, a folder, or a block, which is trained in place and needs `tokenizer`.
    task : str or Task
        'text-classification' (pairs and, with ``regression=True``, numbers, too),
        'token-classification', 'question-answering', 'multiple-choice', 'sentence-similarity',
        'text-generation' (a language model) or 'fill-mask' (further pre-training); or your own
        task, a class or an object. Keywords override the settings of an object.
    train : str, os.PathLike or iterable
        A path or URL, a pandas DataFrame, a ``datasets.Dataset``, or an iterable of rows, which is
        read once. Rows are dicts by column, or tuples: (text, label), (text, text, label); (words,
        labels); (question, context, answer, start), with None for no answer; (context, choices,
        label); (text, text, score), (text, match), (text, match, other).
    dev : like `train`, or float, optional
        The set to evaluate on after each epoch; the best epoch is the result. A number holds out
        this share of `train`, stratified by label in classification. Without `dev` the last epoch
        is the result.
    test : like `train`, optional
        The set to score, or predict, with the result.
    epochs, batch_size, lr, max_length, seed
        The task's settings have the defaults. `max_length` is in tokens.
    output_dir : str, optional
        Receives the files of the task's command. Without it no files are kept.
    resume : bool
        Continue the run in `output_dir`.
    tokenizer : Tokenizer, optional
        Needed if `model` is a block.
    text, text_pair, label : str, optional
        Names of the columns; by default the usual ones.
    settings : Settings, optional
        All settings of the task; keywords override them.
    metrics : callable, optional
        ``metrics(predictions, labels) -> dict``: further scores.
    callbacks : sequence of Callback
    **more
        Further fields of the task's settings, such as ``warmup_ratio=0.2``.

    Raises
    ------
    InputError
        If an argument or the data can't be used; the message names it.
    """
    task_class = _task_class(task)
    named = {'epochs': epochs, 'batch_size': batch_size, 'lr': lr, 'seed': seed}
    named.update(resume=resume or None, max_length=max_length)
    named.update(zip(task_class.columns, (text, text_pair, label)))
    more.update({name: value for name, value in named.items() if value is not None})
    sources, opened, interrupted = {'train': train, 'dev': dev, 'test': test}, None, False
    if isinstance(dev, numbers.Real):
        more['dev_split'] = sources.pop('dev')
    sources = {name: source for name, source in sources.items() if source is not None}
    for name in [name for name, source in sources.items() if is_path(source)]:
        more[f'{name}_file'] = os.fspath(sources.pop(name))  # as the command names it
    if resume and output_dir is None:
        raise InputError('needs `output_dir`', field='resume')
    if isinstance(model, ZooBlock):
        if tokenizer is None:
            raise InputError('is a block: `tokenizer` must be its tokenizer', field='model')
        opened = model, tokenizer
    elif model is None:
        raise InputError('must be a name, such as all-MiniLM-L6-v2', field='model')
    else:
        more['model'] = os.fspath(model)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_kept_random_states())
        stack.enter_context(_naming_keywords(task_class))
        more['output_dir'] = os.fspath(
            output_dir or stack.enter_context(tempfile.TemporaryDirectory('_zoo'))
        )
        if isinstance(task, Task):
            made = copy.copy(task)
            made.settings = _settings(task_class, settings or task.settings, more)
        else:
            made = task_class(_settings(task_class, settings, more))
        made.rows_folder = stack.enter_context(tempfile.TemporaryDirectory('.rows'))
        for name, source in sources.items():
            if isinstance(source, numbers.Number):
                raise InputError(f'must be a path or rows, not {source}', field=name)
        options = {'metrics': metrics, 'callbacks': callbacks, 'is_kept': output_dir is not None}
        trainer = Trainer(made, sources, opened, **options, setup_logging=_log_to(stack))
        stack.enter_context(trainer)
        try:
            trainer.run()
        except Interrupted as error:
            interrupted = True
            logger.warning('interrupted: %s', error)
            trainer.load_best()
        if trainer.loop is None:
            raise InputError('is for the commands: `finetune` trains', field='only_inference')
        trainer.evaluator.keep()
        return Trained(trainer, output_dir, interrupted)


def _task_class(task):
    if isinstance(task, Task):
        return type(task)
    if isinstance(task, type) and issubclass(task, Task):
        return task
    name = _ALIASES.get(task, task)
    UnknownNameError.check('task', name, TASKS)
    return pkgutil.resolve_name(f'model_zoo.tasks.{TASKS[name]}')


def _settings(task_class, settings, more):
    made = task_class.settings_class(**more) if settings is None else settings.copy(**more)
    usual = {n: value for n, value in task_class.in_python.items() if n not in made.given}
    return made.with_defaults(**usual)


@contextlib.contextmanager
def _naming_keywords(task_class):
    """Name settings as the keywords of `finetune` in messages."""
    try:
        yield
    except ZooError as error:
        names = 'text_columns', *task_class.columns
        columns = zip(names, ('text', 'text', 'text_pair', 'label'))
        keywords = {**_KEYWORDS, **dict(columns)}
        error.args = (error.naming(keywords.get, '`{}`'),)
        error.field = keywords.get(error.field, error.field)
        raise


@contextlib.contextmanager
def _kept_random_states():
    """Leave the global generators of Python and NumPy as they were; MXNet's can't be read."""
    states = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def _log_to(stack):
    """Return a function like `cli.setup_logging` that leaves the program's own logging alone."""

    def setup(log_file=None, *_, **__):
        if log_file is None:
            return
        handlers = [logging.FileHandler(log_file, encoding='utf-8')]
        handlers[0].setFormatter(logging.Formatter('%(asctime)s %(message)s', '%H:%M:%S'))
        package = logging.getLogger('model_zoo')
        if not package.hasHandlers():  # the file alone would hide the warnings
            shown = logging.StreamHandler(sys.stdout) if is_notebook() else _Warner()
            shown.setLevel(logging.WARNING)
            handlers.append(shown)
            if not has_viewer() and 'TQDM_DISABLE' not in os.environ:  # lines instead of a bar
                handlers.append(logging.StreamHandler())
                handlers[-1].addFilter(lambda record: hasattr(record, 'progress'))
        stack.callback(package.setLevel, package.level)
        package.setLevel(min(package.level or logging.INFO, logging.INFO))
        for handler in handlers:
            package.addHandler(handler)
            stack.callback(handler.close)
            stack.callback(package.removeHandler, handler)

    return setup


class _Warner(logging.Handler):
    """Passes warnings to Python's `warnings`, as of the program's line that called this project."""

    def emit(self, record):
        frame = sys._getframe()
        while frame.f_back and is_ours(frame, 'logging'):
            frame = frame.f_back
        place = frame.f_code.co_filename, frame.f_lineno
        warnings.warn_explicit(record.getMessage(), UserWarning, *place)


class Trained:
    """The result of `finetune`: the trained model, its scores and its history.

    Attributes
    ----------
    model : ZooBlock
        With the best epoch's parameters; without a dev set, the last epoch's.
    tokenizer : Tokenizer
    task : Task
    scores : dict
        The best epoch's scores on the dev set; empty without one.
    history : list of dict
        One dict per epoch: epoch, step, train_loss, and the scores.
    test_scores : dict
        The scores on the test set; empty without one, or if it has no labels.
    predictions : list or None
        One for each row of the test set; labels are what the training rows gave, such as numbers.
    folder : str or None
        ``output_dir``.
    interrupted : bool
        Whether Ctrl-C ended the training.
    """

    def __init__(
        self, trainer: Trainer, folder: str | os.PathLike | None, interrupted: bool = False
    ) -> None:
        state, evaluator = trainer.state, trainer.evaluator
        self.model: ZooBlock = trainer.model
        self.tokenizer: Tokenizer = trainer.tokenizer
        self.task: Task = trainer.task
        self.folder, self.interrupted = folder, interrupted
        self.history: list[dict[str, float]] = []
        for record in state.epochs:
            begin = {name: record[name] for name in ('epoch', 'step', 'train_loss')}
            self.history.append({**begin, **_plain(record['report'])})
        self.scores: dict[str, float] = _plain(state.best['report']) if state.best else {}
        self.test_scores: dict[str, float] = {}
        self.predictions: list | None = None
        if 'test' in evaluator.sets:
            if evaluator.labelled('test'):
                self.test_scores = _plain(evaluator.evaluate(segments=['test'])[1])
            decoded = self.task.decode(evaluator.sets['test'], evaluator.outputs('test'))
            self.predictions = decoded and list(map(self.task.as_given, decoded))
        self._save, self._title = trainer.save, trainer.title

    def save(self, folder: str | os.PathLike) -> None:
        """Write model and tokenizer to a folder that `pipeline`, `open_model` and ``zoo`` open.

        It is as ``best_model``: transformers and sentence-transformers open it, too.
        """
        os.makedirs(folder, exist_ok=True)
        self._save(os.fspath(folder))

    def pipeline(self, **options: Any) -> Pipeline:
        """Open the model as a pipeline; see `model_zoo.pipeline`."""
        from ..inference import pipeline

        with tempfile.TemporaryDirectory('_zoo') as folder:
            self.save(folder)
            return pipeline(self.task.use, folder, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._pipeline is None:
            self._pipeline = self.pipeline()
        return self._pipeline(*args, **kwargs)

    _pipeline = None

    def __repr__(self):
        shown = ', '.join(f'{name} {value:.4g}' for name, value in self.scores.items())
        epochs = in_number(len(self.history), 'epochs')
        return f'<Trained {self._title}: {epochs}{shown and ", " + shown}>'

    def _repr_html_(self):
        """Return the epochs' scores as a table, for notebooks."""
        names = list(dict.fromkeys(name for record in self.history for name in record))
        head = ''.join(f'<th>{html.escape(name)}</th>' for name in names)
        rows = ([f'<td>{_shown(each.get(name))}</td>' for name in names] for each in self.history)
        rows = ''.join(f'<tr>{"".join(cells)}</tr>' for cells in rows)
        title = html.escape(self._title)
        return f'<table><caption>{title}</caption><tr>{head}</tr>{rows}</table>'


def _plain(report):
    """Return the scores of the first set of an evaluation's report."""
    scores = next(iter(report.values()), {})
    return {name: value for name, value in scores.items() if not name.endswith('_per_second')}


def _shown(value):
    return '' if value is None else f'{value:.4g}' if isinstance(value, float) else str(value)
