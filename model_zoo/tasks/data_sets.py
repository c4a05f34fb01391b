"""Data sets of classification: the published ones, and what says how a set is read.

Sources: GLUE (Wang et al. 2018); XNLI (Conneau et al. 2018); LCQMC (Liu et al. 2018); ChnSentiCorp
(Tan Songbo). The labels are in the order of GluonNLP 0.10's tasks, except where a target has other
``orders``.
"""

import dataclasses
import itertools
import os
from collections.abc import Mapping

from ..errors import InputError, UnknownNameError, Where
from ..records import is_table, read_records
from .tables import downloading
from .targets import Classes, Number, Target

Column = str | int  # a header's name, or a position from 0


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a file; in published files TABs separate them, and nothing is quoted.

    Columns are names of the header or positions; labels may have a column each. Without a header,
    `width` is the number of columns by which a published file is recognised. Only rows with the
    value `where[1]` in column `where[0]` are read (XNLI has 15 languages in a file).
    """

    text: tuple[Column, ...]
    label: Column | tuple[Column, ...] | None = None
    header: bool = True
    width: int | None = None
    where: tuple[str, str] | None = None

    def fits(self, cells, segment):
        """Return whether a published file whose first line has these cells is of this layout."""
        columns = {*self.text, *(self.where or ())[:1]}
        if not segment.startswith('test'):  # which may have placeholders where the label is
            columns.add(self.label)
        if self.header:
            return columns <= {cell.strip() for cell in cells}
        return self.width == len(cells) and None not in columns


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set of classification or regression: a published one, or the user's own rows.

    Parameters
    ----------
    name : str
    target : Target
        What is predicted.
    layouts : tuple of Layout
        Tried in this order on a published file's first line.
    files : mapping
        Segment -> names that its file may have; for the user's own rows, its path or rows.
    submissions : mapping of str to str
        Test segment -> name of the file of predictions (GLUE's own names for its tasks).
    is_custom : bool
        Whether these are the user's own rows.
    folders : tuple of str
        Names that the set's folder may have inside a directory of several sets.
    gluonnlp_name : str, optional
        Name of the set in GluonNLP, which downloads its data.
    data_dir_variable : str, optional
        Environment variable with the folder of its data, as GluonNLP's README sets it.
    tolerant : bool
        The published files have broken rows: skip and count these instead of refusing the file.
    encoding : str, optional
        Encoding of the user's text files; default: UTF-8.
    skip_empty : bool
        Leave out the user's rows without a text or a label.
    given : dict
        Text of a label -> the number that stands for it in the user's rows in memory; filled when
        they are read.
    noted : dict
        What the first set that was read says of all: ``vectors``, the length of its vectors of 0
        and 1, or 0.
    """

    name: str
    target: Target
    layouts: tuple[Layout, ...]
    files: Mapping[str, object]
    submissions: Mapping[str, str]
    is_custom: bool = False
    folders: tuple[str, ...] = ()
    gluonnlp_name: str | None = None
    data_dir_variable: str | None = None
    tolerant: bool = False
    encoding: str | None = None
    skip_empty: bool = False
    given: dict = dataclasses.field(default_factory=dict, compare=False)
    noted: dict = dataclasses.field(default_factory=dict, compare=False)

    @property
    def labels(self):
        """Names of the classes in the order of the model's outputs, or None."""
        return self.target.labels

    @property
    def num_labels(self):
        """Number of the model's outputs: the number of classes, or 1 for numbers."""
        return self.target.num_outputs

    @property
    def is_pair(self):
        """Whether an example has two texts."""
        return len(self.layouts[0].text) == 2

    @property
    def dev_segments(self):
        """``('dev',)``, or for MNLI its two; empty if a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('dev'))

    @property
    def test_segments(self):
        """``('test',)``, or for MNLI its two; empty if a custom task has no such file."""
        return tuple(segment for segment in self.files if segment.startswith('test'))

    def with_labels(self, labels):
        """Return the task with other labels, or in another order."""
        target = dataclasses.replace(self.target, labels=tuple(labels))
        return dataclasses.replace(self, target=target)

    def find(self, segment, data_dir=None):
        """Return the path or rows of a segment; None if GluonNLP downloads it."""
        if self.is_custom:
            return self.files[segment]
        own = os.environ.get(self.data_dir_variable or '') if data_dir is None else data_dir
        folders = [os.path.join(own, name) for name in (*self.folders, '') if own]
        if data_dir is None:  # a folder of the task, or the one that GLUE's program fills
            folders += [os.path.join(x, name) for x in ('', 'glue_data') for name in self.folders]
        paths = (os.path.join(folder, name) for folder in folders for name in self.files[segment])
        found = next(filter(is_table, paths), None)
        if found is None and (data_dir is not None or self.gluonnlp_name is None):
            place = '' if data_dir is None else f' in {os.fspath(data_dir)!r}'
            problem = f'there is no {segment} set of {self.name}{place}'
            raise InputError(f'{problem}; {self._advice(segment)}')
        return found

    def _advice(self, segment):
        names = ' or '.join(self.files[segment])
        return f'`data_dir` must be a folder with {names}, or with a folder {self.folders[0]} of it'

    def open(self, source, segment):
        """Return the layout of a source of `find`, and its records."""
        if self.is_custom:
            (layout,), parts = self.layouts, PARTS
            if segment.startswith('test') and self.is_pair:
                parts = {**PARTS, 2: ('text', 'text_pair')}
            options = {'encoding': self.encoding, 'header': layout.header, 'keep_blank': True}
            return layout, read_records(source, parts, segment, **options)
        if source is None:
            from gluonnlp.data import classification

            with downloading(f'the {segment} set of {self.name}', self._advice(segment)):
                rows = classification.get_task(self.gluonnlp_name).get_dataset(segment=segment)
            count, name = len(self.layouts[0].text), f"{self.name}'s {segment} set"
            places = (Where(name, number, unit='row') for number in itertools.count())
            cells = (dict(enumerate(row)) for row in rows)
            return Layout(tuple(range(count)), count), zip(places, cells)
        where, first = next(read_records(source, format='tsv', header=False))
        cells = list(first.values())
        layout = next((each for each in self.layouts if each.fits(cells, segment)), None)
        if layout is None:
            columns = ', or '.join(str([*each.text, each.label]) for each in self.layouts)
            problem = f'{cells!r:.120} are not the columns of {self.name}; expected {columns}'
            raise InputError(problem, where=where)
        options = {'format': 'tsv', 'header': layout.header, 'keep_blank': True}
        records = read_records(source, **options, is_strict=False)
        if layout.where:
            column, value = layout.where
            records = (each for each in records if each[1].get(column, '').strip() == value)
        return layout, records


#: number of parts of a row in memory -> their columns
PARTS = {1: ('text',), 2: ('text', 'label'), 3: ('text', 'text_pair', 'label')}


def _names(*segments):
    """Return the file names of segments that are named after them."""
    return {segment: (f'{segment}.tsv', f'{segment}.txt') for segment in segments}


_PAIR, _TEXTS_A_B = ('sentence1', 'sentence2'), ('text_a', 'text_b')
_NLI = Classes(
    ('neutral', 'entailment', 'contradiction'),
    ('accuracy',),
    aliases={'contradictory': 'contradiction'},  # so spelt in XNLI
    orders={
        'originals': ('contradiction', 'entailment', 'neutral'),
        'hub': ('entailment', 'neutral', 'contradiction'),
    },
)
_ENTAILMENT = Classes(
    ('not_entailment', 'entailment'),
    ('accuracy',),
    orders=dict.fromkeys(('originals', 'hub'), ('entailment', 'not_entailment')),
)


def _binary(*words, metrics=('accuracy',), positive=None):
    """Return the classes 0 and 1; words are their synonyms."""
    return Classes(('0', '1'), metrics, dict(zip(words, '01')), positive=positive)


_F1 = {'metrics': ('accuracy', 'f1'), 'positive': '1'}
_EQUIVALENT = _binary('not_equivalent', 'equivalent', **_F1)
_DUPLICATE = _binary('not_duplicate', 'duplicate', **_F1)
_ACCEPTABLE = _binary('unacceptable', 'acceptable', metrics=('matthews', 'accuracy'))
_POSITIVE = _binary('negative', 'positive')


def _data_set(name, target, *layouts, glue_name=None, **fields):
    """Return a data set whose folders, files and name in GluonNLP are the usual ones."""
    own, lower = glue_name or name, name.lower()
    usual = {
        'folders': (own, name, lower, name.replace('-', ''), f'task_data/{lower}'),
        'files': _names('train', 'dev', 'test'),
        'submissions': {'test': f'{own}.tsv'},
        'gluonnlp_name': name,
    }
    return DataSet(name, target, layouts, **{**usual, **fields})


_MNLI_SETS = 'train', 'dev_matched', 'dev_mismatched', 'test_matched', 'test_mismatched'
_BAIDU = {'data_dir_variable': 'BAIDU_ERNIE_DATA_DIR'}
_TASKS = [
    _data_set('MRPC', _EQUIVALENT, Layout(('#1 String', '#2 String'), 'Quality')),
    # some rows of GLUE's training file are cut short
    _data_set('QQP', _DUPLICATE, Layout(('question1', 'question2'), 'is_duplicate'), tolerant=True),
    _data_set('QNLI', _ENTAILMENT, Layout(('question', 'sentence'), 'label')),
    _data_set('RTE', _ENTAILMENT, Layout(_PAIR, 'label')),
    _data_set('STS-B', Number((0.0, 5.0)), Layout(_PAIR, 'score')),
    # train and dev: source, label, the author's mark, sentence; test: index, sentence
    _data_set('CoLA', _ACCEPTABLE, Layout(('sentence',)), Layout((3,), 1, False, 4)),
    _data_set(
        'MNLI',
        _NLI,
        Layout(_PAIR, 'gold_label'),
        files=_names(*_MNLI_SETS),
        submissions={'test_matched': 'MNLI-m.tsv', 'test_mismatched': 'MNLI-mm.tsv'},
    ),
    _data_set('WNLI', _binary('not_entailment', 'entailment'), Layout(_PAIR, 'label')),
    _data_set('SST', _POSITIVE, Layout(('sentence',), 'label'), glue_name='SST-2'),
    _data_set(
        'XNLI',
        _NLI,
        Layout(_TEXTS_A_B, 'label'),  # Baidu's edition, Chinese only
        Layout(_PAIR, 'gold_label', where=('language', 'zh')),  # XNLI 1.0
        Layout(('premise', 'hypo'), 'label'),  # XNLI-MT 1.0, MNLI's training part translated
        folders=('XNLI', 'xnli', 'task_data/xnli', 'XNLI-1.0', 'XNLI-MT-1.0/multinli'),
        files={
            'train': ('train.tsv', 'train.txt', 'multinli.train.zh.tsv'),
            'dev': ('dev.tsv', 'dev.txt', 'xnli.dev.tsv'),
            'test': ('test.tsv', 'test.txt', 'xnli.test.tsv'),
        },
        **_BAIDU,
    ),
    _data_set(
        'LCQMC',
        _binary(),
        Layout(_TEXTS_A_B, 'label'),  # Baidu's edition
        Layout((0, 1), 2, False, 3),
        Layout((0, 1), None, False, 2),
        gluonnlp_name=None,  # may not be redistributed
        **_BAIDU,
    ),
    _data_set(
        'ChnSentiCorp',
        _POSITIVE,
        Layout(('text_a',), 'label'),  # Baidu's edition
        Layout((0,), 1, False, 2),
        Layout((0,), None, False, 1),
        **_BAIDU,
    ),
]
_BY_NAME = {task.name.lower(): task for task in _TASKS}
_BY_NAME.update({'sst-2': _BY_NAME['sst'], 'sst2': _BY_NAME['sst'], 'stsb': _BY_NAME['sts-b']})


def list_tasks():
    """Return the names of the published sets, as their authors write them."""
    return [task.name for task in _TASKS]


def get_task(name):
    """Return the published set called `name`, in any case; SST is also SST-2.

    Raises
    ------
    UnknownNameError
        If the set is unknown; the message lists all, and custom for the user's own rows.
    """
    if name.lower() not in _BY_NAME:
        raise UnknownNameError.of('task', name, [*list_tasks(), 'custom'])
    return _BY_NAME[name.lower()]
