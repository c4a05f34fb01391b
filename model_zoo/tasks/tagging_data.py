"""The rows of tagging: words with labels, of CoNLL's files, tables and texts with entities.

Files are as in the CoNLL shared tasks: one word per line, an empty line between sentences. Lines
have columns; the first is usually the word and the last its tag. Lines that begin with
``-DOCSTART-`` separate documents and aren't sentences. Comments and the words' numbers are as in
CoNLL-U and GermEval. Tables of JSON and `datasets` have a row per sentence.
"""

import contextlib
import itertools
import numbers
import re
from typing import NamedTuple

from ..errors import InputError, Where
from ..inference.entities import OUTSIDE
from ..records import TEXTS, choose_columns, find_column, read_records
from ..tokenization.basic import _is_punctuation
from ..util.files import atomic_write
from ..util.reading import read_lines

__all__ = ['Sentence', 'read_conll', 'write_conll']

DOCUMENT = '-DOCSTART-'


class Sentence(NamedTuple):
    """The words of a sentence.

    Parameters
    ----------
    labels : tuple of str, or None
        One per word; `IGNORED` where a word has none, and so no loss and no part in scores.
    line : int
        Number of the first word's line in the file, from 1.
    spelling : str, optional
        The text; by default the words with blanks between them, but none before a full stop.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...] | None
    line: int
    spelling: str | None = None

    @property
    def label(self):
        """The labels, or None if no word has one."""
        return self.labels if {*(self.labels or ())} - {IGNORED} else None

    @property
    def text(self):
        """The text that a model reads."""
        return self.spelling or _NO_BLANKS.sub('', ' '.join(self.words))

    def ends(self):
        """Return where each word ends in the text."""
        text, end = self.text, 0
        return [end := text.index(word, end) + len(word) for word in self.words]


# between words that stand together in a text
_NO_BLANKS = re.compile(r'(?<=[^\s\]]) (?=[.,;:!?)](?: |$))|(?<=\() ')


class Sentences(list):
    """Sentences; `source` is their file in CoNLL's format, whose lines the predictions repeat."""

    source = None


IGNORED = '-100'  # as in PyTorch's losses


def read_conll(path, word_column=0, label_column=-1, encoding=None):
    """Read a file of tagged words."""
    columns = [word_column] if label_column is None else [word_column, label_column]
    sentences, width = [], None
    lines = _lines(path, word_column, encoding)
    for _, block in itertools.groupby(lines, lambda line: line[-1] == BREAK):
        rows, first = [], None
        for number, text, fields, kind in block:
            if kind != WORD:
                continue
            where, first = Where(str(path), number), first or number
            if width is None:
                width = len(fields)
                if len({c % width for c in columns if -width <= c < width}) < len(columns):
                    problem = (
                        f'`text_column` {columns[0]} and `label_column` {columns[-1]} must be two '
                        f'of {width} columns, from 0; `no_test_labels` is for files without labels'
                    )
                    raise InputError(problem, where=where)
            if len(fields) != width or not all(fields[column] for column in columns):
                problem = f'a word and {width} columns are expected, as in the lines before'
                raise InputError(f'{problem}: {text.strip()!r:.80}', where=where)
            rows.append([fields[column] for column in columns])
        if rows:
            words, *labels = zip(*rows)
            sentences.append(Sentence(words, labels[0] if labels else None, first))
    if not sentences:
        raise InputError(f'{str(path)!r} has no sentences: one word per line is expected')
    if all(_NUMBER.fullmatch(word) for sentence in sentences for word in sentence.words):
        columns = '`text_column` and `label_column` are 1 and 3 in CoNLL-U, and 1 and 2 in GermEval'
        raise InputError(f'{path}: column {word_column} numbers the words; {columns}')
    return sentences


WORD, BREAK, COMMENT, OTHER = 'word', 'break', 'comment', 'other'
# number of a word; of a range that is written as one, 1-2; of a word that is not written, 8.1
_NUMBER = re.compile(r'\d+([-.]\d+)?')


def _lines(path, word_column, encoding):
    """Yield (number, text, columns, kind) of each line.

    A comment begins with # where a sentence begins, and has another number of columns than words
    have. Where the first column numbers the words, as in CoNLL-U, ranges and words that are not
    written are of kind `OTHER`.
    """
    lines = [(number, text, _fields(text)) for number, text in read_lines(path, encoding)]
    words = (line for line in lines if line[2][:1] not in ([], [DOCUMENT]) and line[1][0] != '#')
    shapes, kind = [(len(fields), '\t' in text) for _, text, fields in words][:1], BREAK
    for number, text, fields in lines:
        begins = kind in (BREAK, COMMENT)
        if fields[:1] in ([], [DOCUMENT]):
            kind = BREAK
        elif begins and text[0] == '#' and (len(fields), '\t' in text) not in shapes:
            kind = COMMENT
        else:
            is_first = word_column in (0, -len(fields))
            is_word = is_first or fields[0].isdigit() or not _NUMBER.fullmatch(fields[0])
            kind = WORD if is_word else OTHER
        yield number, text, fields, kind


