"""The base of the tasks, which read, encode, score and write their rows; and scores."""

import collections
import copy
import dataclasses
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
from ..optimizer import finetune_schedule, get_schedule
from ..records import is_table
from ..training.job import describe
from ..training.objective import mean_over_examples, predict
from ..training.settings import FinetuneSettings, ScheduleSettings, SetSettings
from ..training.workers import Workers
from ..util.arrays import softmax
from ..util.remote import is_file
from .tables import segment_files, text_file, write_table

__all__ = [
    'Data',
    'Examination',
    'Task',
    'TextTask',
    'check_finite',
    'check_room',
    'class_report',
    'class_scores',
    'cross_entropies',
    'encode_several',
    'hold_out',
    'mean_cross_entropy',
    'part_rows',
    'save_trained',
    'squeeze',
    'usual_row',
    'warn_if_cut',
]

logger = logging.getLogger(__name__)


class Data(NamedTuple):
    """A set of a task: `rows` of `Task.read`, `samples` of `Task.encode`, and their loader."""

    rows: Sequence
    samples: Sequence
    loader: SampleLoader


def hold_out(rows, count, seed=0):
    """Split rows at random, but always in the same way: the remaining and the held-out rows."""
    return part_rows(rows, set(np.random.RandomState(seed).permutation(len(rows))[:count].tolist()))


def part_rows(rows, chosen):
    """Return the rows without the chosen numbers, and the chosen ones; lists of the same kind."""
    parts = copy.copy(rows), copy.copy(rows)  # with their attributes, such as the file
    for part, is_chosen in zip(parts, (False, True)):
        part[:] = [row for number, row in enumerate(rows) if (number in chosen) == is_chosen]
    if not all(parts):
        raise InputError(
            f'{len(chosen)} of {len(rows)} rows leaves nothing on one side', field='dev_split'
        )
    return parts


def check_room(max_length, special, texts=1):
    """Raise InputError if samples have no room for the special tokens and one of each text."""
    if max_length < special + texts:
        raise InputError(
            f'a length of {max_length} is too small: {special} special tokens and one of each text '
            f'make {special + texts}'
        )


def warn_if_cut(cut, count, unit, max_length):
    """Warn of the texts that were cut, if any."""
    if cut:
        logger.warning(
            '%d of %d %s are longer than %d tokens and lose the rest', cut, count, unit, max_length
        )


