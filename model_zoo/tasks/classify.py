"""The task of classification and regression: one of the table of tasks, or the user's own."""

import json
import os
from typing import List, Optional

import numpy as np

from ..errors import InputError, UnknownNameError
from ..pretrained import is_model_folder
from ..pretrained.files import GLUONNLP, ORIGINALS
from ..training.settings import (
    CheckpointSettings,
    DeploySettings,
    FinetuneSettings,
    setting,
    settings,
)
from ..util.files import atomic_write
from .classification.custom import custom_task, infer_labels
from .classification.evaluate import write_class_probabilities, write_predictions
from .classification.features import ClassifierFeatures
from .classification.metrics import compute_baseline, compute_metrics
from .classification.readers import find_file, has_segment, read_examples, read_file
from .classification.tasks import get_task, list_tasks
from .evaluate import check_finite, mean_cross_entropy
from .examination import Examination, cross_entropies
from .files import check_files
from .labels import adopt_labels
from .tables import (
    PAIR_COLUMNS,
    TEXT_COLUMNS,
    find_splits,
    given_rows,
    is_path,
    is_table,
    read_rows,
)
from .task import Task

__all__ = ['ClassificationSettings', 'ClassificationTask', 'check_task_choice', 'make_task']

_SEGMENTS = ('train', 'dev', 'test')
_CUSTOM = ('text_columns', 'label_column', 'header', 'regression', 'dev_split')
#: usual names of the column of the label
_LABELS = ('label', 'labels', 'score', 'gold_label', 'class', 'category', 'target')
_TABLE = 'of a custom task: TSV, .csv or .jsonl in UTF-8, or a folder that datasets has saved'
_BOOLEAN = {'type': 'boolean', 'nargs': '?', 'const': True}


@settings()
class TeacherSettings(FinetuneSettings):
    """Distillation: a small classifier learns from a large one."""

    title = 'distillation'

    teacher: Optional[str] = setting(
        None, 'learn from this trained model, too', flag={'metavar': 'FOLDER'}
    )
    student_layers: Optional[int] = setting(
        None, "begin with N of the teacher's layers, its embeddings and its head, instead of "
        'another model', at_least=1, flag={'metavar': 'N'},
    )  # fmt: skip
    teacher_layers: Optional[List[int]] = setting(
        None, "the teacher's layer for each layer of the student, from 1; default: evenly spaced",
        flag={'metavar': 'N'},
    )  # fmt: skip
    temperature: Optional[float] = setting(
        2.0, "of the teacher's probabilities", above=0, below=float('inf')
    )
    teacher_weight: Optional[float] = setting(
        0.5, "part of the teacher's scores in the loss; the rest is that of the labels",
        at_least=0, at_most=1,
    )  # fmt: skip
    states_weight: Optional[float] = setting(
        1.0, "weight of the layers' states", at_least=0, below=float('inf')
    )

    def check(self):
        super().check()
        names = 'student_layers', 'teacher_layers', 'temperature', 'teacher_weight', 'states_weight'
        if self.teacher is None:
            for name in names:
                if self.is_given(name) and getattr(self, name) is not None:
                    raise InputError(f'`{name}` needs `teacher`')
                setattr(self, name, None)  # without a teacher they are no part of the job
            return
        if self.only_inference:
            raise InputError('`teacher` is for a training: leave it out')
        others = (
            'bert_model', 'bert_dataset', 'pretrained_bert_parameters', 'model_parameters',
            'from_scratch', 'vocab_file', 'hparams', 'init_checkpoint', 'bert_config_file',
        )  # fmt: skip
        for name in others if self.student_layers is not None else ():
            if self.is_given(name):
                raise InputError(f'`student_layers` begins with the teacher: leave `{name}` out')


