"""The classification and regression tasks, as a table: columns, labels, metrics, file names.

A new task is a new entry of the table; readers, metrics and scripts know no task by name.

Sources: the GLUE benchmark (Wang et al. 2018) and the header lines of its TSV files; XNLI (Conneau
et al. 2018); LCQMC (Liu et al. 2018); ChnSentiCorp (Tan Songbo). The labels are in the order of
GluonNLP 0.10's tasks, because it decides the meaning of a trained classifier's outputs.
"""

import dataclasses
import math
from typing import Dict, Mapping, Optional, Tuple, Union

from ...errors import InputError, UnknownNameError

__all__ = ['Layout', 'Task', 'custom_task', 'get_task', 'list_tasks']

Column = Union[str, int]  # a header's name, or a position from 0


@dataclasses.dataclass(frozen=True)
class Layout:
    """One way in which a task's files are laid out; fields are separated by TABs, never quoted.

    Parameters
    ----------
    text : tuple of str or int
        The column of the text, or the two columns of the pair: names of the header or positions.
    label : str or int, optional
        The label's column. A test file may lack it. None: the layout is for test files only.
    header : bool
        Whether the first line names the columns.
    width : int, optional
        Without a header: the number of columns, by which the layout is recognised. None takes any.
    where : (str, str), optional
        Read only the rows that hold this value in this column (XNLI has 15 languages in a file).
    """

    text: Tuple[Column, ...]
    label: Optional[Column] = None
    header: bool = True
    width: Optional[int] = None
    where: Optional[Tuple[str, str]] = None

    def __str__(self):
        if self.header:
            names = [repr(name) for name in (*self.text, self.label) if isinstance(name, str)]
            return 'a header with ' + ', '.join(names) if names else 'a header'
        places = f'text in {" and ".join(map(str, self.text))}'
        if self.label is not None:
            places += f', label in {self.label}'
        size = 'no header' if self.width is None else f'{self.width} columns without a header'
        return f'{size} (counted from 0: {places})'