def encode_several(tokenizer, examples, labels, max_length):
    """Samples of several rows, and how many rows of each lost tokens.

    Parameters
    ----------
    examples : sequence of list of (str, str or None)
        A row's text, and the second one of a pair.
    """
    pairs = list(itertools.chain.from_iterable(examples))
    encodings, samples, cut = tokenizer.encode_pairs(pairs, max_length), [], []
    for example, label in zip(examples, labels):
        rows = list(itertools.islice(encodings, len(example)))
        ids = tuple(row.input_ids for row in rows)
        samples.append(Sample(ids, tuple(row.token_types for row in rows), label))
        cut.append(sum(row.truncated > 0 for row in rows))
    return samples, cut


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
    most_lost : float
        How much of `metric` INT8 may cost.
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
    predicted, family, in_python, most_lost = ('test',), 'bert', {}, 0.005
    has_own_head, draws_updates, command, call = True, False, '', ''
    labels = lowers = located = base = output_dir = fitted = None

    def __init__(self, settings):
        self.settings, self.workers = settings, Workers()

    # -- the five methods of a task

    def read(self, source, segment):
        """Return the rows of a set: 'train', 'dev' or 'test'.

        `source` is a path, or the caller's data. Rows are what the other methods expect; by default
        they have an attribute ``label``.
        """
        raise NotImplementedError(f'{type(self).__name__} needs a method `read`')

    def encode(self, rows, tokenizer):
        """Return the samples of rows: a sequence of `Sample`."""
        raise NotImplementedError(f'{type(self).__name__} needs a method `encode`')

    def loss(self, model, batch):
        """Return the mean loss of a batch, an NDArray of shape (1,)."""
        return model(*batch.inputs, batch.labels)

    def score(self, data, outputs):
        """Return the scores of a set, floats by name; by default accuracy and loss of classes.

        `data` is the set's `Data`, and `outputs` what `predict` returned.
        """
        labels = self.numbers(data.rows)
        accuracy = float((outputs.argmax(axis=-1) == labels).mean())
        return {'accuracy': accuracy, 'loss': mean_cross_entropy(labels, outputs)}

    def write(self, folder, segment, data, outputs):
        """Write the predictions for a set; returns the names of the files.

        By default ``SEGMENT_predictions.tsv``: one line per row, with its class and probability.
        """
        name, probabilities = f'{segment}_predictions.tsv', softmax(outputs).max(axis=-1)
        rows = zip(map(str, self.decode(data, outputs)), map('{:.6f}'.format, probabilities))
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
        files = segment_files(settings, lambda path: is_file(path) or is_table(path), **self.files)
        if settings.only_inference:
            files.pop('train', None)
        segment = 'dev' if settings.only_inference else 'train'
        if segment not in files and not (settings.only_inference and files):
            raise InputError(f'there is no {segment} set: give `{segment}_file`, or `data_dir`')
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
        return Data(
            rows, samples, BucketedLoader(samples, seed=settings.seed, ctx=contexts, **options)
        )

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
        elif settings.as_bertadam:
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

        They are the input of `score`, `decode`, `write` and `examine`; by default an array of shape
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

    def numbers(self, rows):
        """Return the numbers of the rows' classes, an array."""
        if self.labels is None:
            return np.array([row.label for row in rows])
        known = {label: number for number, label in enumerate(self.labels)}
        return np.array([known[row.label] for row in rows])

    # -- 7. `write` is called for the best model

    def decode(self, data, outputs):
        """Return the model's prediction for each row; by default the class."""
        numbers = outputs.argmax(axis=-1).tolist()
        return numbers if self.labels is None else [self.labels[number] for number in numbers]

    given_labels = {}  # label -> what the training rows have for it, where that isn't a text

    def example(self, rows):
        """Return an example of the rows of a dev set, as a model card's ``widget``, or None."""

    def examine(self, segment, data, outputs):
        """Return the `Examination` of a labelled set, or None; by default of classes."""
        if self.labels is None:
            return None
        labels, predictions = self.numbers(data.rows), outputs.argmax(axis=-1)
        guess = int(np.bincount(labels).argmax())
        return Examination(
            segment,
            list(map(str, data.rows)),
            [self.labels[number] for number in labels],
            [self.labels[number] for number in predictions],
            cross_entropies(labels, outputs),
            {'accuracy': float((labels == guess).mean())},
            self.labels[guess],
            self.labels,
            class_report('Scores per class', self.labels, labels, predictions, guess),
        )

    def save(self, folder, model, tokenizer, **options):
        """Write the trained model, with options of `save_trained`."""
        save_trained(folder, model, tokenizer, **options)

    def results(self):
        """Return further entries of results.json."""
        return {'task': self.name}


class TextTask(Task):
    """Base of the tasks that learn from a text, which stays in its files; nothing is predicted."""

    predicted = None
    has_own_head = False

    @functools.cached_property
    def rows_folder(self):
        """A folder for copies of texts, which goes with the task."""
        self._temporary = tempfile.TemporaryDirectory()
        return self._temporary.name

    def text_file(self, source, segment, between='\n'):
        """Return the path of a file in UTF-8 with the texts of a set."""
        settings = self.settings
        return text_file(
            source, segment, self.rows_folder, between, settings.text_column, settings.encoding
        )

    def read(self, source, segment):
        return source

    def is_labelled(self, rows):
        return True

    def predict(self, forward, data, guard=None):
        return None

    def decode(self, data, outputs):
        return None

    def examine(self, segment, data, outputs):
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


# -- scores, and what a trained model gets wrong ---------------------------------------------------


def mean_cross_entropy(labels, outputs):
    """The mean loss of classes' unnormalized scores, (samples, classes), for labels (samples,)."""
    return float(np.mean(cross_entropies(labels, outputs)))


def check_finite(outputs, segment='the set'):
    """Raise InputError if a model's outputs on a data set aren't finite."""
    if not np.isfinite(outputs).all():
        raise InputError(
            f"the model's outputs on {segment} are not finite: its training has diverged; try a "
            'lower learning rate'
        )


MOST_CHARACTERS = 300  # of a text