@settings(lr=5e-5)
class ClassificationSettings(DeploySettings, CheckpointSettings, TeacherSettings):
    """Settings of classification, with the defaults of GluonNLP 0.8's finetune_classifier.py."""

    title = 'task'

    task_name: Optional[str] = setting(
        None, f'one of {", ".join(list_tasks())}, or custom', flag={'required': True}
    )
    data_dir: Optional[str] = setting(
        None, "folder of the task's TSV files; default: GluonNLP downloads them"
    )
    train_file: Optional[str] = setting(None, _TABLE)
    dev_file: Optional[str] = setting(None, 'likewise')
    test_file: Optional[str] = setting(None, 'likewise')
    dev_split: Optional[float] = setting(
        None, 'instead of `dev_file`: hold out this share of `train_file`, such as 0.1, '
        'stratified by label; `seed` chooses the examples', flag={'metavar': 'SHARE'},
    )  # fmt: skip
    text_columns: Optional[List[str]] = setting(
        None, 'custom task: name or number of one column, or of two'
    )
    text_column: Optional[str] = setting(None, 'custom task: the same, of one column')
    text_pair_column: Optional[str] = setting(
        None, 'custom task: that of the second text of a pair'
    )
    label_column: Optional[str] = setting(
        None, 'custom task: name or number of the column; numbers begin at 0'
    )
    labels: Optional[List[str]] = setting(
        None, "names of the model's outputs in their order, also a,b,c; default: the model's; of a "
        "new custom task the training file's, sorted",
    )  # fmt: skip
    header: bool = setting(False, 'files with numbered columns have a first line')
    regression: bool = setting(False, 'custom task: the labels are numbers')
    label_order: str = setting(
        GLUONNLP, "whose order the labels of a new model have: GluonNLP's, or that of "
        'pytorch-pretrained-BERT and Google', choices=[GLUONNLP, ORIGINALS],
    )  # fmt: skip
    max_len: int = setting(128, 'in tokens, special ones included')
    do_lower_case: Optional[bool] = setting(
        None, 'whether to lower-case the texts; default: what the vocabulary is for', flag=_BOOLEAN
    )
    do_predict: bool = setting(
        False, 'write test_results.tsv of the test set, too: a line a sample, a column a class; '
        'alone: `only_inference` on the test set', flag=_BOOLEAN,
    )  # fmt: skip
    do_eval: Optional[bool] = setting(
        None, 'evaluate, as a training does in any case; alone: `only_inference`', flag=_BOOLEAN
    )