@dataclasses.dataclass(frozen=True)
class Task:
    """A classification or regression task.

    Parameters
    ----------
    name : str
    layouts : tuple of Layout
        Tried in this order on a file's first line.
    labels : tuple of str, optional
        Names of the classes; a label's id is its place. None for regression, and for a custom task
        whose labels are yet to be read from its training file (``readers.infer_labels``).
    metrics : tuple of str
        Keys of ``metrics.METRICS``. The first decides which epoch is the best one.
    regression : bool
        Labels are real numbers, and the model has one output.
    label_aliases : mapping of str to str
        Other spellings of `labels`.
    label_range : (float, float), optional
        Bounds of a regression's labels; predictions are clipped to them.
    folders : tuple of str
        Names that the task's folder may have inside a directory of several tasks.
    files : mapping of str to tuple of str
        Segment -> names that its file may have.
    submissions : mapping of str to str
        Test segment -> name of the file of predictions (GLUE's own names for its tasks).
    gluonnlp_name : str, optional
        Name of the task in GluonNLP, which downloads its data.
    data_dir_variable : str, optional
        Environment variable with the folder of its data, as GluonNLP's README sets it.
    tolerant : bool
        The published files have broken rows: skip and count these instead of refusing the file.
    exact : bool
        Refuse rows with more fields than columns, which a TAB inside a text makes.
    """

    name: str
    layouts: Tuple[Layout, ...]
    labels: Optional[Tuple[str, ...]] = None
    metrics: Tuple[str, ...] = ('accuracy',)
    regression: bool = False
    label_aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    label_range: Optional[Tuple[float, float]] = None
    folders: Tuple[str, ...] = ()
    files: Mapping[str, Tuple[str, ...]] = dataclasses.field(default_factory=dict)
    submissions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gluonnlp_name: Optional[str] = None
    data_dir_variable: Optional[str] = None
    tolerant: bool = False
    exact: bool = False

    @property
    def is_pair(self):
        """Whether an example has two texts."""
        return len(self.layouts[0].text) == 2

    @property
    def num_labels(self):
        """Number of the model's outputs: the number of classes, or 1 for regression."""
        return 1 if self.regression else len(self.require_labels())

    @property
    def primary_metric(self):
        """Name of the metric that compares epochs; higher is better for all metrics."""
        return self.metrics[0]

    @property
    def segments(self):
        """All segments: train, dev sets, test sets."""
        return tuple(self.files)

    @property
    def dev_segments(self):
        """``('dev',)``, or for MNLI its two; empty where a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('dev'))

    @property
    def test_segments(self):
        """``('test',)``, or for MNLI its two; empty where a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('test'))

    def require_labels(self):
        """The names of the classes."""
        if self.labels is None:
            raise InputError(
                f'the labels of task {self.name!r} are not known; name them, or give the training '
                'file from which they are read'
            )
        return self.labels

    def parse_label(self, text):
        """The label written as `text`.

        Returns
        -------
        str or float
            The class's name with aliases resolved; for regression the number.

        Raises
        ------
        InputError
            If it is none of the task's labels; the message says what is expected.
        """
        text = text.strip()
        if not self.regression:
            label = self.label_aliases.get(text, text)
            if label not in self.require_labels():
                expected = ', '.join((*self.labels, *self.label_aliases))
                raise InputError(f'unknown label {text!r}; expected one of: {expected}')
            return label
        low, high = self.label_range or (-math.inf, math.inf)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not low <= value <= high:
            bounds = f' from {low:g} to {high:g}' if self.label_range else ''
            raise InputError(f'label {text!r} is not a number{bounds}')
        return value

    def label_id(self, label):
        """The class's id of `label` for the loss; for regression the number."""
        return float(label) if self.regression else self.require_labels().index(label)

    def submission_file(self, segment):
        """Name of the file of predictions on test `segment`, such as ``MNLI-mm.tsv``."""
        if segment not in self.submissions:
            raise UnknownNameError.of(f'test set of {self.name}', segment, self.submissions)
        return self.submissions[segment]

    def format_prediction(self, prediction):
        """A prediction in GLUE's submission form, below the header ``index, prediction``.

        Parameters
        ----------
        prediction : int or float
            The class's id; for regression the model's output, which is clipped to the labels'
            range.
        """
        if not self.regression:
            return self.require_labels()[int(prediction)]
        if self.label_range:
            low, high = self.label_range
            prediction = min(max(float(prediction), low), high)
        return f'{float(prediction):.3f}'


def _names(*segments):
    """File names of segments that are named after them."""
    return {segment: (f'{segment}.tsv', f'{segment}.txt') for segment in segments}


_SEGMENTS = _names('train', 'dev', 'test')
_PAIR = ('sentence1', 'sentence2')
_ENTAILMENT = ('not_entailment', 'entailment')
_NLI = ('neutral', 'entailment', 'contradiction')
_BINARY = ('0', '1')

