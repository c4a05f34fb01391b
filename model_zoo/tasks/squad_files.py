"""SQuAD's files, and questions in other forms: read and checked."""

import contextlib
import hashlib
import json
import logging
import os
from typing import NamedTuple

import numpy as np

from ..errors import InputError, Where, reporting
from ..records import is_path, read_records
from ..util.fields import AnyText, Whole
from ..util.reading import check_json, read_json
from .tables import downloading

__all__ = ['SquadSet', 'read_squad']

logger = logging.getLogger(__name__)


class Question(NamedTuple):
    """A question about a paragraph."""

    id: str
    text: str
    paragraph: int
    answers: tuple[str, ...] | None
    start: int | None
    context: str = ''

    @property
    def label(self):
        """The answers, as other tasks' rows have a label."""
        return self.answers


class SquadSet(list):
    """A file of SQuAD: a list of its questions, with the paragraphs that they are about."""

    is_test = False

    def __init__(self, path, paragraphs, questions, is_training=False, checksum=''):
        super().__init__(questions)
        self.path, self.paragraphs = path, paragraphs
        self.is_training, self.checksum = is_training, checksum


def find_squad(segment, version_2=False, root=None):
    """Return the path of a file of SQuAD, which GluonNLP downloads where it is missing.

    Parameters
    ----------
    root : str, optional
        Default: ``$MXNET_HOME/datasets/squad``.
    """
    from gluonnlp.base import get_home_dir
    from gluonnlp.data import SQuAD

    version = '2.0' if version_2 else '1.1'
    root = root or os.path.join(get_home_dir(), 'datasets', 'squad')
    with downloading(f'the {segment} set of SQuAD {version}', f'use a local `{segment}_file`'):
        SQuAD(segment, version=version, root=root)
    return os.path.join(root, f'{segment}-v{version}.json')


def read_squad(source, version_2=False, training=False, strict=False, encoding=None):
    """Read a file of SQuAD and check it.

    Questions that can't be used are skipped, with one warning: in training those whose answers
    aren't at their place, and always answerable ones without an answer.

    Parameters
    ----------
    source : str, os.PathLike, dict or iterable
        A path, the file's content, or rows: (question, context, answer, start), with None for no
        answer, (question, context), or dicts with these names, with ``answers`` as on the Hugging
        Face hub, or SQuAD's articles. A file has SQuAD's form, or rows: JSON lines, an array, or a
        folder of `datasets`.
    version_2 : bool
        Whether questions may have no answer.
    training : bool
        A training set needs answers with their positions. As in GluonNLP, the first of several
        answers is learned (the originals refuse more than one). Otherwise predictions are compared
        with the answers, which may be missing.
    strict : bool
        Refuse a file with questions that would be skipped.

    Raises
    ------
    InputError
        If the file can't be read, a field is missing, a question has no answer without
        `version_2`, or two questions have the same id. The message names the question.
    """
    path, digest = os.fspath(source) if is_path(source) else 'the questions', hashlib.sha256()
    paragraphs, questions, ids, skipped = [], [], set(), []
    for where, entry in _read_entries(source, path, digest, encoding):
        if not paragraphs or paragraphs[-1] != entry['context']:
            paragraphs.append(entry['context'])
        name = str(entry['id'])
        lacks_answer = entry.get('is_impossible') and not (entry.get('answers') or version_2)
        if name in ids or lacks_answer:
            cure = 'use `version_2` for such data'
            problem = 'is there twice' if name in ids else f'has no answer: {cure}'
            raise InputError(f'the question {name!r} {problem}', where=where)
        ids.add(name)
        answers, start, problem = _answers_of(entry, version_2, training)
        if problem:
            skipped.append(InputError(f'the question {name!r} {problem}', where=where))
            continue
        found = name, entry['question'], len(paragraphs) - 1, answers, start, paragraphs[-1]
        questions.append(Question(*found))
    if not ids:
        raise InputError(f'{path} has no questions')
    known = [question for question in questions if question.answers is not None]
    if known:
        unknown = [question.id for question in questions if question.answers is None]
        skipped += [InputError(f'{path}: the question {name!r} has no answers') for name in unknown]
        questions = known
    if skipped and (strict or not questions):
        raise skipped[0]
    if skipped:
        shown = '; '.join(map(str, skipped[:3])) + '; ...' * bool(skipped[3:])
        logger.warning('%s: skipped %d of %d questions: %s', path, len(skipped), len(ids), shown)
    return SquadSet(path, paragraphs, questions, training, digest.hexdigest())