class ClassificationTask(Task):
    """Classes, or numbers, of texts and pairs of texts.

    Rows in memory are (text, label), (text, text, label), or without the label; or dicts.

    Parameters
    ----------
    settings : ClassificationSettings
    record : model_zoo.tasks.classification.Task, optional
        By default the one that the settings choose.
    """

    settings_class, in_python = ClassificationSettings, {'task_name': 'custom'}
    reads_late = True
    samples_unit = 'training examples'
    head, length = 'classification', 'max_len'
    free = (
        'data_dir', 'train_file', 'dev_file', 'test_file', 'vocab_file', 'do_eval', 'label_order',
    )  # fmt: skip

    def __init__(self, settings, record=None):
        super().__init__(settings)
        self.record = record

    name = property(lambda self: self.record.name)
    title = trained_for = name
    metric = property(lambda self: self.record.primary_metric)
    labels = property(lambda self: None if self.record.regression else self.record.labels)

    @property
    def use(self):
        return 'text-pair-classification' if self.record.is_pair else 'text-classification'

    def begin(self):
        settings = self.settings
        check_task_choice(settings, trains=not settings.only_inference)
        if settings.teacher is not None and not is_model_folder(settings.teacher):
            raise InputError(f'`teacher` {settings.teacher!r}: there is no folder of a model')
        self.record = make_task(settings, trains=not settings.only_inference)

    def adopt(self, choice):
        settings = self.settings
        if choice is None:
            return  # a block's outputs have the order of the training set's labels
        deployed = f'{settings.model_prefix}-0000.params' if settings.deploy else None
        self.record = adopt_labels(
            self.record, choice.model, settings.labels, dataset=settings.bert_dataset,
            config=choice.config, parameters=deployed or settings.model_parameters,
            teacher=settings.teacher, trains=not settings.only_inference,
            order=settings.label_order,
        )  # fmt: skip

    def take(self, sources):
        """Make files of sets in memory, and find the columns."""
        settings = self.settings
        for segment, source in sources.items():
            if not is_path(source):
                source = self._write_rows(source, segment)
            setattr(settings, f'{segment}_file', os.fspath(source))
        _take_splits(settings, [f'{segment}_file' for segment in _SEGMENTS])
        if not settings.text_columns and settings.task_name == 'custom':
            _find_columns(settings)
        return

    def _write_rows(self, rows, segment):
        folder = os.path.join(self.settings.output_dir, '.rows')
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f'{segment}.jsonl')
        is_pair = segment == 'test' and self._has_pairs
        names = {
            1: ('text',), 2: ('text', 'text_pair') if is_pair else ('text', 'label'),
            3: ('text', 'text_pair', 'label'),
        }  # fmt: skip
        with atomic_write(path) as file:
            for _, row in given_rows(rows, names, segment):
                if segment == 'train':
                    self._has_pairs = 'text_pair' in row
                row = {name: _plain(value) for name, value in row.items()}
                file.write(json.dumps(row, ensure_ascii=False) + '\n')
        return path

    _has_pairs = False

    def sources(self):
        settings, record = self.settings, self.record
        present = [
            name for name in record.segments if has_segment(record, settings.data_dir, name)
        ]
        if settings.data_dir is not None or record.names_its_files:
            needed = ('train', *(record.dev_segments if settings.do_eval else ()))
            if settings.only_inference:
                usable = [name for name in present if name != 'train']
                needed = () if usable and not settings.do_eval else record.dev_segments
            for segment in needed:
                find_file(record, settings.data_dir, segment)
        if settings.do_predict and not set(present).intersection(record.test_segments):
            raise InputError('`do_predict`: there is no test set')
        if settings.only_inference:
            present = [name for name in present if name != 'train']
        return {segment: segment for segment in present}

    def scored(self, sets):
        settings = self.settings
        return [] if settings.do_predict and not settings.do_eval else super().scored(sets)

    @property
    def predicted(self):
        return self.record.test_segments

    def read(self, source, segment):
        record, data_dir = self.record, self.settings.data_dir
        if segment in record.test_segments and record.names_its_files:
            path = find_file(record, data_dir, segment)
            try:  # a test set of one's own that has labels is scored, too
                return read_file(record, path, 'dev', record.parse_label)
            except InputError:
                pass
        return read_examples(record, data_dir, segment)

    def model_options(self):
        return {'num_labels': self.record.num_labels}

    def encode(self, rows, tokenizer):
        return ClassifierFeatures(tokenizer, self.record, self.settings.max_len)(rows)

    def numbers(self, rows):
        return np.array([self.record.label_id(row.label) for row in rows])

    def decode(self, data, outputs):
        if self.record.regression:
            return outputs.reshape(-1).astype(float).tolist()
        return super().decode(data, outputs)

    def score(self, data, outputs):
        labels = self.numbers(data.rows)
        scores = dict(compute_metrics(self.record, labels, outputs))
        if self.record.regression:
            loss = float(np.mean((outputs.astype(np.float64).reshape(-1) - labels) ** 2))
        else:
            # of CoLA, too, as in the originals' eval_results.txt
            scores.setdefault('accuracy', float(np.mean(outputs.argmax(axis=-1) == labels)))
            loss = mean_cross_entropy(labels, outputs)
        return {**scores, 'loss': loss}

    def write(self, folder, segment, data, outputs):
        check_finite(outputs, segment)
        write = write_class_probabilities if self.settings.do_predict else write_predictions
        return write(folder, self.record, segment, data.rows, outputs)

    def examine(self, segment, data, outputs):
        record, labels = self.record, self.numbers(data.rows)
        guess, baseline = compute_baseline(record, labels)
        if record.regression:
            answers = outputs.astype(np.float64).reshape(-1)
            losses = (answers - labels) ** 2
            names = [f'{number:.4g}' for number in (*labels, *answers, guess)]
        else:
            losses, answers = cross_entropies(labels, outputs), outputs.argmax(axis=-1)
            names = [record.require_labels()[number] for number in (*labels, *answers, guess)]
        count = len(data.rows)
        return Examination(
            segment,
            [' / '.join(filter(None, (row.text_a, row.text_b))) for row in data.rows],
            names[:count],
            names[count:-1],
            losses,
            dict(baseline),
            names[-1],
            None if record.regression else record.require_labels(),
        )

    def check_outputs(self, words, outputs):
        shape = getattr(outputs, 'shape', None)  # None of a list: a model with several outputs
        if shape == (words.shape[0], self.record.num_labels):
            return None
        shown = f'{len(outputs)} outputs' if shape is None else f'outputs of shape {shape}'
        return (
            f'{shown} for {words.shape[0]} samples; {self.record.name} needs '
            f'{self.record.num_labels} numbers each'
        )

    @property
    def data_field(self):
        return 'train_file' if self.settings.train_file else 'data_dir'

    def save(self, folder, model, tokenizer, **options):
        if self.record.regression:
            model.config.extras['problem_type'] = 'regression'
        if self.record.is_pair:
            model.config.extras['text_pairs'] = True  # for the server's page
        model.save_pretrained(folder, tokenizer, **options)


