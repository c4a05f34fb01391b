"""The task of classification and regression: one of the published sets, or the user's own rows.

``get_task`` -> ``read_examples`` -> ``ClassifierFeatures`` -> ``BucketedLoader`` -> the model. What
is predicted is the data set's target: classes, labels or a number (`model_zoo.tasks.targets`).
"""

import collections
import contextlib
import dataclasses
import functools
import logging
import os
import types

import mxnet as mx
import numpy as np

from ..blocks.block import ZooBlock
from ..errors import InputError
from ..pretrained.sentence_modules import write_sentence_modules
from ..records import PAIRS, TEXTS, is_path, keep_rows
from ..registry import family_of_class
from ..training.objective import mean_over_examples
from ..util.choices import GLUONNLP, ORIGINALS
from .classification_data import custom_task, get_task, has_segment, infer_labels, read_examples
from .labels import match_labels, name_labels
from .linear import fit_head, predict_from_words
from .rows import FEW_ROWS, check_room, encode_rows, part_rows, stratified, warn_of_labels
from .settings import ClassificationSettings
from .tables import given_files, write_table
from .targets import Number
from .task import Task

__all__ = ['ClassificationTask', 'ClassifierFeatures', 'choose_data']

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
        number, pairs = self.task.target.number, [[each.texts] for each in examples]
        labels = [None if each.label is None else number(each.label) for each in examples]
        options = self.max_len, f'examples of {self.task.name}', False
        return encode_rows(self.tokenizer, pairs, labels, *options)


#: settings of the user's own rows
_COLUMNS = 'text_columns', 'text_column', 'label_column', 'header'
_CUSTOM = (*_COLUMNS, 'regression', 'multi_label', 'dev_split', 'skip_empty')
MOST_ROWS = 10000  # that TF-IDF is tried on, which takes about a second


def _rescale(layer, scale, mean):
    """Make a dense layer return its outputs times `scale`, plus `mean`."""
    layer.weight.set_data(layer.weight.list_data()[0] * scale)
    layer.bias.set_data(layer.bias.list_data()[0] * scale + mean)


