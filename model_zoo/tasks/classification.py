"""The task of classification and regression: one of the named tasks, or the user's own.

``get_task`` -> ``read_examples`` -> ``ClassifierFeatures`` -> ``BucketedLoader`` -> the model ->
``compute_metrics``. Metrics are those of scikit-learn and SciPy; in all of them more is better.
Degenerate input has a defined value and gives no warning: F1 without a true or predicted positive,
and Matthews, Pearson and Spearman where either side is constant (or has one sample), are 0.
"""

import copy
import dataclasses
import functools
import itertools
import logging
import os
import re
import types
import warnings

import mxnet as mx
import numpy as np

from ..batches import Sample
from ..errors import InputError, UnknownNameError
from ..layers import losses
from ..opening import open_model
from ..pretrained import names_files
from ..pretrained.sentence_modules import write_sentence_modules
from ..records import (
    PAIRS,
    TEXTS,
    choose_columns,
    find_column,
    find_splits,
    is_path,
    is_table,
    read_records,
)
from ..registry import family_of_class
from ..training.job import describe_model
from ..training.objective import Objective, mean_over_examples
from ..util.arrays import sigmoid, softmax
from .classification_data import (
    custom_task,
    field_text,
    find_file,
    get_task,
    has_segment,
    infer_labels,
    list_tasks,
    read_examples,
    read_file,
)
from .labels import adopt_labels, name_labels
from .linear import fit_head
from .settings import ClassificationSettings
from .tables import check_files, write_table
from .task import (
    Examination,
    Task,
    check_finite,
    check_room,
    class_scores,
    mean_cross_entropy,
    tell_cut,
)

__all__ = [
    'METRICS',
    'ClassificationSettings',
    'ClassificationTask',
    'ClassifierFeatures',
    'Distillation',
    'Teacher',
    'check_task_choice',
    'compute_baseline',
    'compute_metrics',
    'make_student',
    'make_task',
    'teacher_layers',
    'write_class_probabilities',
    'write_predictions',
]

logger = logging.getLogger(__name__)


class ClassifierFeatures:
    """Turns a task's examples into samples.

    These are ``[CLS] a [SEP]``, or ``[CLS] a [SEP] b [SEP]`` for a pair whose second text isn't
    empty; token types are 0 up to the first ``[SEP]``, and 1 after it.
    """

    def __init__(self, tokenizer, task, max_len=128):
        check_room(max_len, *((3, 2) if task.is_pair else (2, 1)))
        self.tokenizer = tokenizer
        self.task = task
        self.max_len = max_len

    def __call__(self, examples):
        """Encode `examples`, and log how many were truncated."""
        pairs = [(example.text_a, example.text_b) for example in examples]
        features, cut = [], 0
        for example, row in zip(examples, self.tokenizer.encode_pairs(pairs, self.max_len)):
            label = None if example.label is None else self.task.label_id(example.label)
            features.append(Sample(row.input_ids, row.token_types, label))
            cut += row.truncated > 0
        tell_cut(cut, len(examples), f'examples of {self.task.name}', self.max_len)
        return features


def accuracy(labels, predictions):
    """Share of the predictions that equal their labels."""
    return float(np.mean(labels == predictions))


def f1(labels, predictions, positive=1):
    """F1 of the class with the id `positive`, which is '1' for GLUE's MRPC and QQP."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels == positive, predictions == positive, zero_division=0))


def matthews(labels, predictions):
    """Matthews' correlation coefficient, over any number of classes."""
    from sklearn.metrics import matthews_corrcoef

    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


def pearson(labels, predictions):
    """Pearson's correlation coefficient."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, labels, predictions)


def spearman(labels, predictions):
    """Spearman's rank correlation coefficient."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, labels, predictions)


def _correlation(function, labels, predictions):
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of nearly constant input
        value = float(function(labels, predictions)[0])
    return value if np.isfinite(value) else 0.0