def _plain(value):
    """A value of a row as JSON has it; numbers of NumPy as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _find_columns(settings):
    """Take the usual names for the columns of a custom task's training file."""
    path = settings.train_file
    names = [str(name).strip() for name in next(read_rows(path), (None, []))[1]]
    pair = next((pair for pair in PAIR_COLUMNS if set(pair) <= set(names)), None)
    text = next((name for name in TEXT_COLUMNS if name in names), None)
    if not settings.text_column and (pair or text):
        settings.text_columns = list(pair or (text,))
    if settings.label_column is None:
        settings.label_column = next((name for name in _LABELS if name in names), None)
    if not (settings.text_columns or settings.text_column) or settings.label_column is None:
        raise InputError(
            f'{path!r} has the columns {", ".join(names)}: name those of the text and the label '
            'with `text` and `label`'
        )


def check_task_choice(settings, trains):
    """Raise InputError, naming the setting, if the settings of the task contradict each other.

    Makes ``text_columns`` of the settings for one column, ``labels`` of those with commas between,
    and files of a folder's splits.

    Parameters
    ----------
    settings : Settings, or an object like it
        With ``task_name``.
    trains : bool
        Whether a training set is needed.
    """
    _join_columns(settings)
    if settings.labels is not None and len(settings.labels) == 1:
        settings.labels = [label.strip() for label in settings.labels[0].split(',')]
    files = [f'{segment}_file' for segment in _SEGMENTS if hasattr(settings, f'{segment}_file')]
    if settings.task_name != 'custom':
        given = [name for name in (*files, *_CUSTOM) if getattr(settings, name, None)]
        if given:
            raise InputError(f'`{given[0]}` goes with `task_name` custom, not {settings.task_name}')
        return
    _take_splits(settings, files)
    if not settings.text_columns:
        raise InputError('`task_name` custom needs `text_columns`')
    if trains and not settings.train_file:
        raise InputError('`task_name` custom needs `train_file` for training')
    if (getattr(settings, 'train_file', None) or settings.dev_file) and not settings.label_column:
        raise InputError('`train_file` and `dev_file` need `label_column`, its name or number')


def _join_columns(settings):
    """Make ``text_columns`` of the two flags that name a column each."""
    columns = [settings.text_column, settings.text_pair_column]
    del settings.text_column, settings.text_pair_column
    if columns == [None, None]:
        return
    if settings.text_columns:
        raise InputError('`text_columns` and `text_column` both name the texts: give one')
    if columns[0] is None:
        raise InputError('`text_pair_column` needs `text_column`')
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
            raise InputError(f'`{name}` {path!r} has no such split; it has {", ".join(splits)}')
        setattr(settings, name, splits.get(segment, path))


def make_task(settings, trains=False):
    """The task; its labels are those of the table, or of a custom task's training file.

    Whose they are otherwise is for `model_zoo.tasks.labels.adopt_labels` to say.

    Parameters
    ----------
    settings : Settings, or an object like it
    trains : bool
        Whether a model is to be trained for it.

    Returns
    -------
    model_zoo.tasks.classification.Task
    """
    if settings.task_name != 'custom':
        try:
            return get_task(settings.task_name)
        except UnknownNameError:
            known = [*list_tasks(), 'custom']
            raise UnknownNameError.of('task', settings.task_name, known) from None
    files = {segment: getattr(settings, f'{segment}_file', None) for segment in _SEGMENTS}
    files = {segment: path for segment, path in files.items() if path}
    others = [f'{segment}_file' for segment, path in files.items() if not is_table(path)]
    check_files(settings, *others)
    task = custom_task(
        settings.text_columns,
        settings.label_column,
        labels=settings.labels,
        regression=settings.regression,
        header=True if settings.header else None,
        files=files,
        dev_split=getattr(settings, 'dev_split', None),
        split_seed=settings.seed,
    )
    return infer_labels(task) if trains else task
