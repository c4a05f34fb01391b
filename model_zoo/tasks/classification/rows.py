"""From the rows of a table to examples."""

import itertools
from typing import NamedTuple, Optional, Union

from ...errors import InputError, did_you_mean
from ..tables import has_named_fields, read_rows

__all__ = [
    'BrokenRow',
    'Example',
    'UnknownLabel',
    'check_width',
    'expected_columns',
    'make_example',
    'recognize',
    'short',
]


class Example(NamedTuple):
    """One row of a task.

    Parameters
    ----------
    guid : str
        What GLUE's submissions call `index`: the test file's own, else the row's number from 0.
    text_a : str
    text_b : str or None
        The second text of a pair.
    label : str, float or None
        Name of the class (aliases resolved), or a regression's number. None in test sets.
    """

    guid: str
    text_a: str
    text_b: Optional[str]
    label: Optional[Union[str, float]]


class BrokenRow(InputError):
    """A row that can't be used. Its message lacks the file and the line."""


class UnknownLabel(BrokenRow):
    """A row whose label is none of the task's."""


def expected_columns(task):
    """The layouts of a task's files, for messages."""
    return ', or '.join(map(str, task.layouts))


def recognize(task, path, is_test):
    """Find which of the task's layouts a file has, by its first line.

    Returns
    -------
    layout : Layout
    columns : dict
        Positions: 'text' (list), 'label' (or None), 'guid' (or None), 'where'.
    width : int
        Number of columns.
    rows : iterator
        The rows that hold examples.
    """
    rows = read_rows(path)
    place, cells = next(rows, (None, None))
    if place is None:
        raise InputError(f'{path} is empty; expected {expected_columns(task)}, then rows')
    names = [cell.strip() for cell in cells]
    wanted = []
    for layout in task.layouts:
        if layout.label is None and not is_test:
            continue
        wanted = [*layout.text]
        if layout.where:
            wanted.append(layout.where[0])
        label = None if is_test else layout.label  # test sets may have placeholders there
        if label is not None:
            wanted.append(label)
        if not layout.header:
            if has_named_fields(path):
                raise InputError(f'{path}: columns are given by their names: {", ".join(cells)}')
            if layout.width not in (None, len(cells)):
                continue
            columns = {'text': list(layout.text), 'label': label, 'guid': None}
            # the user's own file without a header: as wide as its first row, or as is needed
            width = max(len(cells), *(column + 1 for column in wanted))
            return layout, columns, width, itertools.chain([(place, cells)], rows)
        if not all(_position(names, column) is not None for column in wanted):
            continue
        columns = {
            'text': [_position(names, column) for column in layout.text],
            'label': None if label is None else _position(names, label),
            'guid': next((names.index(key) for key in ('index', 'id') if key in names), None)
            if is_test
            else None,
        }
        if layout.where:
            columns['where'] = _position(names, layout.where[0])
        return layout, columns, len(names), rows
    shown = ', '.join(map(repr, cells))
    shown = shown if len(shown) <= 120 else shown[:117] + '...'
    flags = hint = ''
    if task.names_its_files:
        flags = ' (`text_columns`, `label_column`)'
        hint = ''.join(did_you_mean(each, names) for each in wanted if each not in names)
        if len(cells) == 1 and ',' in cells[0] and not str(path).endswith('.csv'):
            hint = '; with commas between its columns, the file must be called .csv'
    raise InputError(
        f'{path}, {place}: not the columns of {task.name}; expected '
        f'{expected_columns(task)}{flags}; found {len(cells)} columns: {shown}{hint}'
    )


def _position(names, column):
    """Place of a column in a header, or None where it isn't there."""
    if isinstance(column, int):
        return column if column < len(names) else None
    return names.index(column) if column in names else None


def check_width(cells, width, exact):
    """Raise `BrokenRow` if a row has fewer fields than columns, or more where it must be exact."""
    if len(cells) < width:
        raise BrokenRow(
            f'{len(cells)} columns instead of {width}: {short(" | ".join(cells))}; fields are '
            'separated by one TAB each'
        )
    if exact and len(cells) > width and any(cell.strip() for cell in cells[width:]):
        raise BrokenRow(
            f'{len(cells)} columns instead of {width}: {short(" | ".join(cells))}; a text must '
            'not hold a TAB'
        )


def short(text):
    """The beginning of a text, for messages."""
    return repr(text if len(text) <= 80 else text[:77] + '...')


def make_example(task, cells, columns, number, parse_label):
    """The example in a row of fields."""
    cells = [_as_text(cell) for cell in cells]
    used = [*columns['text'], *(() if columns['label'] is None else (columns['label'],))]
    if any(cells[column] is None for column in used):
        raise BrokenRow('a list or an object where a text or a label is expected')
    texts = [cells[column].strip() for column in columns['text']]
    # QQP has rows with an empty question, which everybody keeps
    if not task.tolerant and not all(texts):
        which = columns['text'][texts.index('')]
        raise BrokenRow(f'the text in column {which} (counted from 0) is empty')
    label = None
    if columns['label'] is not None:
        if not cells[columns['label']].strip():
            raise BrokenRow(f'the label in column {columns["label"]} (counted from 0) is empty')
        try:
            label = parse_label(cells[columns['label']])
        except InputError as error:
            raise UnknownLabel(str(error)) from None
    guid = cells[columns['guid']].strip() if columns['guid'] is not None else ''
    return Example(guid or str(number), texts[0], texts[1] if len(texts) > 1 else None, label)


def _as_text(value):
    """A field of JSON as TSV would have it; None for a list or an object."""
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None