_ROWS = ('.jsonl', '.ndjson', '.parquet', '.csv', '.tsv')  # endings of files of rows
_PARTS = {4: ('question', 'context', 'answer', 'start'), 2: ('question', 'context')}


#: fields of a question beside its context; there may be more
_ENTRY = {
    'id': AnyText | Whole,
    'question': AnyText,
    'context': AnyText,
    'answers': list[dict] | None,
    'is_impossible': bool | None,
}


def _read_entries(source, path, digest, encoding):
    """Yield the place of each question, and its fields in SQuAD's form with the context.

    `digest` is updated with the file's content.
    """
    is_rows = is_path(source) and (os.path.isdir(path) or path.lower().endswith(_ROWS))
    if isinstance(source, dict) or (is_path(source) and not is_rows):
        content = read_json(source, digest=digest, encoding=encoding) if is_path(source) else source
        rows = content.get('data', content) if isinstance(content, dict) else content
        with reporting(path, errors=ValueError):
            check_json(rows, list[dict], 'data')
        rows = ((Where(path, number, unit='item'), row) for number, row in enumerate(rows))
    else:
        rows = read_records(source, _PARTS, 'questions', encoding=encoding)
    for number, (where, row) in enumerate(rows):
        if not is_path(source) or is_rows:
            digest.update(json.dumps(row, default=str).encode())
        with reporting(str(where), errors=(LookupError, TypeError, ValueError)):
            yield from ((where, entry) for entry in _entries(row, number))


def _entries(row, number):
    """Return the questions of an article, or of a row."""
    if 'paragraphs' not in row:
        answers = row.get('answers')
        if answers is None and 'answer' in row:
            known = row['answer'] is not None
            answers = {'text': [row['answer']] * known, 'answer_start': [row.get('start')] * known}
        if isinstance(answers, dict):  # the hub's form
            pairs = zip(answers['text'], np.asarray(answers['answer_start']).tolist())
            answers = [{'text': text, 'answer_start': start} for text, start in pairs]
        entries = [{'id': number, **row, 'answers': None if answers is None else list(answers)}]
        if answers is not None:
            entries[0].setdefault('is_impossible', not entries[0]['answers'])
    else:
        check_json(row['paragraphs'], list, 'paragraphs')
        entries = []
        for each in row['paragraphs']:
            check_json(each, {'context': AnyText, 'qas': list[dict]}, 'paragraphs')
            entries += [{**entry, 'context': each['context']} for entry in each['qas']]
    for entry in entries:
        check_json(entry, _ENTRY)
        for answer in entry.get('answers') or ():
            check_json(answer, {'text': AnyText}, 'answers')
    return entries


def _answers_of(entry, version_2, training):
    """Return a question's answers, the place of the first one if it is to be learned, and a problem
    for which the question must be skipped.
    """
    answers, impossible = entry.get('answers'), entry.get('is_impossible')
    if answers is None and not impossible:
        return None, None, training and 'has no answers'
    texts = tuple(answer['text'] for answer in answers or ())
    if impossible and texts:
        return None, None, "has answers, and its 'is_impossible' is true"
    if not texts and (impossible is False or not version_2):
        return None, None, "has no answer, and its 'is_impossible' is not true"
    if not training or not texts:
        return texts, None, None
    for number, answer in enumerate(answers):
        text, given = answer['text'], answer.get('answer_start')
        with contextlib.suppress(TypeError, ValueError, OverflowError):  # 3, 3.0 and "3"
            start = int(given)
            is_place = start >= 0 and (start == given or isinstance(given, str))
            if is_place and text.strip() and entry['context'].startswith(text, start):
                return (text, *texts[:number], *texts[number + 1 :]), start, None
    place = f'{answers[0].get("answer_start")!r:.40}'
    return None, None, f'has the answer {texts[0]!r}, which is not at its answer_start {place}'
