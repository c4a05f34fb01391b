"""SQuAD's JSON, versions 1.1 and 2.0."""

import contextlib
import hashlib
import io
import json
import logging
import os
import textwrap
import zipfile
from typing import NamedTuple, Optional, Sequence, Tuple

from ...errors import InputError
from ...util.files import parse_json
from ...util.remote import open_binary
from ..tables import given_rows, is_path

__all__ = ['Question', 'SquadSet', 'find_squad', 'read_squad']

logger = logging.getLogger(__name__)


class Question(NamedTuple):
    """A question about a paragraph.

    Parameters
    ----------
    id : str
    text : str
    paragraph : int
        Place in `SquadSet.paragraphs`.
    answers : tuple of str, or None
        The right answers; empty if the paragraph has none, None in a test set.
    start : int or None
        The character of the paragraph at which the first answer begins; only of training sets.
    """

    id: str
    text: str
    paragraph: int
    answers: Optional[Tuple[str, ...]]
    start: Optional[int]


class SquadSet(NamedTuple):
    """A file of SQuAD.

    Parameters
    ----------
    path : str
    paragraphs : sequence of str
    questions : sequence of Question
        In the order of the file.
    is_training : bool
    checksum : str
        Of the file's content.
    """

    path: str
    paragraphs: Sequence[str]
    questions: Sequence[Question]
    is_training: bool
    checksum: str

    def first(self, count):
        """The set with its first `count` questions only."""
        questions = self.questions[:count]
        paragraphs = self.paragraphs[: questions[-1].paragraph + 1] if questions else []
        return self._replace(questions=questions, paragraphs=paragraphs)


def find_squad(segment, version_2=False, root=None):
    """Path of a file of SQuAD that GluonNLP has downloaded, or downloads now.

    Parameters
    ----------
    segment : {'train', 'dev'}
    version_2 : bool
    root : str, optional
        Default: ``$MXNET_HOME/datasets/squad``.

    Returns
    -------
    str
    """
    from gluonnlp.base import get_home_dir
    from gluonnlp.data import SQuAD

    version = '2.0' if version_2 else '1.1'
    root = root or os.path.join(get_home_dir(), 'datasets', 'squad')
    logger.info("%s: taking GluonNLP's SQuAD %s, downloaded where it is missing", segment, version)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints each try to download
            SQuAD(segment, version=version, root=root)
    except (OSError, RuntimeError, EOFError, UserWarning, zipfile.BadZipFile) as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, 150, placeholder=' ...')
        flag = 'train_file' if segment == 'train' else 'predict_file'
        raise InputError(
            f'cannot download the {segment} set of SQuAD {version}: {reason}; give a local file '
            f'with --{flag}'
        ) from error
    return os.path.join(root, f'{segment}-v{version}.json')


def read_squad(source, version_2=False, training=False):
    """Read a file of SQuAD and check it.

    Parameters
    ----------
    source : str, os.PathLike, dict or iterable
        A path, the file's content, or rows: (question, context, answer, start), where an answer of
        None means that there is none, (question, context), or dicts with these names, with
        ``answers`` as the Hugging Face hub has them, or with SQuAD's articles.
    version_2 : bool
        Whether there may be questions without an answer.
    training : bool
        A training set needs answers with their positions. The first of several answers is learnt,
        as in GluonNLP (the originals refuse more than one). Otherwise predictions are compared with
        the answers, which may be missing.

    Returns
    -------
    SquadSet

    Raises
    ------
    InputError
        If the file can't be read, a field is missing, an answer isn't at its place, a question has
        no answer without `version_2`, or two questions have the same id. The message names the
        question.
    """
    if is_path(source):
        path = os.fspath(source)
        articles, checksum = _read_json(path)
    else:
        path, articles = 'the questions', _articles(source)
        checksum = hashlib.sha256(json.dumps(articles).encode()).hexdigest()
    paragraphs, questions, places = [], [], {}
    for number, article in enumerate(_field(articles, 'data', list, path), 1):
        where = f'{path}, article {number}'
        for place, paragraph in enumerate(_field(article, 'paragraphs', list, where), 1):
            inside = f'{where}, paragraph {place}'
            paragraphs.append(_field(paragraph, 'context', str, inside))
            for entry in _field(paragraph, 'qas', list, inside):
                question = _question(entry, paragraphs, version_2, training, inside)
                if question.id in places:
                    raise InputError(
                        f'{inside}: the id {question.id!r} is that of a question in '
                        f'{places[question.id]} already'
                    )
                places[question.id] = f'article {number}, paragraph {place}'
                questions.append(question)
    if not questions:
        raise InputError(f'{path} has no questions')
    told = [question.answers is not None for question in questions]
    if any(told) and not all(told):
        raise InputError(
            f"{path}: the question {questions[told.index(False)].id!r} lacks the field 'answers', "
            'which others have'
        )
    return SquadSet(path, paragraphs, questions, training, checksum)