@dataclasses.dataclass
class Examination:
    """The answers of a model to a dev set, example by example.

    Parameters
    ----------
    more : dict
        Further entries of the report: ``tables``, title -> list of dicts with the same keys;
        ``headline``, a dict with ``name``, ``value`` and ``baseline`` of the score to show first;
        and ``never_predicted``, names of classes.
    """

    segment: str
    texts: Sequence[str]
    labels: Sequence[str]
    predictions: Sequence[str]
    losses: Sequence[float]
    baseline: dict[str, float] = dataclasses.field(default_factory=dict)
    guess: str | None = None
    classes: Sequence[str] | None = None
    more: dict = dataclasses.field(default_factory=dict)

    def confusion(self):
        """The confusion matrix: rows are labels, columns predictions; None without `classes`."""
        if self.classes is None:
            return None
        counts = collections.Counter(zip(self.labels, self.predictions))
        return [[counts[label, predicted] for predicted in self.classes] for label in self.classes]

    def worst(self, count=10):
        """The mistakes with the highest losses."""
        wrong = [n for n, pair in enumerate(zip(self.labels, self.predictions)) if len({*pair}) > 1]
        wrong.sort(key=lambda number: -self.losses[number])
        return [
            {
                'text': squeeze(self.texts[n]),
                'label': self.labels[n],
                'prediction': self.predictions[n],
                'loss': float(self.losses[n]),
            }
            for n in wrong[:count]
        ]

    def to_dict(self) -> dict[str, list]:
        """Plain JSON: guess, baseline, classes, confusion and mistakes."""
        return {
            'examples': len(self.labels),
            'guess': self.guess,
            'baseline': self.baseline,
            'classes': None if self.classes is None else list(self.classes),
            'confusion': self.confusion(),
            'mistakes': self.worst(),
            **self.more,
        }


def usual_row(rows, text_of):
    """Return an example for a person: of the first rows, the one that is about a line long."""
    return min(rows[:50], key=lambda row: abs(len(text_of(row)) - 80))


def class_report(title, classes, labels, predictions, guess=None):
    """Return the scores of each class, as `more` of an `Examination`.

    `guess` is the number of the most frequent class. With it, macro F1 is the headline if that
    class has more than twice as many examples as the rarest.
    """
    rows = class_scores(classes, labels, predictions)
    counts = [row['examples'] for row in rows]
    missing = [row['label'] for row in rows if row['examples'] and not row['predicted']]
    report = {'tables': {title: rows}, 'never_predicted': missing}
    if guess is not None and max(counts) > 2 * min(counts):
        guessed = class_scores(classes, labels, np.full_like(labels, guess))
        value, baseline = (float(np.mean([row['f1'] for row in part])) for part in (rows, guessed))
        report['headline'] = {'name': 'macro F1', 'value': value, 'baseline': baseline}
    return report


def class_scores(classes, labels, predictions):
    """Return precision, recall, F1 and counts of each class; 0 where they aren't defined.

    Parameters
    ----------
    labels, predictions : numpy.ndarray, shape (samples,) or (samples, classes)
        Numbers of the classes; or 1 where a sample has the class, else 0.
    """
    from sklearn.metrics import precision_recall_fscore_support

    columns = precision_recall_fscore_support(
        labels, predictions, labels=range(len(classes)), zero_division=0
    )
    has_class = predictions if predictions.ndim == 2 else np.eye(len(classes))[predictions]
    return [
        {
            'label': label,
            'precision': float(precision),
            'recall': float(recall),
            'f1': float(f1),
            'examples': int(count),
            'predicted': int(predicted),
        }
        for label, precision, recall, f1, count, predicted in zip(
            classes, *columns, has_class.sum(axis=0)
        )
    ]


def squeeze(text, most=MOST_CHARACTERS):
    """A text in one line, cut to a number of characters."""
    text = ' '.join(text.split()).encode('utf-8', 'replace').decode('utf-8')  # no surrogates
    return text if len(text) <= most else f'{text[: most - 1]}…'


def cross_entropies(labels, outputs):
    """The loss of each example, (samples,) float64, from unnormalized scores (samples, classes)."""
    from scipy.special import log_softmax

    outputs = outputs.astype(np.float64)
    return -log_softmax(outputs, axis=-1)[np.arange(len(labels)), labels]
