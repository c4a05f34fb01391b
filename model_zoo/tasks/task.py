"""The base of the tasks, which read, encode, score and write their rows; and scores."""

import collections
import contextlib
import copy
import functools
import itertools
import logging
import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..batches import BucketedLoader, Sample, SampleLoader
from ..checkpoint.readers import kept_sums
from ..errors import InputError, UnknownNameError, ZooError
from ..inference.pipeline_base import encode_items
from ..optimizer import finetune_schedule, get_schedule
from ..records import is_path, is_table_file, read_records
from ..training.job import describe
from ..training.objective import mean_over_examples, predict
from ..training.settings import FileSettings, FinetuneSettings, ScheduleSettings, SetSettings
from ..training.workers import Workers
from ..util.arrays import softmax
from ..util.reading import read_lines
from .scores import error_analysis
from .tables import read_texts, segment_files, write_table, write_texts
from .targets import Classes

__all__ = ['Data', 'Task', 'TextTask']

logger = logging.getLogger(__name__)


class Data(NamedTuple):
    """A set of a task: `rows` of `Task.read`, `samples` of `Task.encode`, and their loader."""

    rows: Sequence
    samples: Sequence
    loader: SampleLoader


def hold_out(rows, count, seed=0):
    """Split rows at random, but always in the same way: the remaining and the held-out rows."""
    return part_rows(rows, set(np.random.RandomState(seed).permutation(len(rows))[:count].tolist()))