def _fields(text):
    """Return the columns of a line; none of an empty line."""
    text = text.rstrip('\r\n')
    if not text.strip():
        return []
    if '\t' in text:
        return [field.strip(' ') for field in text.split('\t')]
    # not split(), which parts words at no-break spaces, too
    return [field for field in text.split(' ') if field]


def write_conll(path, source, predictions, word_column=0, label_column=-1, encoding=None):
    """Copy a file with an additional column: the predicted label of each word.

    The other columns are the same as in the source. With the correct labels in the column before,
    CoNLL's own script ``conlleval`` can score the result.
    """
    labels = itertools.chain(*predictions)
    with atomic_write(path) as file:
        for _, text, fields, kind in _lines(source, word_column, encoding):
            text = text.rstrip('\r\n')
            if not fields or kind == COMMENT:
                file.write(f'{text}\n' if fields else '\n')
                continue
            label = next(labels) if kind == WORD else '_' if kind == OTHER else OUTSIDE
            if kind == BREAK and label_column is not None:
                with contextlib.suppress(IndexError):
                    label = fields[label_column]
            text = text.rstrip(' ')
            separator = '\t' if '\t' in text else ' '
            file.write(f'{text}{separator}{label}\n')


# usual names of columns: of words and their labels, of a text's entities, and of their parts
_WORDS = (('words',), ('tokens',))
_LABELS = ('labels', 'tags', 'ner_tags', 'pos_tags', 'upos', 'chunk_tags')
_SPANS = ('spans', 'entities', 'ents')
_SPAN = (('start', 'start_offset'), ('end', 'end_offset'), ('label',))


def read_rows(source, segment, text_column=None, label_column=None, encoding=None):
    """Read sentences from rows with a list of words each, and a list of labels; or with a text.

    Returns the sentences; the numbers among the labels, by their texts; and the labels' column.
    """
    parts = {2: ('words', 'labels'), 1: ('words',)}
    sentences, given, column = [], {}, None
    for where, row in read_records(source, parts, segment, encoding=encoding):
        if not sentences:
            wanted, usual = text_column and [text_column], (*_WORDS, *TEXTS)
            if find_column(row, _SPANS):
                usual = *TEXTS, *_WORDS  # the tools' tokens are no words
            (words_column,) = choose_columns(row, wanted, usual, 'text_column', where)
            is_text = isinstance(row[words_column], str)
            column = find_column(row, (*_SPANS, 'label', 'labels') if is_text else _LABELS)
            if label_column is not None and (segment != 'test' or label_column in row):
                (column,) = choose_columns(row, [label_column], (), 'label_column', where)
        words, labels, text = row.get(words_column), row.get(column), None
        if is_text and isinstance(words, str) and words.strip():
            if row.get('answer') in ('reject', 'ignore'):  # Prodigy's
                continue
            text, (words, labels) = words, _words_of_text(words, labels, where)
        if words is None or isinstance(words, str) or not len(words):
            problem = f'a {"text" if is_text else "list of words"} is expected: {words!r:.80}'
            raise InputError(problem, where=where)
        if labels is not None:
            is_list = not isinstance(labels, str) and len(labels) == len(words)
            if not is_list or not all(isinstance(each, (str, numbers.Integral)) for each in labels):
                problem = f'{len(words)} labels are expected, texts or numbers: {labels!r:.80}'
                raise InputError(problem, where=where)
            given.update((str(each), int(each)) for each in labels if not isinstance(each, str))
        labels = None if labels is None else tuple(map(str, labels))
        if sentences and (labels is None) != (sentences[0].labels is None):
            raise InputError('all sentences must have labels, or none', where=where)
        sentences.append(Sentence(tuple(map(str, words)), labels, len(sentences), text))
    return sentences, given, column


def _words_of_text(text, entities, where):
    """Return the words of a text, which end at entities' edges, too, and their labels or None."""
    if isinstance(entities, dict):  # spaCy's, beside a text
        entities = entities.get('entities')
    spans = [_span(entity, where) for entity in entities or ()]
    edges = {0, len(text), *(edge for span in spans for edge in span[:2])}
    for number, char in enumerate(text):
        if char.isspace() or _is_punctuation(char):
            edges.update((number, number + 1))
    words = [each for each in itertools.pairwise(sorted(edges)) if text[slice(*each)].strip()]
    starts, labels = [start for start, _ in words], {}
    for first, last, label in spans:
        inside = [start for start in starts if first <= start < last <= len(text)]
        if not inside or not labels.keys().isdisjoint(inside):
            problem = f'{first} to {last} is no part of the text, or of another entity, too'
            raise InputError(problem, where=where)
        labels.update((start, f'{"I" if n else "B"}-{label}') for n, start in enumerate(inside))
    labels = None if entities is None else [labels.get(start, OUTSIDE) for start in starts]
    return [text[slice(*each)] for each in words], labels


def _span(entity, where):
    """Return the start, end and label of an entity in a text."""
    span = entity
    if isinstance(entity, dict):
        span = [entity.get(find_column(entity, names)) for names in _SPAN]
    kinds = [type(part) for part in span] if isinstance(span, (list, tuple)) else []
    if kinds != [int, int, str]:
        raise InputError(f'start, end and label are expected: {entity!r:.80}', where=where)
    return span