#: name of a metric -> its function
METRICS = {metric.__name__: metric for metric in (accuracy, f1, matthews, pearson, spearman)}


def compute_metrics(task, labels, outputs):
    """The task's metrics.

    Parameters
    ----------
    labels : array-like, shape (num_samples,)
        Ids of the classes, or the numbers of a regression.
    outputs : array-like, shape (num_samples,) or (num_samples, num_labels)
        The model's outputs: logits or probabilities of the classes, or their predicted ids; for
        regression the numbers, also as (num_samples, 1).

    Returns
    -------
    dict of str to float
        In the order of ``task.metrics``; ``task.primary_metric`` is the first.
    """
    labels, outputs = np.asarray(labels), np.asarray(outputs)
    if task.multi_label:
        return _multi_label_metrics(labels, outputs)
    if task.regression:
        labels, outputs = labels.astype(np.float64), outputs.astype(np.float64)
        labels, predictions = labels.reshape(-1), outputs.reshape(-1)
    else:
        labels = labels.reshape(-1).astype(np.int64)
        predictions = outputs.argmax(axis=-1) if outputs.ndim == 2 else outputs.astype(np.int64)
    if len(labels) == 0:
        raise InputError(f'no samples to evaluate {task.name} on')
    if labels.shape != predictions.shape:
        raise InputError(f'{len(labels)} labels for outputs of shape {outputs.shape}')
    check_finite(outputs)
    values = {}
    for name in task.metrics:
        UnknownNameError.check('metric', name, METRICS)
        options = {'positive': task.positive_id} if name == 'f1' else {}
        values[name] = METRICS[name](labels, predictions, **options)
    return values


def _multi_label_metrics(labels, outputs):
    """F1 over the classes and over all answers, and how many texts have all labels right."""
    from sklearn.metrics import f1_score

    check_finite(outputs)
    guessed = outputs > 0
    return {
        'macro_f1': float(f1_score(labels, guessed, average='macro', zero_division=0)),
        'micro_f1': float(f1_score(labels, guessed, average='micro', zero_division=0)),
        'accuracy': float((guessed == labels).all(axis=-1).mean()),
    }


def _probabilities(task, outputs):
    """Of the classes; with several labels a text each has its own."""
    return (sigmoid if task.multi_label else softmax)(outputs)


def compute_baseline(task, labels):
    """The task's metrics for always predicting the most frequent label, or the mean number."""
    labels = np.asarray(labels)
    guess = float(np.mean(labels)) if task.regression else int(np.bincount(labels).argmax())
    return guess, compute_metrics(task, labels, np.full_like(labels, guess))


def write_predictions(folder, task, segment, examples, outputs):
    """Write predictions in GLUE's format, and the probabilities (for regression, the outputs).

    Parameters
    ----------
    outputs : numpy.ndarray, shape (number of examples, num_labels)
    """
    if task.regression:
        predictions, header, rows = outputs.reshape(-1), ['output'], outputs.reshape(-1, 1)
    else:
        predictions = outputs > 0 if task.multi_label else outputs.argmax(axis=-1)
        header, rows = task.require_labels(), _probabilities(task, outputs)
    name = task.submission_file(segment)
    beside, guids = name.replace('.tsv', '_probabilities.tsv'), [row.guid for row in examples]
    answers = zip(guids, map(task.format_prediction, predictions))
    write_table(os.path.join(folder, name), [('index', 'prediction'), *answers])
    shares = ((guid, *map('{:.6f}'.format, row)) for guid, row in zip(guids, rows))
    write_table(os.path.join(folder, beside), [('index', *header), *shares])
    return [name, beside]