def _read_json(path):
    try:
        with open_binary(path) as file:
            content = file.read()
        fields = parse_json(content.decode('utf-8-sig'), most_bytes=2**30)
        return fields, hashlib.sha256(content).hexdigest()
    except OSError as error:
        raise InputError(f'cannot read {path!r}: {error.strerror}') from error
    except ValueError as error:
        problem = f"is not JSON, which SQuAD's files are: {error}"
        if isinstance(error, UnicodeDecodeError):
            problem = f'is not UTF-8 at byte {error.start}: save the file as UTF-8'
        raise InputError(f'{path} {problem}') from None


def _articles(source):
    """Rows in memory in the form of SQuAD's files."""
    if isinstance(source, dict):
        return source
    names = {4: ('question', 'context', 'answer', 'start'), 2: ('question', 'context')}
    paragraphs = []
    for number, (_, row) in enumerate(given_rows(source, names, 'data')):
        if 'paragraphs' in row:  # an article
            paragraphs += row['paragraphs']
            continue
        entry = {'id': str(row.get('id', number)), 'question': row.get('question')}
        answers = row.get('answers')
        if answers is None and 'answer' in row:
            known = row['answer'] is not None
            answers = {'text': [row['answer']] * known, 'answer_start': [row.get('start')] * known}
        if answers is not None:
            entry['is_impossible'] = not len(answers['text'])
            entry['answers'] = [
                {'text': text, 'answer_start': start if start is None else int(start)}
                for text, start in zip(answers['text'], answers['answer_start'])
            ]
        paragraphs.append({'context': row.get('context'), 'qas': [entry]})
    return {'data': [{'paragraphs': paragraphs}]}


def _question(entry, paragraphs, version_2, training, where):
    """Question of the last one of the paragraphs."""
    name = _field(entry, 'id', str, f'{where}, a question')
    where = f'{where}, question {name!r}'
    text = _field(entry, 'question', str, where)
    number = len(paragraphs) - 1
    if 'answers' not in entry and not training:
        return Question(name, text, number, None, None)
    entries = _field(entry, 'answers', list, where)
    answers = tuple(_field(answer, 'text', str, where) for answer in entries)
    impossible = entry.get('is_impossible', not answers)
    if not isinstance(impossible, bool) or impossible == bool(answers):
        raise InputError(
            f"{where}: 'is_impossible' is {impossible!r}, and there are {len(answers)} answers"
        )
    if impossible and not version_2:
        raise InputError(f'{where} has no answer: use `version_2` for data with such questions')
    start = None
    if training and answers:
        start = _field(entries[0], 'answer_start', int, where)
        _check_place(answers[0], start, paragraphs[-1], where)
    return Question(name, text, number, answers, start)


def _check_place(answer, start, context, where):
    if not answer.strip():
        raise InputError(f"{where}: the answer's text is empty")
    if start < 0 or context[start : start + len(answer)] != answer:
        place = context.find(answer)
        hint = 'the text is not in the paragraph' if place < 0 else f'it is at {place}'
        raise InputError(
            f'{where}: the answer {answer!r} is not at its answer_start {start}; {hint}'
        )


def _field(mapping, name, kind, where):
    """The value of a field that has to be there."""
    if not isinstance(mapping, dict) or name not in mapping:
        raise InputError(f'{where}: the field {name!r} is missing; is this a file of SQuAD?')
    value = mapping[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        names = {list: 'a list', str: 'a text', int: 'a whole number'}
        raise InputError(f'{where}: {name!r} is {str(value)[:40]!r} and not {names[kind]}')
    return value
