"""Files of pairs, triplets and scored pairs of texts."""

import math
from typing import NamedTuple, Optional, Tuple

from ...errors import InputError
from ..tables import given_rows, is_path, read_records

__all__ = ['SentenceExample', 'SentenceSet', 'read_sentences']

#: columns that are taken if none are named: the first of these that a file has
TEXT_COLUMNS = (('sentence1', 'sentence2'), ('anchor', 'positive', 'negative'),
                ('anchor', 'positive'), ('query', 'answer'))  # fmt: skip
SCORE_COLUMN = 'score'


class SentenceExample(NamedTuple):
    """Texts that belong together.

    Parameters
    ----------
    texts : tuple of str
        Two that match; or two with a score; or a text, one that matches it and one that doesn't.
    score : float or None
        How similar the two are, as the file has it.
    """

    texts: Tuple[str, ...]
    score: Optional[float] = None


class SentenceSet(list):
    """A list of examples, all of one kind: 'scored', 'pairs' or 'triplets'."""

    def __init__(self, kind, examples=()):
        super().__init__(examples)
        self.kind = kind


def read_sentences(source, text_columns=None, score_column=None, segment='data'):
    """Read texts that belong together.

    Parameters
    ----------
    source : str, or iterable of rows
        A table in UTF-8, or a folder of `datasets`; see `model_zoo.tasks.tables.read_rows`. The
        first line of CSV and TSV names the columns.
    text_columns : sequence of str, optional
        Two or three. By default sentence1 and sentence2; or anchor, positive and, if it's there,
        negative; or query and answer.
    score_column : str, optional
        Of two texts; by default ``score``, if there is such a column.
    segment : str
        For messages about rows in memory.

    Returns
    -------
    SentenceSet

    Raises
    ------
    InputError
        If the file can't be read or isn't such a file; the message names the line.
    """
    if text_columns is not None and len(text_columns) not in (2, 3):
        raise InputError(f'`text_columns` {" ".join(text_columns)!r}: give two or three')
    if score_column is not None and text_columns is not None and len(text_columns) == 3:
        raise InputError(f'`score_column` {score_column!r} goes with two texts, not with three')
    kind, examples, records = None, [], _records(source, segment)
    for place, row in records:
        if kind is None:
            text_columns = text_columns or _known_columns(source, row)
            if score_column is None and len(text_columns) == 2 and SCORE_COLUMN in row:
                score_column = SCORE_COLUMN
            kind = 'triplets' if len(text_columns) == 3 else 'scored' if score_column else 'pairs'
        texts = tuple(_text(row, name, place) for name in text_columns)
        score = _score(row, score_column, place) if kind == 'scored' else None
        examples.append(SentenceExample(texts, score))
    if kind is None:
        raise InputError(f'{source!r} has no examples')
    return SentenceSet(kind, examples)


def _records(source, segment):
    if is_path(source):
        return ((f'{source}, {place}', row) for place, row in read_records(source))
    rows = list(source) if not hasattr(source, 'columns') else source
    # a third part is a score, or a text that doesn't match
    first = rows[0] if isinstance(rows, list) and rows else None
    scored = isinstance(first, tuple) and len(first) == 3 and not isinstance(first[2], str)
    third = ('sentence1', 'sentence2', 'score') if scored else TEXT_COLUMNS[1]
    return given_rows(rows, {2: TEXT_COLUMNS[0], 3: third}, segment)


def _known_columns(source, row):
    for names in TEXT_COLUMNS:
        if all(name in row for name in names):
            return names
    raise InputError(
        f'{source!r} has the columns {", ".join(map(str, row))}: name those of the texts with '
        '`text_columns`'
    )


def _text(row, name, place):
    if name not in row:
        raise InputError(f'{place}: there is no column {name!r}, only {", ".join(map(str, row))}')
    if not isinstance(row[name], str) or not row[name].strip():
        raise InputError(f'{place}: {name} is {row[name]!r}, and must be a text')
    return row[name].strip()


def _score(row, name, place):
    try:
        score = float(row[name])
    except KeyError:
        raise InputError(
            f'{place}: there is no column {name!r}, only {", ".join(map(str, row))}'
        ) from None
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise InputError(f'{place}: {name} is {row[name]!r}, and must be a number')
    return score