def write_class_probabilities(folder, task, segment, examples, outputs):
    """Write the file of Google's ``run_classifier.py --do_predict``, and call `write_predictions`.

    ``test_results.tsv`` has no header, a line per sample in the file's order, and a column per
    class with its probability, or one column with a regression's number.
    """
    names = write_predictions(folder, task, segment, examples, outputs)
    rows = outputs.astype(np.float64) if task.regression else _probabilities(task, outputs)
    name, rows = f'{segment}_results.tsv', rows.reshape(len(rows), -1)
    lines = (map('{:.9g}'.format, row) for row in rows)
    write_table(os.path.join(folder, name), lines)
    return [name, *names]


_LAYER = re.compile(r'(encoder\.layers\.)(\d+)(?=\.)')


def teacher_layers(student, teacher, layers=None):
    """The teacher's layers that a student's layers learn from.

    Parameters
    ----------
    layers : sequence of int, optional
        One for each layer of the student, from 1; default: evenly spaced, up to the teacher's last.
    """
    if student > teacher:
        raise InputError(f'a student of {student} layers has more than its teacher, {teacher}')
    if layers is None:
        return tuple((number + 1) * teacher // student for number in range(student))
    layers = tuple(layers)
    if len(layers) != student or not all(1 <= layer <= teacher for layer in layers):
        raise InputError(
            f"the teacher's layers {' '.join(map(str, layers))}: give {student} numbers, one for "
            f'each layer of the student, from 1 to {teacher}'
        )
    return layers


def make_student(teacher, layers, ctx=None):
    """A smaller model that starts from layers of its teacher."""
    config = copy.deepcopy(teacher.config)
    config.num_hidden_layers = len(layers)
    student = type(teacher)(config, dropout=teacher.dropout_rate)
    student.initialize(ctx=ctx or mx.cpu())
    theirs = teacher._collect_params_with_prefix()
    for name, parameter in student._collect_params_with_prefix().items():
        name = _LAYER.sub(lambda match: f'{match[1]}{layers[int(match[2])] - 1}', name)
        parameter.set_data(theirs[name].data(theirs[name].list_ctx()[0]))
    student.hybridize(static_alloc=True)
    return student


@dataclasses.dataclass
class Distillation:
    """What a classifier learns from its teacher.

    The objective is ``(1 - weight)`` times the loss of the labels, ``weight`` times that of the
    teacher's scores (see `model_zoo.layers.losses.distillation_loss`; for regression the mean
    squared error), and ``states_weight`` times the mean squared error of the layers' states.

    Parameters
    ----------
    student, teacher : BertForSequenceClassification
        Or a variant's. Only the student is trained. From then on, their backbones return the states
        of all layers.
    """

    student: mx.gluon.Block
    teacher: mx.gluon.Block
    layers: tuple[int, ...] | None = None
    temperature: float = 2.0
    weight: float = 0.5
    states_weight: float = 1.0

    def __post_init__(self):
        small, large = self.student.config, self.teacher.config
        self.layers = teacher_layers(small.num_hidden_layers, large.num_hidden_layers, self.layers)
        if self.student.num_labels != self.teacher.num_labels:
            raise InputError(
                f'the student has {self.student.num_labels} labels, and its teacher '
                f'{self.teacher.num_labels}'
            )
        if small.vocab_size != large.vocab_size:
            raise InputError(
                f'the student has {small.vocab_size} tokens, and its teacher {large.vocab_size}: '
                'both must have the same vocabulary'
            )
        if self.states_weight and small.hidden_size != large.hidden_size:
            raise InputError(
                f'the states of the student have {small.hidden_size} units, and those of its '
                f'teacher {large.hidden_size}: they can be compared only if these are the same'
            )
        for model in (self.student, self.teacher):
            model.base.output_all_encodings = True

    def losses(self, batch):
        """The losses of states, teacher's scores and labels, weighted.

        Returns
        -------
        list of NDArray, shape (1,)
        """
        with mx.autograd.pause(train_mode=False):
            their_scores, their_states = _run(self.teacher, batch)
        scores, states = _run(self.student, batch)
        error = mx.nd.zeros((1,), ctx=scores.context)
        if self.states_weight:
            error = mx.nd.add_n(
                *[
                    losses.states_error(mx.nd, state, their_states[layer - 1], batch.valid_length)
                    for state, layer in zip(states, self.layers)
                ]
            ) / len(self.layers)
        if self.student.num_labels == 1:
            of_teacher = losses.mean_squared_error(mx.nd, scores, their_scores)
            of_labels = losses.mean_squared_error(mx.nd, scores, batch.labels)
        else:
            of_teacher = losses.distillation_loss(mx.nd, scores, their_scores, self.temperature)
            of_labels = losses.cross_entropy(mx.nd, scores, batch.labels)
        return [self.states_weight * error, self.weight * of_teacher, (1 - self.weight) * of_labels]

    def objective(self):
        """For `TrainingLoop`."""

        def counts(batch):
            size = len(batch.indices)
            return float(batch.valid_length.sum().asscalar()), size, size

        return Objective(self.losses, counts, ('states', 'teacher', 'labels'))


def _run(model, batch):
    """The scores of a batch, and the states of all layers."""
    encoded = model.encode(*batch.inputs)
    return model.classifier(model._pool(mx.nd, encoded)), encoded.states


_SEGMENTS = ('train', 'dev', 'test')
_CUSTOM = (
    'text_columns',
    'label_column',
    'header',
    'regression',
    'multi_label',
    'dev_split',
    'skip_empty',
)
#: usual names of the column of the label
_LABELS = ('label', 'labels', 'score', 'gold_label', 'class', 'category', 'target', 'sentiment')


class Teacher:
    """The model that a student learns from."""

    def __init__(self, settings, task, ctx):
        self._settings, self._ctx = settings, ctx
        self.block, self.tokenizer, _ = open_model(
            settings.teacher, 'classification', ctx=ctx, num_labels=task.num_labels
        )
        if settings.dtype != 'float32':
            self.block.cast(settings.dtype)
        self.block.hybridize(static_alloc=True)

    def student(self):
        """The model that starts from layers of the teacher, and its tokenizer."""
        settings = self._settings
        layers = teacher_layers(
            settings.student_layers, self.block.config.num_hidden_layers, settings.teacher_layers
        )
        student = make_student(self.block, layers, self._ctx)
        if settings.dtype != 'float32':
            student.cast(settings.dtype)
        return student, self.tokenizer

    def objective(self, student):
        """What the student's training minimizes."""
        settings = self._settings
        return Distillation(
            student,
            self.block,
            settings.teacher_layers,
            settings.temperature,
            settings.teacher_weight,
            settings.states_weight,
        ).objective()


class ClassificationTask(Task):
    """Classes or numbers for texts and pairs of texts.

    Rows in memory are (text, label), (text, text, label), or without the label; or dicts.
    """

    settings_class, in_python = ClassificationSettings, {'task_name': 'custom'}
    use = 'text-classification'
    head, length = 'classification', 'max_len'

    def __init__(self, settings, record=None):
        super().__init__(settings)
        self.record = record

    name = property(lambda self: self.record.name)
    trained_for = name
    metric = property(lambda self: self.record.primary_metric)
    labels = property(lambda self: None if self.record.regression else self.record.labels)

    @property
    def title(self):
        if not self.record.is_custom:
            return self.name
        source = self.record.files.get('train')
        return os.path.basename(source.rstrip('/')) if is_path(source) else 'custom data'

    @property
    def takes_pairs(self):
        return self.record.is_pair

    lowers = property(lambda self: self.settings.do_lower_case)
    _given, _teacher = types.MappingProxyType({}), None

    def locate(self, given=None):
        self._keep(given or {})
        settings = self.settings
        check_task_choice(settings, not settings.only_inference, self._given)
        if settings.task_name is None:
            raise InputError('give `train_file`, your own data, or `task_name`, a known task')
        if settings.teacher is not None and not names_files(settings.teacher):
            raise InputError(
                f'{settings.teacher!r}: there is no folder of a model', field='teacher'
            )
        self.record = make_task(settings, not settings.only_inference, self._given)
        if settings.method == 'linear':  # the head is fitted: all else is as after a training
            self.settings = settings.copy(training_steps=1)
        return self._sources()

    def configure(self, located):
        settings, self._usual_labels = self.settings, self.labels
        if located is None:
            return  # a block's outputs have the order of the training set's labels
        deployed = f'{settings.model_prefix}-0000.params' if settings.deploy else None
        self.record = adopt_labels(
            self.record,
            located,
            settings.labels,
            parameters=deployed or settings.model_parameters,
            teacher=settings.teacher,
            trains=not settings.only_inference,
            order=settings.label_order,
        )

    def resume(self, job):
        # version 0.2 knew one order, and didn't save it
        names = job.get('class_names') or self._usual_labels
        if self.labels is not None and names:
            self.record = self.record.with_labels(self.record.match(names) or self.labels)

    def _keep(self, given):
        """Keep the sets that the caller gives; what can be read only once becomes a list."""
        self._given = {}
        for segment, source in given.items():
            if is_path(source):
                self.settings = self.settings.copy(**{f'{segment}_file': source})
                continue
            has_columns = hasattr(source, 'columns') or hasattr(source, 'column_names')
            self._given[segment] = source if has_columns else list(source)

    @functools.cached_property
    def given_labels(self):
        record = self.record
        if record.regression or 'train' not in self._given:
            return {}
        column, given = None, {}
        for _, row in record.records('train'):
            if column is None:
                (column,) = choose_columns(row, [record.label_column], (), 'label_column')
            labels = row.get(column)
            for value in labels if isinstance(labels, list) else [labels]:
                if isinstance(value, (int, float)):
                    given[field_text(value)] = value
        one = dataclasses.replace(record, multi_label=False)
        return {one.parse_label(text): value for text, value in given.items()}

    def loss(self, model, batch):
        if not self.record.multi_label:
            return super().loss(model, batch)
        return losses.binary_cross_entropy(mx.nd, model(*batch.inputs), batch.labels)

    def objective(self, model, data):
        if self._teacher is not None:
            return self._teacher.objective(model)
        weights = self._class_weights(data.rows)
        if self.settings.method == 'linear':
            self._fit_head(model, data, weights)
        if weights is None:
            return super().objective(model, data)

        def loss(batch):
            labels = batch.labels
            factors = mx.nd.array(weights, ctx=labels.context).take(labels)
            scores = mx.nd.log_softmax(model(*batch.inputs).astype('float32'))
            return -(factors * mx.nd.pick(scores, labels)).mean()

        return mean_over_examples(loss)

    def _class_weights(self, rows):
        """The weight of each class in the loss, (classes,); None for equal ones."""
        given = self.settings.class_weights
        if given is None:
            return None
        if given == ['balanced']:
            counts = np.bincount(self.numbers(rows), minlength=len(self.labels))
            return len(rows) / (np.count_nonzero(counts) * np.maximum(counts, 1))
        weights = np.ones(len(self.labels))
        for item in given:
            label, _, weight = item.rpartition('=')
            try:
                label = self.record.parse_label(label.strip())
                weights[self.record.label_id(label)] = float(weight)
            except ValueError:
                problem = f'{item!r}: give balanced, or LABEL=WEIGHT with one of the labels'
                raise InputError(problem, field='class_weights') from None
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InputError('weights must be finite and at least 0', field='class_weights')
        return weights

    def _fit_head(self, model, data, weights):
        """Fit the head to the encoder's vectors: see `linear.fit_head`."""
        record = self.record
        encoder = family_of_class(type(model)).block_class('sentence_embedding')
        encoder = encoder(model.base, pooling=model.pooling)
        vectors = self.predict(functools.partial(self.forward, encoder), data)
        labels = self.numbers(data.rows)
        fit_head(
            model.classifier,
            vectors.astype(np.float32),
            labels.astype(np.float32) if record.regression else labels,
            None if weights is None else dict(enumerate(weights)),
            self.settings.seed,
        )

    def schedule(self, num_steps):
        if self.settings.method == 'linear':
            return lambda number: 0.0
        return super().schedule(num_steps)

    def open(self, choice, contexts):
        settings = self.settings
        if settings.teacher is not None:
            self._teacher = Teacher(settings, self.record, contexts)
        if settings.student_layers is None:
            return super().open(choice, contexts)
        self.base = f'{settings.student_layers} layers of its teacher'
        return self._teacher.student()

    def describe(self, data):
        return self._describe(data, 'training examples')

    def job(self, train):
        job = {'train_file' if self.record.is_custom else 'data_dir': train, 'do_predict': False}
        if self._teacher is not None:
            job['teacher'] = describe_model(self._teacher.block)
        return job

    def _sources(self):
        settings, record = self.settings, self.record
        scores = settings.do_eval or not settings.do_predict
        present = [name for name in record.segments if has_segment(record, settings.data_dir, name)]
        if settings.data_dir is not None or record.is_custom:
            needed = ('train', *(record.dev_segments if settings.do_eval else ()))
            if settings.only_inference:
                usable = [name for name in present if name != 'train']
                needed = () if usable and not settings.do_eval else record.dev_segments
            for segment in needed:
                find_file(record, settings.data_dir, segment)
        if settings.do_predict and not set(present).intersection(record.test_segments):
            raise InputError('needs a test set', field='do_predict')
        if settings.only_inference:
            present = [name for name in present if name != 'train']
        if settings.only_inference and not scores:
            present = [name for name in present if name in record.test_segments]
        return {segment: segment for segment in present}

    @property
    def predicted(self):
        return self.record.test_segments

    def read(self, source, segment):
        record, data_dir = self.record, self.settings.data_dir
        if segment in record.test_segments and record.is_custom:
            path = find_file(record, data_dir, segment)
            try:  # a test set of one's own that has labels is scored, too
                return read_file(_as_dev(record, segment), path, 'dev', record.parse_label)
            except InputError:
                pass
        return read_examples(record, data_dir, segment)

    def model_options(self):
        options = {'num_labels': self.record.num_labels}
        if self.settings.method == 'linear':
            options['pooling'] = 'mean'
        return options

    def encode(self, rows, tokenizer):
        return ClassifierFeatures(tokenizer, self.record, self.settings.max_len)(rows)

    def numbers(self, rows):
        return np.array([self.record.label_id(row.label) for row in rows])

    def decode(self, data, outputs):
        if self.record.regression:
            return outputs.reshape(-1).astype(float).tolist()
        if self.record.multi_label:
            return [list(itertools.compress(self.labels, row > 0)) for row in outputs]
        return super().decode(data, outputs)

    def score(self, data, outputs):
        labels = self.numbers(data.rows)
        scores = compute_metrics(self.record, labels, outputs)
        if self.record.regression:
            loss = float(np.mean((outputs.astype(np.float64).reshape(-1) - labels) ** 2))
        elif self.record.multi_label:
            loss = float(np.mean(_entropies_of_each(labels, outputs)))
        else:
            # of CoLA, too, as in the originals' eval_results.txt
            scores.setdefault('accuracy', float(np.mean(outputs.argmax(axis=-1) == labels)))
            loss = mean_cross_entropy(labels, outputs)
            if self.record.is_custom:
                parts = class_scores(self.labels, labels, outputs.argmax(axis=-1))
                scores['macro_f1'] = float(np.mean([part['f1'] for part in parts]))
        return {**scores, 'loss': loss}

    def write(self, folder, segment, data, outputs):
        write = write_class_probabilities if self.settings.do_predict else write_predictions
        return write(folder, self.record, segment, data.rows, outputs)

    def text_of(self, row):
        return ' / '.join(filter(None, (row.text_a, row.text_b)))

    def examine(self, segment, data, outputs):
        record, labels = self.record, self.numbers(data.rows)
        texts = list(map(self.text_of, data.rows))
        if record.multi_label:
            usual = (labels.mean(axis=0) > 0.5).astype(int)  # labels that most texts have
            return Examination(
                segment,
                texts,
                [', '.join(row.label) for row in data.rows],
                [', '.join(names) for names in self.decode(data, outputs)],
                _entropies_of_each(labels, outputs).mean(axis=-1),
                _multi_label_metrics(labels, np.tile(2 * usual - 1, (len(labels), 1))),
                ', '.join(itertools.compress(record.labels, usual)) or 'no label',
                per_class=class_scores(record.labels, labels, outputs > 0),
            )
        guess, baseline = compute_baseline(record, labels)
        if record.regression:
            answers = outputs.astype(np.float64).reshape(-1)
            expected, predicted = ([f'{x:.4g}' for x in numbers] for numbers in (labels, answers))
            errors = (answers - labels) ** 2
            return Examination(
                segment, texts, expected, predicted, errors, baseline, f'{guess:.4g}'
            )
        examination = super().examine(segment, data, outputs)
        examination.baseline = baseline
        examination.per_class = class_scores(record.labels, labels, outputs.argmax(axis=-1))
        return examination

    def save(self, folder, model, tokenizer, **options):
        if self.record.regression:
            column = self.record.is_custom and self.record.label_column
            is_name = isinstance(column, str) and column not in ('label', 'labels')
            name_labels(model, self.trained_for, [column if is_name else 'score'])
            model.config.extras['problem_type'] = 'regression'
        if self.record.multi_label:
            model.config.extras['problem_type'] = 'multi_label_classification'
        if self.record.is_pair:
            model.config.extras['text_pairs'] = True  # for the server's page
        super().save(folder, model, tokenizer, **options)
        if (
            model.pooling is not None
        ):  # transformers has no such head, and sentence-transformers has
            layer = model.classifier.weight, model.classifier.bias
            write_sentence_modules(
                folder,
                model.config.hidden_size,
                model.pooling,
                False,
                tokenizer.max_len,
                dense=[array.data().astype('float32').asnumpy() for array in layer],
            )


def _entropies_of_each(labels, outputs):
    """The loss of each of several labels, float64."""
    outputs = outputs.astype(np.float64)
    return np.logaddexp(0, outputs) - labels * outputs


def _as_dev(record, segment):
    """The table with its test set as the dev set."""
    return dataclasses.replace(record, files={'dev': record.files[segment]}, dev_split=None)


def _sources(settings, given):
    """Segment -> path or rows of a custom task."""
    files = {segment: getattr(settings, f'{segment}_file', None) for segment in _SEGMENTS}
    return {segment: path for segment, path in {**files, **given}.items() if path is not None}


def _find_columns(settings, sources):
    """Take the usual names for the columns of a custom task's first set, where none is given."""
    texts = settings.text_columns or settings.text_column or settings.text_pair_column
    needs_label = settings.label_column is None and list(sources) != ['test']
    if not sources or (texts and not needs_label):
        return
    name, source = next(iter(sources.items()))
    if is_path(source) and not is_table(source):
        return
    parts = {1: ('text',), 2: ('text', 'label'), 3: ('text', 'text_pair', 'label')}
    records = read_records(source, parts, name, encoding=settings.encoding)
    where, row = next(records, (None, None))
    if row is None:
        raise InputError(f'{source!r:.200} has no rows')
    if not texts:
        settings.text_columns = list(
            choose_columns(row, None, (*PAIRS, *TEXTS), 'text_column', where)
        )
    if settings.label_column is None:
        settings.label_column = find_column(row, _LABELS)
        if needs_label and settings.label_column is None:
            choose_columns(row, None, (), 'label_column', where)


def check_task_choice(settings, trains, given=types.MappingProxyType({})):
    """Raise InputError, naming the setting, if the settings of the task contradict each other.

    Makes ``text_columns`` of the settings for one column, ``labels`` of those with commas between,
    and files of a folder's splits. `given` has the sets that a caller has in memory.
    """
    if settings.labels is not None and len(settings.labels) == 1:
        settings.labels = [label.strip() for label in settings.labels[0].split(',')]
    files = [f'{segment}_file' for segment in _SEGMENTS if hasattr(settings, f'{segment}_file')]
    if settings.task_name is None and (given or any(getattr(settings, name) for name in files)):
        settings.task_name = 'custom'
    sources = {}
    if settings.task_name == 'custom':
        _take_splits(settings, files)
        missing = (name for name in files if not is_table(getattr(settings, name) or ''))
        check_files(settings, *missing)
        sources = _sources(settings, given)
        _find_columns(settings, sources)
    _join_columns(settings)
    if settings.task_name != 'custom':
        used = [name for name in (*files, *_CUSTOM) if getattr(settings, name, None)]
        used += [f'{segment}_file' for segment in given]
        if used:
            raise InputError(
                f'goes with `task_name` custom, not {settings.task_name}', field=used[0]
            )
        return
    if not settings.text_columns:
        raise InputError('custom needs `text_columns`', field='task_name')
    if trains and 'train' not in sources:
        raise InputError('custom needs `train_file` for training', field='task_name')
    if {'train', 'dev'}.intersection(sources) and not settings.label_column:
        raise InputError(
            'is needed to train and evaluate: its name or number', field='label_column'
        )


def _join_columns(settings):
    """Make ``text_columns`` of the two flags that name a column each."""
    columns = [settings.text_column, settings.text_pair_column]
    del settings.text_column, settings.text_pair_column
    if columns == [None, None]:
        return
    if settings.text_columns:
        raise InputError('and `text_column` both name the texts: give one', field='text_columns')
    if columns[0] is None:
        raise InputError('needs `text_column`', field='text_pair_column')
    settings.text_columns = [column for column in columns if column is not None]


def _take_splits(settings, files):
    """Replace a folder that has splits by theirs; that of `train_file` gives all sets."""
    if 'train_file' in files:
        splits = find_splits(settings.train_file or '')
        if settings.dev_split is None:
            settings.dev_file = settings.dev_file or splits.get('dev')
        settings.test_file = settings.test_file or splits.get('test')
    for name in files:
        path, segment = getattr(settings, name), name[: -len('_file')]
        splits = find_splits(path or '')
        if splits and segment not in splits:
            raise InputError(f'{path!r} has no such split; it has {", ".join(splits)}', field=name)
        setattr(settings, name, splits.get(segment, path))


def make_task(settings, trains=False, given=types.MappingProxyType({})):
    """The task; its labels are those of the table, or of a custom task's training set.

    Whose they are otherwise is for `model_zoo.tasks.labels.adopt_labels` to say.
    """
    if settings.task_name != 'custom':
        try:
            return get_task(settings.task_name)
        except UnknownNameError:
            known = [*list_tasks(), 'custom']
            raise UnknownNameError.of('task', settings.task_name, known) from None
    task = custom_task(
        settings.text_columns,
        settings.label_column,
        labels=settings.labels,
        regression=settings.regression,
        header=True if settings.header else None,
        files=_sources(settings, given),
        dev_split=getattr(settings, 'dev_split', None),
        split_seed=settings.seed,
        multi_label=getattr(settings, 'multi_label', False),
        encoding=settings.encoding,
        skip_empty=getattr(settings, 'skip_empty', False),
    )
    return infer_labels(task) if trains else task