class ClassificationTask(Task):
    """Classes, labels or numbers for texts and pairs of texts.

    Rows in memory are (text, label), (text, text, label), or without the label; or dicts.
    """

    settings_class, use = ClassificationSettings, 'text-classification'
    head, sample_unit = 'classification', 'training examples'
    data_set = None  # the `DataSet`

    name = property(lambda self: self.data_set.name)
    trained_for = name
    has_own_rows = property(lambda self: self.data_set.is_custom)
    fits_rows = property(lambda self: self.has_own_rows and self.settings.method != 'linear')
    metric = property(lambda self: self.target.metrics[0])
    labels = property(lambda self: self.data_set.labels)
    target = property(lambda self: self.data_set.target)

    @property
    def title(self):
        if not self.data_set.is_custom:
            return self.name
        source = self.data_set.files.get('train')
        return os.path.basename(source.rstrip('/')) if is_path(source) else 'custom data'

    @property
    def command(self):
        if self.data_set.is_pair:
            return "printf 'A text.\\tAnother.\\n' | zoo predict {folder} --pairs --file -"
        return "zoo predict {folder} 'A text.'"

    @property
    def call(self):
        return "('A text.', 'Another.')" if self.data_set.is_pair else "'A text.'"

    # -- the sets and the model

    def locate(self, given=None):
        settings, given = self.settings, (given or {}).items()
        data_set = choose_data(settings, {name: keep_rows(rows) for name, rows in given})
        if settings.class_weights is not None and not data_set.target.has_classes:
            raise InputError(
                f'needs classes, and {data_set.name} has numbers', field='class_weights'
            )
        self.data_set = data_set if settings.only_inference else infer_labels(data_set)
        return self.find_sets()

    def find_sets(self):
        """Return the sets that exist and are used; InputError if one is missing."""
        settings, data_set = self.settings, self.data_set
        present = [
            name for name in data_set.files if has_segment(data_set, settings.data_dir, name)
        ]
        needed = ['train']
        if settings.only_inference:
            present = [name for name in present if name != 'train' or settings.dev_split]
            needed = () if present else data_set.dev_segments
        for segment in needed:
            data_set.find(segment, settings.data_dir)
        return {segment: segment for segment in present}

    def configure(self, located):
        settings, self._usual_labels = self.settings, self.labels
        if located is None:
            return  # a block's outputs have the order of the training set's labels
        deployed = f'{settings.model_prefix}-0000.params' if settings.deploy else None
        order = ORIGINALS if settings.sort_labels else GLUONNLP
        options = {'order': order, 'trains': not settings.only_inference}
        options['parameters'] = deployed or settings.model_parameters
        self.data_set = match_labels(self.data_set, located, settings.labels, **options)

    def resume_labels(self, job):
        if self.data_set.is_custom and not self.settings.is_given('best_by'):
            self.assume(best_by=job.get('best_by'))  # before 1.1 the target's first metric
        if not self.target.has_classes and 'label_scale' not in job:  # before version 1.1
            self._set_target(Number(self.target.bounds))
        # version 0.2 knew one order, and didn't save it
        names = job.get('class_names') or self._usual_labels
        if self.labels is not None and names:
            self.data_set = self.data_set.with_labels(self.target.match(names) or self.labels)

    def read(self, source, segment):
        return read_examples(self.data_set, self.settings.data_dir, segment)

    def split(self, rows, share):
        """Hold out the same share of each class, of each label, or of each range of numbers."""
        labels = [row.label for row in rows]
        if not self.target.has_classes:
            ranges = max(1, min(10, int(min(share, 1 - share) * len(rows))))
            labels = (np.argsort(np.argsort(labels)) * ranges // len(rows)).tolist()
        if not self.target.takes_several:
            labels = [(label,) for label in labels]
        texts = [row.texts for row in rows]
        return part_rows(rows, stratified(labels, texts, share, self.settings.seed))

    def prepare(self, rows):
        if self.data_set.is_custom and 'train' in rows:
            self._adapt_to_labels(rows['train'], rows.get('dev'))

    def _adapt_to_labels(self, rows, dev):
        """Fit numbers, or choose the score of classes; warn of rows that mislead."""
        target = self.target
        labels = [[row.label for row in part] for part in (rows, dev or ())]
        if not target.has_classes:
            self._set_target(target.fit(labels[0]))
            labels = [[], []]
        elif not target.takes_several:
            sizes = collections.Counter(labels[0]).values()
            is_open = dev and not self.settings.is_given('best_by')
            if is_open and max(sizes) > 2 * min(sizes):
                self.assume(best_by='macro_f1')
            labels = [[(label,) for label in part] for part in labels]
        warn_of_labels(labels[0], labels[1] if dev else None)

    def _set_target(self, target):
        self.data_set = dataclasses.replace(self.data_set, target=target)

    def setup(self, model, tokenizer):
        """Return the model; a head that has learned numbers learns on from where it is."""
        if isinstance(self.target, Number) and self.data_set.is_custom:
            extras = model.config.extras if isinstance(model, ZooBlock) else {}  # or an export
            stored, target = extras.get('label_scale'), self.target
            is_trained = stored or extras.get('problem_type') == 'regression'
            if not self.trains:
                mean, scale = stored or (0.0, 1.0)
                self._set_target(Number(mean=mean, scale=scale, is_folded=True))
            elif is_trained or self.settings.model_parameters:
                _rescale(model.classifier, 1 / target.scale, -target.mean / target.scale)
        return model

    def finalize(self, model, report):
        target = self.target
        if isinstance(target, Number) and not target.is_folded and self.data_set.is_custom:
            _rescale(model.classifier, target.scale, target.mean)
            model.config.extras['label_scale'] = [target.mean, target.scale]
            self._set_target(dataclasses.replace(target, is_folded=True))

    @contextlib.contextmanager
    def as_saved(self, model):
        data_set, layer = self.data_set, model.classifier
        kept = [(each, each.list_data()[0].copy()) for each in (layer.weight, layer.bias)]
        self.finalize(model, {})
        try:
            yield
        finally:
            self.data_set = data_set
            for parameter, array in kept:
                parameter.set_data(array)

    def model_options(self):
        pooling = {'pooling': 'mean'} if self.settings.method == 'linear' else {}
        return {'num_labels': self.data_set.num_labels, **pooling}

    def encode(self, rows, tokenizer):
        return ClassifierFeatures(tokenizer, self.data_set, self.settings.max_length)(rows)

    def job(self, train):
        target, job = self.target, {'train_file' if self.data_set.is_custom else 'data_dir': train}
        if isinstance(target, Number) and target != Number(target.bounds):
            job['label_scale'] = [target.mean, target.scale]
        return job

    # -- training

    def objective(self, model, data):
        target, weights = self.target, self._weights_of(data.rows)
        if self.settings.method == 'linear':
            vectors = self._vectors(model, data)
            weight, bias, fitted = self._fit_head(vectors, data)
            model.classifier.weight.set_data(mx.nd.array(weight))
            model.classifier.bias.set_data(mx.nd.array(bias))
            self.fitted = f'{fitted}, on {len(vectors)} vectors of {vectors.shape[1]} numbers'
        return mean_over_examples(lambda batch: target.loss(model, batch, weights))

    def _weights_of(self, rows):
        """Return the weights of the classes, or None."""
        given = self.settings.class_weights
        return given and self.target.class_weights(given, [row.label for row in rows])

    def _vectors(self, model, data):
        """Return the vectors of a set by the model's encoder, float32."""
        encoder = family_of_class(type(model)).block_class('sentence_embedding')
        encoder = encoder(model.base, pooling=model.pooling or 'mean')
        encoder.cast(model.precision)
        return self.predict(functools.partial(self.forward, encoder), data).astype(np.float32)

    def _fit_head(self, vectors, data):
        """Return what `fit_head` does for a set's vectors and labels."""
        weights, labels = self._weights_of(data.rows), [sample.label for sample in data.samples]
        options = None if weights is None else dict(enumerate(weights)), self.settings.seed
        return fit_head(self.target.num_outputs, vectors, np.array(labels), *options)

    def compare(self, model, train, dev):
        """Score TF-IDF with a linear model; of few rows also ``method='linear'``.

        The vectors of few rows cost a few percent of the training.
        """
        settings, target, found = self.settings, self.target, {}
        labels, count = self.numbers(dev.rows), len(train.rows)
        if count <= MOST_ROWS:
            texts, others = (list(map(str, data.rows)) for data in (train, dev))
            name, predictions = predict_from_words(texts, self.numbers(train.rows), others)
            if predictions is not None:
                found[name] = target.measure(labels, predictions)
        is_new = settings.method == 'linear' or settings.from_scratch or target.takes_several
        if count <= FEW_ROWS and isinstance(model, ZooBlock) and not is_new:
            weight, bias, _ = self._fit_head(self._vectors(model, train), train)
            outputs = self._vectors(model, dev) @ weight.T + bias
            found['frozen encoder (method linear)'] = target.scores(labels, outputs)
        return found

    def schedule(self, num_steps):
        if self.settings.method == 'linear':
            return lambda number: 0.0
        return super().schedule(num_steps)

    # -- results

    def write(self, folder, segment, data, outputs):
        """Write predictions in GLUE's format, and the probabilities (for numbers, the outputs)."""
        target, guids = self.target, [row.guid for row in data.rows]
        name = self.data_set.submissions.get(segment, f'{segment}_predictions.tsv')
        beside = name.replace('_predictions', '').replace('.tsv', '_probabilities.tsv')
        rows = zip(guids, *target.probabilities(outputs).T.tolist())
        predicted = [('index', 'prediction'), *zip(guids, target.written(outputs))]
        write_table(os.path.join(folder, name), predicted)
        write_table(os.path.join(folder, beside), [('index', *target.columns), *rows])
        return [name, beside]

    def save(self, folder, model, tokenizer, **options):
        target, extras = self.target, model.config.extras
        if not target.has_classes:
            column = self.data_set.is_custom and self.data_set.layouts[0].label
            is_name = isinstance(column, str) and column not in ('label', 'labels')
            name_labels(model, self.trained_for, [column if is_name else 'score'])
            extras['label_scale'] = [target.mean, target.scale]
        if target.problem_type is not None:
            extras['problem_type'] = target.problem_type
        if self.data_set.is_pair:
            extras['text_pairs'] = True  # for the server's page
        columns = self.data_set.layouts[0].text if self.data_set.is_custom else (None,)
        if columns not in (*PAIRS, *TEXTS) and all(isinstance(name, str) for name in columns):
            extras['text_columns'] = list(columns)  # for files to predict
        with self.as_saved(model):
            super().save(folder, model, tokenizer, **options)
            if model.pooling is None:
                return  # sentence-transformers has the other head, transformers not
            layer = model.classifier.weight, model.classifier.bias
            layer = [array.data().astype('float32').asnumpy() for array in layer]
            options = model.config.hidden_size, model.pooling, False, tokenizer.max_len
            write_sentence_modules(folder, *options, dense=layer)

    def as_given(self, label):
        if self.data_set.noted.get('vectors') and isinstance(label, (list, tuple)):
            return [int(name in label) for name in self.labels]
        return super().as_given(label)

    @property
    def given_labels(self):
        parse = self.target.parse_one
        return {parse(text): value for text, value in self.data_set.given.items()}


def choose_data(settings, given=types.MappingProxyType({})):
    """Return the data set that the settings name: a published one, or the user's own rows.

    `given` has the sets that a caller has in memory.
    """
    files = {**given_files(settings, ('train', 'dev', 'test'), settings.dev_split), **given}
    if settings.task_name != 'custom':
        used = [*(f'{name}_file' for name in files), *filter(settings.is_given, _CUSTOM)]
        if used:
            problem = f'goes with `task_name` custom, not {settings.task_name}'
            raise InputError(problem, field=used[0])
        return get_task(settings.task_name)
    if not files or ('train' not in files and not settings.only_inference):
        raise InputError('give `train_file`, your own data, or `task_name`, a published set')
    columns = (settings.text_column, settings.text_pair_column)
    columns = settings.text_columns or [column for column in columns if column is not None]
    names = 'label_column', 'labels', 'regression', 'decimal', 'multi_label'
    options = {name: vars(settings)[name] for name in (*names, 'encoding', 'skip_empty')}
    return custom_task(columns, header=settings.header or None, files=files, **options)
