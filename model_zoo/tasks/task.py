"""The base of the tasks, which read, encode, score and write their rows; and scores."""

import contextlib
import logging
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..batches import BucketedLoader, SampleLoader
from ..errors import InputError, UnknownNameError
from ..optimizer import finetune_schedule, get_schedule
from ..training.job import describe
from ..training.objective import mean_over_examples, predict
from ..training.settings import FinetuneSettings
from ..training.workers import Workers
from ..util.arrays import softmax
from ..util.choices import SCHEDULE_NAMES
from ..util.display import short
from .rows import fit_to_rows, hold_out
from .saving import save_trained
from .scores import error_analysis
from .tables import segment_files, write_table
from .targets import Classes

__all__ = ['Data', 'Task']

logger = logging.getLogger(__name__)


class Data(NamedTuple):
    """A set of a task: `rows` of `Task.read`, `samples` of `Task.encode`, and their loader."""

    rows: Sequence
    samples: Sequence
    loader: SampleLoader


class Task:
    """Base of the tasks that `model_zoo.finetune` and the fine-tuning commands train.

    To write a task, define a class of settings and five methods: `read`, `encode`, `loss`, `score`
    and `write`; for scores of classes the last three needn't be overridden. All other methods have
    defaults; they stand below in the order in which a training calls them.

    Parameters
    ----------
    settings : Settings
        An object of `settings_class`. It is never changed: `assume` replaces it by a copy.

    Attributes
    ----------
    name : str
        Used in the names of the log and of parameter files.
    head : str or type
        The family's task that selects the head ('classification', 'tagging', 'question_answering',
        'multiple_choice', 'sentence_embedding'), or a block's class.
    metric : str
        The score of `score` that compares epochs; higher is better.
    unlogged : sequence of str
        Scores that the results have, but not the log.
    predicted : tuple of str, or None
        Segments whose predictions are written, or None; 'dev' is MNLI's 'dev_matched', too.
    use : str or None
        The trained model's task in `model_zoo.pipeline`.
    command, call : str
        A command that uses the trained model, with ``{folder}`` in its place, and an argument of
        its pipeline in Python; ``{mask}`` is the model's mask token. Empty without a command.
    labels : list of str or None
        Names of the classes, in the order of their numbers.
    family : str
        The family whose flags select the model.
    prefix : str or None
        Prefix of the name in the names of files of parameters; None: `family`.
    unit : str or None
        Name of the rows in the log; None if they aren't counted.
    sample_unit : str
        Name of the samples in the saved description of a set.
    title : str or None
        The task's name in titles; None: `name`.
    files : dict of str to tuple of str
        Segment -> possible names of its file in ``data_dir``.
    columns : tuple of str
        Settings that name the columns of texts, second texts and labels.
    in_python : dict
        Initial settings of `model_zoo.finetune`.
    has_own_head : bool
        Whether the head is random in a pretrained model, as a classifier's is.
    has_own_rows : bool
        Whether the user's own rows are read, and no published data set.
    draws_updates : bool
        Whether a loader draws the samples of an update for all devices together.
    located : Located or None
        The model's family, files and configuration; None for a block in memory.
    base : str
        Name of the model that the training begins with.
    fitted : str or None
        What `objective` has fitted, if the training is no more than that.
    own_length : int or None
        A further limit of a text's tokens where the trained model is used.
    workers : Workers
        The processes that train together; set before `encode`.
    rows_folder : str
        A folder for copies of rows in memory.
    output_dir : str or None
        The run's folder on this machine.
    """

    settings_class = FinetuneSettings
    name = head = use = None
    metric, unit, sample_unit, title = 'accuracy', 'examples', 'examples', None
    files = {'train': ('train.tsv',), 'dev': ('dev.tsv',), 'test': ('test.tsv',)}
    columns = ('text_column', 'text_pair_column', 'label_column')
    predicted, unlogged, family, in_python = ('dev', 'test'), (), 'bert', {}
    has_own_head, has_own_rows, draws_updates, command, call = True, True, False, '', ''
    labels = located = base = output_dir = fitted = own_length = prefix = _resumed = None

    def __init__(self, settings):
        self.settings, self.workers = settings, Workers()

    def assume(self, **values):
        """Replace `settings` by a copy with these values, which don't count as given."""
        self.settings = self.settings.with_defaults(**values)

    # -- the five methods of a task

    def read(self, source, segment):
        """Return the rows of a set: 'train', 'dev' or 'test'.

        `source` is a path, or the caller's data. Rows are what the other methods expect; by default
        they have an attribute ``label``.
        """
        raise NotImplementedError

    def encode(self, rows, tokenizer):
        """Return the samples of rows: a sequence of `Sample`."""
        raise NotImplementedError

    def loss(self, model, batch):
        """Return the mean loss of a batch, an NDArray of shape (1,)."""
        if batch.labels is None:
            raise InputError('a row of the training set has no label')
        return model(*batch.inputs, batch.labels)

    def score(self, data, outputs):
        """Return the scores of a set, floats by name; by default accuracy and loss of classes.

        `data` is the set's `Data`, and `outputs` what `predict` returned.
        """
        labels, target = self.numbers(data.rows), self._target_of(outputs)
        loss = float(np.mean(target.losses(labels, outputs)))
        return {**target.scores(labels, outputs), 'loss': loss}

    def write(self, folder, segment, data, outputs):
        """Write the predictions for a set; returns the names of the files.

        By default ``SEGMENT_predictions.tsv``: one line per row, with its class and probability.
        """
        name, probabilities = f'{segment}_predictions.tsv', softmax(outputs).max(axis=-1)
        rows = zip(self.decode(data, outputs), probabilities.tolist())
        write_table(os.path.join(folder, name), [('prediction', 'probability'), *rows])
        return [name]

    # -- names

    @property
    def dev_share(self):
        """The share of the training set's rows that is the dev set, or None."""
        return self.settings.dev_split

    @property
    def lowers(self):
        """Whether texts are lower-cased; None: as the vocabulary says."""
        return self.settings.do_lower_case

    @property
    def trains(self):
        """Whether the settings ask for a training."""
        return not self.settings.only_inference

    @property
    def trained_for(self):
        """The task's name in the configuration of the trained model; None for no entry."""
        return self.name

    @property
    def score_name(self):
        """Name of the score that compares epochs; higher is better."""
        name = self.settings.best_by or self.metric
        return 'negative loss' if name == 'loss' else name

    @property
    def fits_rows(self):
        """Whether few rows get other `epochs` and `batch_size`, unless these are given."""
        return bool(self.settings.by_rows)

    # -- 1. the sets and the model are located

    def locate(self, given=None):
        """Check the settings, and return where each set's rows are read from, by segment.

        `given` has the rows that the caller has in memory, by segment.
        """
        settings = self.settings
        files = {**segment_files(settings, self.files, self.dev_share), **(given or {})}
        if settings.only_inference and self.dev_share is None:
            files.pop('train', None)
        segment = 'dev' if settings.only_inference else 'train'
        if segment not in files and not (settings.only_inference and files):
            folder = ', or `data_dir`' if 'data_dir' in vars(settings) else ''
            raise InputError(f'there is no {segment} set: give `{segment}_file`{folder}')
        return files

    def configure(self, located):
        """Learn what the model's configuration says, such as its labels, before rows are read.

        `located` is None for a block in memory.
        """

    # -- 2. `read` is called for each set

    def split(self, rows, share):
        """Return rows to train on, and held-out rows: always the same for a seed."""
        return hold_out(rows, max(1, round(share * len(rows))), self.settings.seed)

    def prepare(self, rows):
        """Learn what the model needs, such as `labels`, from the rows of all sets by segment."""

    def resume(self, job):
        """Restore from the job of the run that is resumed the number of updates, and the labels."""
        # earlier versions had other defaults for few rows
        totals, given = {'epochs', 'training_steps'}, self.settings.given
        names = {'batch_size', *(totals if given.isdisjoint(totals) else ())} - given
        self._resumed = {name: job[name] for name in names if job.get(name) is not None}
        self.resume_labels(job)

    def resume_labels(self, job):
        """Restore the order of the labels."""
        names = job.get('class_names')
        if names and self.labels and sorted(names) == sorted(self.labels):
            self.labels = names

    # -- 3. the model is opened

    def model_options(self):
        """Return options of the block, such as ``num_labels``."""
        return {} if self.labels is None else {'num_labels': len(self.labels)}

    def open(self, choice, contexts):
        """Return the model that the settings choose, and its tokenizer."""
        options = {'do_lower_case': self.lowers, **self.model_options()}
        if not self.has_own_head:
            return choice.build(self.head, contexts, trains=self.trains, **options)
        model, tokenizer = choice.open_task(self.head, contexts, self.trains, **options)
        self.settings = self.settings.fit_length('max_length', model.context_length)
        if choice.is_folder and not self.trains and 'max_length' not in self.settings.given:
            lengths = self.own_length, model.context_length, tokenizer.max_len
            self.assume(max_length=min(filter(None, lengths)))
        return model, tokenizer

    def setup(self, model, tokenizer):
        """Learn from the opened model; returns the block to train, which may be around it."""
        return model

    # -- 4. `encode` is called for each set

    def fit_to_rows(self, count):
        """Choose the updates for `count` rows to train on, or take a resumed run's."""
        if self.fits_rows:
            self.assume(**(self._resumed or fit_to_rows(self.settings, count)))

    def load(self, segment, rows, tokenizer, contexts, accumulate, **options):
        """Return the `Data` of a set: by default its samples of `encode` in a `BucketedLoader`.

        An update takes `accumulate` batches, on all devices together; `options` are the loader's.
        """
        if segment == 'train':
            self.fit_to_rows(len(rows))
        settings, samples = self.settings, self.encode(rows, tokenizer)
        size, options['pad_val'] = settings.dev_batch_size, tokenizer.pad_token_id or 0
        if segment == 'train':
            options.update(shuffle=True, workers=self.workers, batch_tokens=settings.batch_tokens)
            size = settings.batch_size
        options.update(round_to=settings.round_to, seed=settings.seed, ctx=contexts)
        return Data(rows, samples, BucketedLoader(samples, size, **options))

    def is_labelled(self, rows):
        """Return whether a set can be scored."""
        return any(row.label is not None for row in rows)

    def describe(self, data):
        """Return a text that identifies a set's data, by its number of samples and a checksum."""
        values = (part for sample in data.samples for part in sample.content)
        return describe(len(data.samples), self.sample_unit, values)

    def job(self, train):
        """Return what a run must have in common with the one that it resumes, beside settings.

        `train` is `describe` of the training set.
        """
        return {'train_file': train}

    # -- 5. `loss` is called for each batch

    def objective(self, model, data):
        """Return what the training minimizes; by default the mean of `loss` over the examples.

        It is called once before the first update, so parameters may be set by `data`, too.
        """
        return mean_over_examples(lambda batch: self.loss(model, batch))

    def compare(self, model, train, dev):
        """Return the scores on `dev` of simpler models, by their names, before the first update.

        `train` and `dev` are the `Data` of two labelled sets.
        """
        return {}

    def schedule(self, num_steps):
        """Return the learning rate's schedule: number of the update -> rate."""
        settings, name = self.settings, self.settings.lr_schedule
        rates = settings.lr, settings.warmup_ratio, num_steps
        if name in SCHEDULE_NAMES:
            return get_schedule(name, *rates, first_step=1)
        if name != 'linear':  # as `finetune_schedule`
            return get_schedule(f'warmup_{name}', *rates, first_step=0)
        if settings.clip_each:
            return get_schedule('warmup_linear', *rates, first_step=None)  # the optimizer's
        return finetune_schedule(settings.lr, num_steps, settings.warmup_ratio)

    # -- 6. `score` is called after each epoch

    def forward(self, model, batch):
        """Return the outputs of a model without labels."""
        return model(*batch.inputs)

    def predict(self, forward, data, guard=None):
        """Return the outputs for a whole set, in the order of its samples.

        They are the input of `score`, `decode`, `write` and `analyze`; by default an array of shape
        (samples, ...). ``forward(batch)`` computes a batch's.
        """
        return predict(forward, data.loader, guard)

    def measure(self, evaluator, segment, guard=None):
        """Score the model on a set, and log the result.

        Parameters
        ----------
        evaluator : object
            ``evaluator.scores(segment, guard) -> (scores, samples per second)``.

        Returns
        -------
        (float, dict)
            The score that compares epochs, and the name of the set -> its scores and
            ``samples_per_second``.
        """
        (scores, speed), leading = evaluator.scores(segment, guard), self.score_name
        if leading in scores:  # what chooses the epoch comes first
            scores = {leading: scores[leading], **scores}
        logged = [name for name in scores if name not in self.unlogged]
        shown = ', '.join(f'{name} {short(scores[name])}' for name in logged)
        shown = f'{segment}: {shown} ({speed:.1f} samples/s)'
        logger.info('%s', shown, extra={'progress': False})
        report = {segment: {**scores, 'samples_per_second': speed}}
        if 'loss' in scores:
            scores['negative loss'] = -scores['loss']
        UnknownNameError.check('score', leading, scores)
        return scores[leading], report

    def finalize(self, model, report):
        """Make a model final whose epoch is the result; `report` has the epoch's scores by set."""

    @property
    def target(self):
        """Meaning of the outputs: by default `Classes`, or None without names of the classes."""
        return None if self.labels is None else Classes(tuple(self.labels), ('accuracy',))

    def numbers(self, rows):
        """Return the numbers of the rows' classes, an array."""
        labels = [row.label for row in rows]
        return np.array(labels) if self.target is None else self.target.array(labels)

    # -- 7. `write` is called for the best model

    def decode(self, data, outputs):
        """Return the model's prediction for each row; by default the class."""
        return self._target_of(outputs).decode(outputs)

    def _target_of(self, outputs):
        """Return the target; without names, classes are called by their numbers."""
        return self.target or Classes(tuple(range(outputs.shape[-1])), ('accuracy',))

    def as_given(self, label):
        """Return a label, or several, as the training rows had it: 0, not '0'."""
        if isinstance(label, (list, tuple)):
            return list(map(self.as_given, label))
        return self.given_labels.get(label, label) if isinstance(label, str) else label

    given_labels = {}  # label -> what the training rows have for it, where that isn't a text

    def analyze(self, data, outputs):
        """Return the `error_analysis` of a labelled set, or None; by default of classes."""
        target = self.target
        if target is None:
            return None
        labels = self.numbers(data.rows)
        guess, baseline = target.baseline(labels)
        losses = target.losses(labels, outputs).reshape(len(labels), -1)
        return error_analysis(
            list(map(str, data.rows)),
            [target.show(row.label) for row in data.rows],
            list(map(target.show, target.decode(outputs))),
            losses.mean(axis=-1),
            baseline,
            guess,
            None if target.takes_several else target.labels,
            **target.report(labels, outputs),
        )

    def as_saved(self, model):
        """Return a context in which the model has the parameters that are written to files."""
        return contextlib.nullcontext()

    def save(self, folder, model, tokenizer, **options):
        """Write the trained model, with options of `save_trained`."""
        save_trained(folder, model, tokenizer, **options)

    def results(self):
        """Return further entries of results.json."""
        return {'task': self.name}
