"""The base of the tasks that learn from texts, and the files of their texts."""

import functools
import itertools
import os
import tempfile

from ..errors import InputError
from ..records import TEXTS, choose_columns, is_path, is_table_file, read_records
from ..util.files import atomic_write
from ..util.reading import read_lines
from .task import Task

__all__ = ['TextTask']


class TextTask(Task):
    """Base of the tasks that learn from a text, which stays in its files; nothing is predicted.

    A subclass has its own ``measure``.
    """

    predicted = None
    has_own_head = False

    @functools.cached_property
    def rows_folder(self):
        """A folder for copies of texts, which goes with the task."""
        self._temporary = tempfile.TemporaryDirectory()
        return self._temporary.name

    def text_file(self, source, segment, between='\n'):
        """Return the path of a file in UTF-8 with the texts of a set: its own, or a copy."""
        column, encoding = self.settings.text_column, self.settings.encoding
        is_text = is_path(source) and not is_table_file(source)
        if is_text and encoding is None:
            return os.fspath(source)
        if is_text:
            texts, between = (line for _, line in read_lines(source, encoding)), ''
        else:
            records = read_records(source, {1: ('text',)}, segment, encoding=encoding)
            texts = read_texts(records, column)
        return write_texts(self.rows_folder, segment, texts, between)

    def read(self, source, segment):
        return source

    def is_labelled(self, rows):
        return True

    def predict(self, forward, data, guard=None):
        return None

    def decode(self, data, outputs):
        return None


def read_texts(records, column=None):
    """Yield the texts of records, by default of the column with a usual name."""
    name = None
    for where, row in records:
        if name is None:
            (name,) = choose_columns(row, column and [column], TEXTS, 'text_column', where)
        text = row.get(name)
        if not isinstance(text, str):
            raise InputError(f'the text is {text!r:.80}', where=where._replace(column=name))
        yield text.strip('\n')


def write_texts(folder, segment, texts, between):
    """Write texts with `between` between them; returns the path."""
    path = os.path.join(folder, f'{segment}.txt')
    os.makedirs(folder, exist_ok=True)
    with atomic_write(path) as file:
        for number, text in enumerate(texts):
            file.write(between * bool(number) + text)
        file.write('\n' * bool(between))
    return path


def split_text(path, share, folder, by_documents=False):
    """Write a text's first part and its last one to files in `folder`, as it is.

    The last part has a share of the lines that aren't blank, or of the documents, which have blank
    lines between them.
    """
    lines = [line for _, line in read_lines(path)]
    filled = [not line.isspace() for line in lines]
    before = [False, *filled] if by_documents else itertools.repeat(False)
    starts = [n for n, (is_filled, was) in enumerate(zip(filled, before)) if is_filled and not was]
    count = max(1, round(share * len(starts)))
    if count >= len(starts):
        problem = f'{share} of {len(starts)} texts leaves nothing on one side'
        raise InputError(problem, field='dev_split')
    parts = ('part_train', lines[: starts[-count]]), ('part_dev', lines[starts[-count] :])
    return [write_texts(folder, *part, '') for part in parts]
