"""Tagged words as in the CoNLL shared tasks: a word a line, an empty line between sentences.

Lines have columns; the first is usually the word and the last its tag. Lines that begin
with ``-DOCSTART-`` divide documents and are no sentences.
"""

from typing import NamedTuple, Optional, Tuple

from ...errors import InputError
from ...util.files import atomic_write
from ...util.lines import read_lines

__all__ = ['Sentence', 'read_conll', 'write_conll', 'write_sentences']

DOCUMENT = '-DOCSTART-'


class Sentence(NamedTuple):
    """The words of a sentence.

    Parameters
    ----------
    words : tuple of str
    labels : tuple of str, or None
        One per word.
    line : int
        Number of the first word's line in the file, from 1.
    """

    words: Tuple[str, ...]
    labels: Optional[Tuple[str, ...]]
    line: int


def read_conll(path, word_column=0, label_column=-1):
    """Read a file of tagged words.

    Parameters
    ----------
    path : str or os.PathLike
        In UTF-8. Columns are separated by a tab each; in lines without tabs by spaces.
    word_column : int
        From 0; negative ones are counted from the end.
    label_column : int or None
        Likewise. None: labels aren't read.

    Returns
    -------
    list of Sentence

    Raises
    ------
    InputError
        If the file can't be read or has no sentences, or a line lacks a column, has another number
        of columns than the first, or only one for word and label, or almost all labels differ (a
        plain text); the message names the line.
    """
    sentences, words, labels, width = [], [], [], None

    def end(line):
        if words:
            own = None if label_column is None else tuple(labels)
            sentences.append(Sentence(tuple(words), own, line - len(words)))
            words.clear()
            labels.clear()

    line = 0
    for line, text in read_lines(path):
        fields = _fields(text)
        if not fields or fields[0] == DOCUMENT:
            end(line)
            continue
        is_first, width = width is None, width or len(fields)
        if len(fields) != width:
            raise InputError(
                f'{path}, line {line}: {len(fields)} columns, where the lines before have {width}: '
                f'{text.strip()!r:.80}; a word a line is expected: is it a plain text?'
            )
        words.append(_field(fields, word_column, 'word', path, line))
        if label_column is not None:
            labels.append(_field(fields, label_column, 'label', path, line))
            if is_first and range(width)[word_column] == range(width)[label_column]:
                raise InputError(
                    f'{path}, line {line}: column {range(width)[word_column]} would be both the '
                    'word and the label; for a test file without labels there is `no_test_labels`'
                )
    end(line + 1)
    if not sentences:
        raise InputError(f'{str(path)!r} has no sentences: a word a line is expected')
    found = [label for sentence in sentences for label in sentence.labels or ()]
    if len(set(found)) > 50 and 2 * len(set(found)) > len(found):
        raise InputError(
            f'{path}: column {label_column} has {len(set(found))} different labels for '
            f'{len(found)} words, such as {found[0]!r:.40}: is it a plain text?'
        )
    return sentences


def _fields(text):
    """The columns of a line; none of an empty one."""
    text = text.rstrip('\r\n')
    if not text.strip():
        return []
    if '\t' in text:
        return [field.strip(' ') for field in text.split('\t')]
    # not split(), which parts words at no-break spaces, too
    return [field for field in text.split(' ') if field]


def _field(fields, column, what, path, line):
    if not -len(fields) <= column < len(fields):
        raise InputError(
            f'{path}, line {line}: there is no column {column} for the {what}: the line has '
            f'{len(fields)} columns, which are counted from 0'
        )
    if not fields[column]:
        raise InputError(f'{path}, line {line}: the {what} in column {column} is empty')
    return fields[column]


def write_conll(path, source, predictions, label_column=-1):
    """Copy a file with one more column: the label that was predicted for each word.

    The other columns are those of the source. With the right labels in the column before, CoNLL's
    own script ``conlleval`` can score the result.

    Parameters
    ----------
    path : str
    source : str or os.PathLike
        File that `read_conll` has read.
    predictions : iterable of sequence of str
        The labels of each sentence.
    label_column : int or None
        Column that lines which begin a document repeat.
    """
    labels = (label for sentence in predictions for label in sentence)
    with atomic_write(path) as file:
        for _, text in read_lines(source):
            fields = _fields(text)
            if not fields:
                file.write('\n')
                continue
            if fields[0] == DOCUMENT:
                has_label = label_column is not None and -len(fields) <= label_column < len(fields)
                label = fields[label_column] if has_label else 'O'
            else:
                label = next(labels, None)
                _check_count(label is not None, source)
            text = text.rstrip(' \r\n')
            separator = '\t' if '\t' in text else ' '
            file.write(f'{text}{separator}{label}\n')
        _check_count(next(labels, None) is None, source)


def write_sentences(path, sentences, predictions):
    """Write sentences that come from no file: a word a line, its label if there is one, and the
    label that was predicted."""
    with atomic_write(path) as file:
        for sentence, labels in zip(sentences, predictions):
            columns = [sentence.words, labels]
            if sentence.labels is not None:
                columns.insert(1, sentence.labels)
            file.writelines('\t'.join(cells) + '\n' for cells in zip(*columns))
            file.write('\n')


def _check_count(is_right, source):
    if not is_right:
        raise InputError(
            f'{str(source)!r} has another number of words than labels were predicted for: was it '
            'changed meanwhile?'
        )