def stratified(labels, texts, share, seed=0):
    """Return the numbers of the rows to hold out: a share of all rows, and of those of each label.

    The rows are sorted by their labels, the rarest first, and cut into as many parts as are held
    out. Of each part the row is taken whose labels lack most. So fewer rows than classes may be
    held out, which scikit-learn's splitters refuse. No label loses its last row, and equal texts
    stay on one side.

    Parameters
    ----------
    labels : sequence of tuple
        The labels of each row.
    texts : sequence
        Something hashable for each row.

    References
    ----------
    Sechidis et al., "On the Stratification of Multi-Label Data", 2011: the rarest label first.
    """
    rows, chosen, count = collections.defaultdict(list), set(), int(share * len(labels) + 0.5)
    for number in np.random.RandomState(seed).permutation(len(labels)).tolist():
        rows[texts[number]].append(number)
    names = {text: [label for number in rows[text] for label in labels[number]] for text in rows}
    left, due = collections.Counter(itertools.chain(*names.values())), collections.Counter()
    ranks = {label: (found, rank) for rank, (label, found) in enumerate(left.items())}
    order = sorted(rows, key=lambda text: sorted(map(ranks.get, names[text])))
    for part in range(count):
        pool = order[part * len(order) // count : (part + 1) * len(order) // count]
        for label in itertools.chain(*map(names.get, pool)):
            due[label] += share
        while len(chosen) <= part and pool:
            text = max(pool, key=lambda text: sum(due[label] - 0.5 for label in names[text]))
            pool.remove(text)
            lost = collections.Counter(names[text])
            if all(left[label] > lost[label] for label in lost):
                chosen.update(rows[text])
                left.subtract(lost)
                due.subtract(lost)
    return chosen


def part_rows(rows, chosen):
    """Return the rows without the chosen numbers, and the chosen ones; lists of the same kind."""
    parts = copy.copy(rows), copy.copy(rows)  # with their attributes, such as the file
    for part, is_chosen in zip(parts, (False, True)):
        part[:] = [row for number, row in enumerate(rows) if (number in chosen) == is_chosen]
    if not all(parts):
        problem = f'{len(chosen)} of {len(rows)} rows leaves nothing on one side'
        raise InputError(problem, field='dev_split')
    return parts


def check_room(max_length, special, texts=1):
    """Raise InputError if samples have no room for the special tokens and one of each text."""
    if max_length < special + texts:
        raise InputError(f'{max_length} must be at least {special + texts}', field='max_length')


def warn_if_cut(cut, count, unit, max_length):
    """Warn of the texts that were cut, if any."""
    if cut:
        shown = cut, count, unit, max_length
        logger.warning('%d of %d %s are longer than %d tokens and lose the rest', *shown)


def encode_rows(tokenizer, items, labels, max_length, unit='examples', several=True):
    """Return the samples of rows, encoded as by a pipeline; the log counts those that were cut.

    Parameters
    ----------
    items : sequence of list of (str, str or None)
        A row's text, and the second one of a pair, or `several` of them.
    """
    samples, cut = [], 0
    for encodings, label in zip(encode_items(tokenizer, items, max_length), labels):
        ids = tuple(encoding.input_ids for encoding in encodings)
        types = tuple(encoding.token_types for encoding in encodings)
        samples.append(Sample(ids, types, label) if several else Sample(ids[0], types[0], label))
        cut += any(encoding.truncated for encoding in encodings)
    warn_if_cut(cut, len(items), unit, max_length)
    return samples


class Task:
    """Base of the tasks that `model_zoo.finetune` and the fine-tuning commands train.

    To write a task, define a class of settings and five methods: `read`, `encode`, `loss`, `score`
    and `write`; for scores of classes the last three needn't be overridden. All other methods have
    defaults; they stand below in the order in which a training calls them.

    Parameters
    ----------
    settings : Settings
        An object of `settings_class`. It is never changed: a task that computes a setting replaces
        its `settings` by a copy.

    Attributes
    ----------
    name : str
        Used in the names of the log and of parameter files.
    head : str or type
        The family's task that selects the head ('classification', 'tagging', 'question_answering',
        'multiple_choice', 'sentence_embedding'), or a block's class.
    metric : str
        The score of `score` that compares epochs; higher is better.
    predicted : tuple of str, or None
        Segments whose predictions are written, or None.
    use : str or None
        The trained model's task in `model_zoo.pipeline`.
    command, call : str
        A command that uses the trained model, with ``{folder}`` in its place, and an argument of
        its pipeline in Python; ``{mask}`` is the model's mask token. Empty if there is none.
    labels : list of str or None
        Names of the classes, in the order of their numbers.
    family : str
        The family whose flags select the model.
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
    lowers : bool or None
        Whether texts are lower-cased; None: as the vocabulary says.
    has_own_head : bool
        Whether the head is random in a pretrained model, as a classifier's is.
    draws_updates : bool
        Whether a loader draws the samples of an update for all devices together.
    located : Located or None
        The model's family, files and configuration; None for a block in memory.
    base : str
        Name of the model that the training begins with.
    fitted : str or None
        What `objective` has fitted, if the training is no more than that.
    own_length : int or None
        Most tokens of a text in the use of the model, beside what block and tokenizer say.
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
    predicted, family, in_python = ('test',), 'bert', {}
    has_own_head, draws_updates, command, call = True, False, '', ''
    labels = lowers = located = base = output_dir = fitted = own_length = None

    def __init__(self, settings):
        self.settings, self.workers = settings, Workers()

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
    def prefix(self):
        """Prefix of the name in the names of files of parameters."""
        return self.family or ''

    @property
    def dev_share(self):
        """The share of the training set's rows that is the dev set, or None."""
        return self.settings.dev_split if isinstance(self.settings, SetSettings) else None

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
        """Name of the score that compares epochs, of which more is better."""
        settings = self.settings
        name = (isinstance(settings, FinetuneSettings) and settings.best_by) or self.metric
        return 'negative loss' if name == 'loss' else name

    # -- 1. the sets and the model are located

    def locate(self, given=None):
        """Check the settings, and return where each set's rows are read from, by segment.

        `given` has the caller's sets by segment; None: the settings name them.
        """
        if given is not None:
            return given
        settings = self.settings
        files = segment_files(settings, self.files, self.dev_share)
        if settings.only_inference and self.dev_share is None:
            files.pop('train', None)
        segment = 'dev' if settings.only_inference else 'train'
        if segment not in files and not (settings.only_inference and files):
            folder = ', or `data_dir`' if isinstance(settings, FileSettings) else ''
            raise InputError(f'there is no {segment} set: give `{segment}_file`{folder}')
        return files

    def configure(self, located):
        """Learn what the model's configuration says, such as its labels, before rows are read.

        `located` is None for a block in memory.
        """
        self.located = located

    # -- 2. `read` is called for each set

    def split(self, rows, share):
        """Return rows to train on, and held-out rows: always the same for a seed."""
        return hold_out(rows, max(1, round(share * len(rows))), self.settings.seed)

    def prepare(self, rows):
        """Learn what the model needs, such as `labels`, from the rows of all sets by segment."""

    def resume(self, job):
        """Restore the order of the labels from the job of the run that is resumed."""
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
            return choice.build(self.head, contexts, **options)
        model, tokenizer = choice.open_task(self.head, contexts, self.trains, **options)
        self.settings = self.settings.fit_length('max_length', model.context_length)
        if choice.is_folder and not self.trains and 'max_length' not in self.settings.given:
            lengths = self.own_length, model.context_length, tokenizer.max_len
            self.settings = self.settings.with_defaults(max_length=min(filter(None, lengths)))
        return model, tokenizer

    def setup(self, model, tokenizer):
        """Learn from the opened model; returns the block to train, which may be around it."""
        return model

    # -- 4. `encode` is called for each set

    def load(self, segment, rows, tokenizer, contexts, accumulate, **options):
        """Return the `Data` of a set: by default its samples of `encode` in a `BucketedLoader`.

        An update takes `accumulate` batches, on all devices together; `options` are the loader's.
        """
        settings, samples = self.settings, self.encode(rows, tokenizer)
        options = {'pad_val': tokenizer.pad_token_id or 0, **options}
        if segment == 'train':
            options.update(shuffle=True, workers=self.workers)
            options.update(batch_size=settings.batch_size, batch_tokens=settings.batch_tokens)
        else:
            options['batch_size'] = settings.dev_batch_size
        if isinstance(settings, FinetuneSettings):
            options['round_to'] = settings.round_to
        loader = BucketedLoader(samples, seed=settings.seed, ctx=contexts, **options)
        return Data(rows, samples, loader)

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

    def schedule(self, num_steps):
        """Return the learning rate's schedule: number of the update -> rate."""
        settings = self.settings
        if isinstance(settings, ScheduleSettings):
            name, first_step = settings.lr_schedule, 1
        elif isinstance(settings, FinetuneSettings) and settings.lr_schedule != 'linear':
            name, first_step = f'warmup_{settings.lr_schedule}', 0  # as `finetune_schedule`
        elif settings.clip_each:
            name, first_step = 'warmup_linear', None  # the optimizer's
        else:
            return finetune_schedule(settings.lr, num_steps, settings.warmup_ratio)
        rates = settings.lr, settings.warmup_ratio, num_steps
        return get_schedule(name, *rates, first_step=first_step)

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

    def evaluate(self, evaluator, segments, guard=None):
        """Score the model on sets, and log the results.

        Parameters
        ----------
        evaluator : object
            ``evaluator.measure(segment, guard) -> (scores, samples per second)``.

        Returns
        -------
        (float, dict)
            The mean of `score_name` over the sets (0 if there are none), and segment -> its scores
            and ``samples_per_second``.
        """
        report, primary, name = {}, [], self.score_name
        for segment in segments:
            scores, speed = evaluator.measure(segment, guard)
            shown = ', '.join(f'{name} {value:.4f}' for name, value in scores.items())
            logger.info('%s: %s (%.1f samples/s)', segment, shown, speed)
            report[segment] = {**scores, 'samples_per_second': speed}
            if 'loss' in scores:
                scores = {**scores, 'negative loss': -scores['loss']}
            UnknownNameError.check('score', name, scores)
            primary.append(scores[name])
        return float(np.mean(primary)) if primary else 0.0, report

    def settle(self, report):
        """Learn from the scores, by set, of the epoch whose model is the result."""

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

    def fold(self, model):
        """Make the model's outputs final, if a training has them in another unit."""

    def stored(self, model):
        """Return a context in which the model has the parameters that files get."""
        return contextlib.nullcontext()

    def save(self, folder, model, tokenizer, **options):
        """Write the trained model, with options of `save_trained`."""
        save_trained(folder, model, tokenizer, **options)

    def results(self):
        """Return further entries of results.json."""
        return {'task': self.name}


class TextTask(Task):
    """Base of the tasks that learn from a text, which stays in its files; nothing is predicted.

    A subclass has ``measure(evaluator, segment, guard)``, which returns the score of a set, for the
    comparison of epochs, and its figures by its name.
    """

    predicted = None
    has_own_head = False

    @functools.cached_property
    def rows_folder(self):
        """A folder for copies of texts, which goes with the task."""
        self._temporary = tempfile.TemporaryDirectory()
        return self._temporary.name

    def text_file(self, source, segment, between='\n'):
        """Return the path of a file in UTF-8 with the texts of a set: its own, or a copy."""
        column, encoding = self.settings.text_column, self.settings.encoding
        is_text = is_path(source) and not is_table_file(source)
        if is_text and encoding is None:
            return os.fspath(source)
        if is_text:
            texts, between = (line for _, line in read_lines(source, encoding)), ''
        else:
            records = read_records(source, {1: ('text',)}, segment, encoding=encoding)
            texts = read_texts(records, column)
        return write_texts(self.rows_folder, segment, texts, between)

    def read(self, source, segment):
        return source

    def is_labelled(self, rows):
        return True

    def evaluate(self, evaluator, segments, guard=None):
        score, report = 0.0, {}
        for segment in segments:
            value, part = self.measure(evaluator, segment, guard)
            score, report = score if report else value, {**report, **part}
        return score, report

    def predict(self, forward, data, guard=None):
        return None

    def decode(self, data, outputs):
        return None


def save_trained(folder, model, tokenizer, format=None):
    """Write a trained model to a folder, in a format of ``save_pretrained``.

    By default transformers opens it, if the model is one of its kinds; otherwise the format is this
    project's.
    """
    try:
        model.save_pretrained(folder, tokenizer, format=format or 'huggingface')
    except ZooError as error:
        if format is not None or isinstance(error.__cause__, OSError):  # nothing can be written
            raise
        logger.warning('%s: only this project opens %s', error, folder)
        model.save_pretrained(folder, tokenizer)
        return
    older = os.path.join(folder, 'model.params')
    if format is None and os.path.isfile(older):  # which version 0.3 wrote, and is read first
        with kept_sums(folder):
            os.remove(older)