_TASKS = [
    Task(
        'MRPC',
        (Layout(('#1 String', '#2 String'), 'Quality'),),
        _BINARY,
        ('accuracy', 'f1'),
        folders=('MRPC', 'mrpc'),
        files=_SEGMENTS,
        submissions={'test': 'MRPC.tsv'},
        gluonnlp_name='MRPC',
    ),
    Task(
        'QQP',
        (Layout(('question1', 'question2'), 'is_duplicate'),),
        _BINARY,
        ('accuracy', 'f1'),
        folders=('QQP', 'qqp'),
        files=_SEGMENTS,
        submissions={'test': 'QQP.tsv'},
        gluonnlp_name='QQP',
        tolerant=True,  # some rows of GLUE's training file are cut short
    ),
    Task(
        'QNLI',
        (Layout(('question', 'sentence'), 'label'),),
        _ENTAILMENT,
        folders=('QNLI', 'qnli'),
        files=_SEGMENTS,
        submissions={'test': 'QNLI.tsv'},
        gluonnlp_name='QNLI',
    ),
    Task(
        'RTE',
        (Layout(_PAIR, 'label'),),
        _ENTAILMENT,
        folders=('RTE', 'rte'),
        files=_SEGMENTS,
        submissions={'test': 'RTE.tsv'},
        gluonnlp_name='RTE',
    ),
    Task(
        'STS-B',
        (Layout(_PAIR, 'score'),),
        metrics=('pearson', 'spearman'),
        regression=True,
        label_range=(0.0, 5.0),
        folders=('STS-B', 'STSB', 'sts-b'),
        files=_SEGMENTS,
        submissions={'test': 'STS-B.tsv'},
        gluonnlp_name='STS-B',
    ),
    Task(
        'CoLA',
        # train and dev: source, label, the author's mark, sentence; test: index, sentence
        (Layout(('sentence',)), Layout((3,), 1, header=False, width=4)),
        _BINARY,
        ('matthews',),
        folders=('CoLA', 'cola'),
        files=_SEGMENTS,
        submissions={'test': 'CoLA.tsv'},
        gluonnlp_name='CoLA',
    ),
    Task(
        'MNLI',
        (Layout(_PAIR, 'gold_label'),),
        _NLI,
        folders=('MNLI', 'mnli'),
        files=_names('train', 'dev_matched', 'dev_mismatched', 'test_matched', 'test_mismatched'),
        submissions={'test_matched': 'MNLI-m.tsv', 'test_mismatched': 'MNLI-mm.tsv'},
        gluonnlp_name='MNLI',
    ),
    Task(
        'WNLI',
        (Layout(_PAIR, 'label'),),
        _BINARY,
        folders=('WNLI', 'wnli'),
        files=_SEGMENTS,
        submissions={'test': 'WNLI.tsv'},
        gluonnlp_name='WNLI',
    ),
    Task(
        'SST',
        (Layout(('sentence',), 'label'),),
        _BINARY,
        folders=('SST-2', 'SST', 'sst'),
        files=_SEGMENTS,
        submissions={'test': 'SST-2.tsv'},
        gluonnlp_name='SST',
    ),
    Task(
        'XNLI',
        (
            Layout(('text_a', 'text_b'), 'label'),  # Baidu's edition, Chinese only
            Layout(_PAIR, 'gold_label', where=('language', 'zh')),  # XNLI 1.0
            Layout(('premise', 'hypo'), 'label'),  # XNLI-MT 1.0, MNLI's training part translated
        ),
        _NLI,
        label_aliases={'contradictory': 'contradiction'},  # so spelt in XNLI-MT
        folders=('XNLI', 'xnli', 'task_data/xnli', 'XNLI-1.0', 'XNLI-MT-1.0/multinli'),
        files={
            'train': ('train.tsv', 'train.txt', 'multinli.train.zh.tsv'),
            'dev': ('dev.tsv', 'dev.txt', 'xnli.dev.tsv'),
            'test': ('test.tsv', 'test.txt', 'xnli.test.tsv'),
        },
        submissions={'test': 'XNLI.tsv'},
        gluonnlp_name='XNLI',
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
    Task(
        'LCQMC',
        (
            Layout(('text_a', 'text_b'), 'label'),  # Baidu's edition
            Layout((0, 1), 2, header=False, width=3),
            Layout((0, 1), header=False, width=2),
        ),
        _BINARY,
        folders=('LCQMC', 'lcqmc', 'task_data/lcqmc'),
        files=_SEGMENTS,
        submissions={'test': 'LCQMC.tsv'},
        gluonnlp_name=None,  # may not be redistributed
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
    Task(
        'ChnSentiCorp',
        (
            Layout(('text_a',), 'label'),  # Baidu's edition
            Layout((0,), 1, header=False, width=2),
            Layout((0,), header=False, width=1),
        ),
        _BINARY,
        label_aliases={'negative': '0', 'positive': '1'},
        folders=('ChnSentiCorp', 'chnsenticorp', 'task_data/chnsenticorp'),
        files=_SEGMENTS,
        submissions={'test': 'ChnSentiCorp.tsv'},
        gluonnlp_name='ChnSentiCorp',
        data_dir_variable='BAIDU_ERNIE_DATA_DIR',
    ),
]
_BY_NAME: Dict[str, Task] = {task.name.lower(): task for task in _TASKS}
_ALIASES = {'sst-2': 'sst', 'sst2': 'sst', 'stsb': 'sts-b'}


def list_tasks():
    """Names of the tasks, as their authors write them."""
    return [task.name for task in _TASKS]


def get_task(name):
    """The task called `name`, in whatever case; SST is also SST-2.

    Returns
    -------
    Task

    Raises
    ------
    UnknownNameError
        If there is none; the message lists all tasks.
    """
    key = name.lower()
    key = _ALIASES.get(key, key)
    if key not in _BY_NAME:
        raise UnknownNameError.of('task', name, list_tasks())
    return _BY_NAME[key]


def custom_task(
    text_columns,
    label_column=None,
    labels=None,
    regression=False,
    header=None,
    metrics=None,
    files=None,
    name='custom',
):
    """A task in the user's TSV files (UTF-8, fields separated by TABs and never quoted).

    Parameters
    ----------
    text_columns : sequence of str or int
        One column, or two for pairs: names of the header, or positions from 0. A string of digits
        is a position.
    label_column : str or int, optional
        None where there are only test files.
    labels : sequence of str, optional
        Names of the classes in the order of their ids. None: ``readers.infer_labels`` takes them
        from the training file, sorted.
    regression : bool
        Labels are real numbers.
    header : bool, optional
        Whether the files' first line names the columns. None: it does if any column is given by
        name.
    metrics : sequence of str, optional
        Default: Pearson and Spearman for regression, else accuracy, and F1 of the last label where
        there are two.
    files : mapping of str to str
        Paths of the segments' files: ``{'train': ..., 'dev': ..., 'test': ...}``.
    name : str

    Returns
    -------
    Task

    Raises
    ------
    InputError
        If there is not one or two text columns, a column is given twice, names are given for files
        without a header, labels for a regression, a training or dev file without a label column;
        or if there are fewer than two labels.
    """
    text = tuple(_column(column) for column in text_columns)
    label = None if label_column is None else _column(label_column)
    columns = text if label is None else (*text, label)
    if len(text) not in (1, 2):
        given = ' '.join(map(str, text))
        raise InputError(f'text_columns {given!r}: give one, or two for sentence pairs')
    if len(set(columns)) != len(columns):
        raise InputError(
            'text_columns and label_column: columns given twice: ' + ', '.join(map(str, columns))
        )
    named = any(isinstance(column, str) for column in columns)
    if named and header is False:
        raise InputError('columns of files without a header are given by position, from 0')
    if labels is not None:
        labels = tuple(str(label) for label in labels)
        if regression:
            raise InputError('a regression has no label names: give labels or regression, not both')
        if len(set(labels)) != len(labels) or len(labels) < 2:
            raise InputError(f'labels {", ".join(labels)!r}: give two or more different ones')
    if label is None and any(not segment.startswith('test') for segment in files or {}):
        raise InputError('training and dev files need a label_column: name it')
    files = {segment: (str(path),) for segment, path in (files or {}).items() if path is not None}
    return with_default_metrics(
        Task(
            name,
            (Layout(text, label, header=named if header is None else header),),
            labels,
            tuple(metrics or ()),
            regression=regression,
            files=files,
            submissions={
                segment: f'{name}{segment[4:].replace("_", "-")}.tsv'
                for segment in files
                if segment.startswith('test')
            },
            exact=True,
        )
    )


def with_default_metrics(task):
    """`task` with the default metrics for its labels, if it has none yet."""
    if task.metrics or (task.labels is None and not task.regression):
        return task
    if task.regression:
        metrics = ('pearson', 'spearman')
    else:
        metrics = ('accuracy', 'f1') if len(task.labels) == 2 else ('accuracy',)
    return dataclasses.replace(task, metrics=metrics)


def _column(column):
    """A position as an int, whether it comes as one or as digits; a name as it is."""
    if isinstance(column, str):
        return int(column) if column.isdigit() else column
    if isinstance(column, int) and column >= 0:
        return column
    raise InputError(f'column {column!r}: give a name of the header, or a position from 0')
