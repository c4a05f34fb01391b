"""Data sets of classification: the published ones, and what says how a set is read.

Sources: GLUE (Wang et al. 2018); XNLI (Conneau et al. 2018); LCQMC (Liu et al. 2018); ChnSentiCorp
(Tan Songbo). They are in ``data_sets.json``: what is predicted, its ``targets``, and fields of
`DataSet`. The labels are in the order of GluonNLP 0.10's tasks, except where a target has other
``orders``.
"""

import dataclasses
import itertools
import os
import pathlib
from collections.abc import Mapping

from ..errors import InputError, UnknownNameError, Where
from ..records import is_table, read_records
from ..util.reading import read_json
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
        """``('dev',)``, or for MNLI its two; empty if the user's rows have no such set."""
        return tuple(segment for segment in self.files if segment.startswith('dev'))

    @property
    def test_segments(self):
        """``('test',)``, or for MNLI its two; empty if the user's rows have no such set."""
        return tuple(segment for segment in self.files if segment.startswith('test'))

    def with_labels(self, labels):
        """Return the data set with other labels, or in another order."""
        target = dataclasses.replace(self.target, labels=tuple(labels))
        return dataclasses.replace(self, target=target)

    def find(self, segment, data_dir=None):
        """Return the path or rows of a segment; None if GluonNLP downloads it."""
        if self.is_custom:
            return self.files[segment]
        own = os.environ.get(self.data_dir_variable or '') if data_dir is None else data_dir
        folders = [os.path.join(own, name) for name in (*self.folders, '') if own]
        if data_dir is None:  # a folder of the set, or the one that GLUE's program fills
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


def _tuples(value):
    """Return a value of JSON with tuples for its lists."""
    if isinstance(value, dict):
        return {name: _tuples(each) for name, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _data_set(name, target, layouts, glue_name=None, about=None, **fields):
    """Return a data set whose folders, files and name in GluonNLP are the usual ones."""
    own, lower, segments = glue_name or name, name.lower(), ('train', 'dev', 'test')
    usual = {
        'folders': (own, name, lower, name.replace('-', ''), f'task_data/{lower}'),
        'files': {segment: (f'{segment}.tsv', f'{segment}.txt') for segment in segments},
        'submissions': {'test': f'{own}.tsv'},
        'gluonnlp_name': name,
    }
    fields_of_target = _CONTENT['targets'][target]
    target = (Number if 'bounds' in fields_of_target else Classes)(**fields_of_target)
    return DataSet(name, target, tuple(Layout(**each) for each in layouts), **{**usual, **fields})


_CONTENT = _tuples(read_json(pathlib.Path(__file__).with_name('data_sets.json')))
_TASKS = [_data_set(name, **fields) for name, fields in _CONTENT['data_sets'].items()]
_BY_NAME = {task.name.lower(): task for task in _TASKS}
_BY_NAME.update((name, _BY_NAME[of.lower()]) for name, of in _CONTENT['other_names'].items())


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
