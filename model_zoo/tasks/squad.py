"""SQuAD: question answering by a span of a text, from JSON to answers and their scores.

``read_squad`` -> ``encode_squad`` (kept on disk) -> ``SquadFeatures`` -> the model ->
``find_answers`` -> ``score_v1`` or ``score_v2``.

Sources: ``write_predictions`` and ``get_final_text`` in pytorch-pretrained-bert 0.6.2's
``run_squad.py``, which gives the same answers on the same scores; the web site's
``evaluate-v1.1.py`` and ``evaluate-v2.0.py``, whose metrics, in percent, are equal to these.
"""

import collections
import collections.abc
import contextlib
import functools
import hashlib
import json
import logging
import math
import os
import re
import string
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tokenizers
from tqdm import tqdm

from ..batches import Sample
from ..batches.loaders import check_positive
from ..batches.windows import NO_WINDOW, best_windows, spans_within, split_windows
from ..checkpoint.numpy_files import ArrayArchive
from ..environment import available_processors
from ..errors import CheckpointError, InputError
from ..records import is_path, read_records
from ..tokenization.encoding import UNLIMITED
from ..training.objective import outputs_of
from ..util.arrays import softmax
from ..util.files import atomic_write, make_writable_dir, write_json
from ..util.reading import read_json, sha256_of
from .pretraining.processes import LostProcessError, Processes
from .settings import SquadSettings
from .tables import check_files, downloading
from .task import Examination, Task, check_finite

__all__ = [
    'Answers',
    'Question',
    'SquadEncoding',
    'SquadFeatures',
    'SquadSet',
    'SquadSettings',
    'SquadTask',
    'best_thresholds',
    'encode_squad',
    'find_answers',
    'find_squad',
    'map_to_text',
    'normalize_answer',
    'read_squad',
    'score_v1',
    'score_v2',
    'split_words',
    'write_answers',
]

logger = logging.getLogger(__name__)


class Question(NamedTuple):
    """A question about a paragraph."""

    id: str
    text: str
    paragraph: int
    answers: tuple[str, ...] | None
    start: int | None


class SquadSet(NamedTuple):
    """A file of SQuAD."""

    path: str
    paragraphs: Sequence[str]
    questions: Sequence[Question]
    is_training: bool
    checksum: str

    def first(self, count):
        """The set with only its first `count` questions."""
        questions = self.questions[:count]
        paragraphs = self.paragraphs[: questions[-1].paragraph + 1] if questions else []
        return self._replace(questions=questions, paragraphs=paragraphs)


def find_squad(segment, version_2=False, root=None):
    """Path of a file of SQuAD that GluonNLP has downloaded, or downloads now.

    Parameters
    ----------
    root : str, optional
        Default: ``$MXNET_HOME/datasets/squad``.
    """
    from gluonnlp.base import get_home_dir
    from gluonnlp.data import SQuAD

    version = '2.0' if version_2 else '1.1'
    root = root or os.path.join(get_home_dir(), 'datasets', 'squad')
    flag = 'train_file' if segment == 'train' else 'predict_file'
    with downloading(f'the {segment} set of SQuAD {version}', f'give a local file with `{flag}`'):
        SQuAD(segment, version=version, root=root)
    return os.path.join(root, f'{segment}-v{version}.json')


def read_squad(source, version_2=False, training=False, strict=False, encoding=None):
    """Read a file of SQuAD and check it.

    Questions that can't be used are skipped, with one warning: those whose answers aren't at their
    place, where they are learned, and answerable ones without an answer.

    Parameters
    ----------
    source : str, os.PathLike, dict or iterable
        A path, the file's content, or rows: (question, context, answer, start), with None for no
        answer, (question, context), or dicts with these names, with ``answers`` as on the Hugging
        Face hub, or with SQuAD's articles. A file has SQuAD's form, or such rows: JSON lines, an
        array, or a folder of `datasets`.
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
        If the file can't be read, a field is missing, a question is without an answer without
        `version_2`, or two questions have the same id. The message names the question.
    """
    path = os.fspath(source) if is_path(source) else 'the questions'
    articles, checksum = _read_articles(source, encoding)
    paragraphs, questions, locations, skipped = [], [], {}, []
    for number, article in enumerate(_field(articles, 'data', list, path), 1):
        where = f'{path}, article {number}'
        for part, paragraph in enumerate(_field(article, 'paragraphs', list, where), 1):
            inside = f'{where}, paragraph {part}' if is_path(source) else f'row {part - 1}'
            paragraphs.append(_field(paragraph, 'context', str, inside))
            for entry in _field(paragraph, 'qas', list, inside):
                name, problem = _id(entry, inside), None
                try:
                    question = _question(entry, name, paragraphs, version_2, training, inside)
                except _UnusableError as error:
                    problem = error
                if name in locations:
                    raise InputError(
                        f'{inside}: the id {name!r} is that of a question in {locations[name]} '
                        'already'
                    )
                locations[name] = f'article {number}, paragraph {part}'
                if problem is None:
                    questions.append(question)
                else:
                    skipped.append(problem)
    if not locations:
        raise InputError(f'{path} has no questions')
    if any(question.answers is not None for question in questions):
        skipped += [
            _UnusableError(f'{path}: the question {question.id!r} has no answers, as others have')
            for question in questions
            if question.answers is None
        ]
        questions = [question for question in questions if question.answers is not None]
    if skipped and (strict or not questions):
        raise skipped[0]
    if skipped:
        logger.warning(
            '%s: %d of %d questions cannot be used and are skipped: %s%s',
            path,
            len(skipped),
            len(locations),
            '; '.join(map(str, skipped[:3])),
            '; ...' if skipped[3:] else '',
        )
    return SquadSet(path, paragraphs, questions, training, checksum)


class _UnusableError(InputError):
    """A question that can be skipped."""


_ROWS = ('.jsonl', '.ndjson', '.parquet', '.csv', '.tsv')  # endings of files of rows


def _read_articles(source, encoding):
    """Read a file, or rows, in the form of SQuAD's files; and its checksum."""
    in_rows = is_path(source) and (
        os.path.isdir(source) or os.path.splitext(source)[1].lower() in _ROWS
    )
    if is_path(source) and not in_rows:
        digest = hashlib.sha256()
        content = read_json(source, digest=digest, encoding=encoding)
        rows = content.get('data') if isinstance(content, dict) else content
        first = rows[0] if isinstance(rows, list) and rows else None
        if rows is content or (isinstance(first, dict) and 'context' in first):
            content = _articles(rows)
        return content, digest.hexdigest()
    articles = source if isinstance(source, dict) else _articles(source, encoding)
    return articles, hashlib.sha256(json.dumps(articles).encode()).hexdigest()


def _articles(source, encoding=None):
    """Read rows in the form of SQuAD's files."""
    names = {4: ('question', 'context', 'answer', 'start'), 2: ('question', 'context')}
    paragraphs = []
    for number, (_, row) in enumerate(read_records(source, names, encoding=encoding)):
        if 'paragraphs' in row:  # an article
            paragraphs += row['paragraphs']
            continue
        entry = {'id': str(row.get('id', number)), 'question': row.get('question')}
        answers = row.get('answers')
        if answers is None and 'answer' in row:
            known = row['answer'] is not None
            answers = {'text': [row['answer']] * known, 'answer_start': [row.get('start')] * known}
        if isinstance(answers, dict):
            starts = np.asarray(answers['answer_start']).tolist()  # not NumPy's numbers
            answers = [
                {'text': text, 'answer_start': start}
                for text, start in zip(answers['text'], starts)
            ]
        if answers is not None:
            entry['is_impossible'] = not len(answers)
            entry['answers'] = list(answers)
        paragraphs.append({'context': row.get('context'), 'qas': [entry]})
    return {'data': [{'paragraphs': paragraphs}]}


def _id(entry, where):
    name = entry.get('id') if isinstance(entry, dict) else None
    return str(name) if type(name) is int else _field(entry, 'id', str, f'{where}, a question')


def _question(entry, name, paragraphs, version_2, training, where):
    """Question of the last one of the paragraphs; `_UnusableError` if it is to be skipped."""
    where = f'{where}, question {name!r}'
    text = _field(entry, 'question', str, where)
    number = len(paragraphs) - 1
    impossible = entry.get('is_impossible')
    if not isinstance(impossible, (bool, type(None))):
        raise InputError(f"{where}: 'is_impossible' is {impossible!r:.40}, not true or false")
    if entry.get('answers') is None and not impossible:
        if training:
            raise _UnusableError(f'{where} has no answers')
        return Question(name, text, number, None, None)
    entries = [] if entry.get('answers') is None else _field(entry, 'answers', list, where)
    answers = tuple(_field(answer, 'text', str, where) for answer in entries)
    if impossible and answers:
        raise _UnusableError(f"{where}: 'is_impossible' is true, and there are answers")
    if impossible and not version_2:
        raise InputError(f'{where} has no answer: use `version_2` for data with such questions')
    if not answers and (impossible is False or not version_2):
        raise _UnusableError(f'{where} has no answer, and does not say that it is impossible')
    start = None
    if training and answers:
        places = [_place(answer, paragraphs[-1]) for answer in entries]
        learned = next((n for n, place in enumerate(places) if isinstance(place, int)), None)
        if learned is None:
            raise _UnusableError(f'{where}: {places[0]}')
        start = places[learned]
        answers = (answers[learned], *answers[:learned], *answers[learned + 1 :])
    return Question(name, text, number, answers, start)


def _place(answer, context):
    """Where an answer begins, or what is wrong with it."""
    text, start = answer['text'], answer.get('answer_start')
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # 3, 3.0 and "3"
        whole = int(start)
        start = whole if isinstance(start, str) or whole == start else start
    if type(start) is not int:
        return f'the answer {text!r} has the answer_start {start!r:.40}'
    if not text.strip():
        return "the answer's text is empty"
    if start >= 0 and context[start : start + len(text)] == text:
        return start
    position = context.find(text)
    hint = 'the text is not in the paragraph' if position < 0 else f'it is at {position}'
    return f'the answer {text!r} is not at its answer_start {start}; {hint}'


def _field(mapping, name, value_type, where):
    """The value of a field that has to be there."""
    if not isinstance(mapping, dict) or name not in mapping:
        raise InputError(f'{where}: the field {name!r} is missing; is this a file of SQuAD?')
    value = mapping[name]
    if not isinstance(value, value_type) or isinstance(value, bool):
        names = {list: 'a list', str: 'a text', int: 'a whole number'}
        raise InputError(f'{where}: {name!r} is {str(value)[:40]!r} and not {names[value_type]}')
    return value


FORMAT = 1  # of the files and of what is in them: another number for other pieces or places
CHUNK = 64  # paragraphs that are encoded at once
PARALLEL = 4096  # questions from which processes are worth their start of a few seconds

# The white space at which the originals part words; more kinds separate words for the tokenizer.
_WORD = re.compile('[^ \t\r\n\u202f]+')


def split_words(text):
    """The words of a text between white space, and the characters at which they begin."""
    matches = list(_WORD.finditer(text))
    starts = np.array([match.start() for match in matches], dtype=np.int64)
    return [match.group() for match in matches], starts


class SquadEncoding(NamedTuple):
    """The pieces of a `SquadSet`.

    Lists of different lengths stand one after the other in one array: number i is
    ``array[bounds[i] : bounds[i + 1]]``.

    Parameters
    ----------
    paragraph_bounds : numpy.ndarray, shape (number of paragraphs + 1,), int64
    question_bounds : numpy.ndarray, shape (number of questions + 1,), int64
    spans : numpy.ndarray, shape (number of questions, 2), int32
        First and last piece of the answer in the paragraph; -1 where there is none to learn.
    """

    paragraph_bounds: np.ndarray
    paragraph_ids: np.ndarray
    paragraph_words: np.ndarray
    question_bounds: np.ndarray
    question_ids: np.ndarray
    spans: np.ndarray

    def paragraph(self, number):
        """(ids, words) of a paragraph's pieces."""
        part = slice(*self.paragraph_bounds[number : number + 2])
        return self.paragraph_ids[part], self.paragraph_words[part]

    def question(self, number):
        """Ids of a question's pieces."""
        return self.question_ids[slice(*self.question_bounds[number : number + 2])]


def encode_squad(squad, tokenizer, cache_dir=None, processes=None):
    """Encode a set, or read the cache of an earlier call.

    Parameters
    ----------
    tokenizer : object
        As ``bert.BertTokenizer``: it has ``encode_pairs`` and ``save_pretrained`` (which
        identifies the tokenizer), and can be pickled.
    cache_dir : str, optional
        Folder for files ``squad-KEY.npz``, whose key comes from the set's file, the number of its
        questions and the tokenizer. Created if missing. By default nothing is kept.
    processes : int, optional
        By default one per processor, and only one for small sets.
    """
    name = os.path.basename(squad.path)
    path = None
    if cache_dir is not None:
        key = _key(squad, tokenizer)
        path = os.path.join(make_writable_dir(cache_dir), f'squad-{key}.npz')
        kept = _load(path, squad)
        if kept is not None:
            logger.info('%s: taking its pieces from %s', name, path)
            return kept
    if processes is None:
        processes = 1
        if len(squad.questions) >= PARALLEL:
            # Horovod's processes of one machine share its processors
            here = int(os.environ.get('HOROVOD_LOCAL_SIZE', 1))
            processes = max(1, available_processors() // here)
    started = time.perf_counter()
    logger.info(
        '%s: encoding %d questions on %d paragraphs with %d processes',
        name,
        len(squad.questions),
        len(squad.paragraphs),
        processes,
    )
    with tqdm(total=len(squad.questions), unit=' questions', desc=name, disable=None) as bar:
        parts = [], [], [], []  # pieces of paragraphs, their words, pieces of questions, spans
        for chunk in _encode_all(list(_chunks(squad)), tokenizer, processes):
            for part, more in zip(parts, chunk):
                part.extend(more)
            bar.update(len(chunk[-1]))
    docs, words, queries, spans = parts
    encoding = SquadEncoding(
        _bounds(docs),
        _flat(docs),
        _flat(words),
        _bounds(queries),
        _flat(queries),
        np.array(spans, dtype=np.int32).reshape(-1, 2),
    )
    seconds = time.perf_counter() - started
    logger.info('%s: %d pieces in %.1f s', name, len(encoding.paragraph_ids), seconds)
    if path is not None:
        with atomic_write(path, 'wb') as file:
            np.savez(file, **encoding._asdict())
    return encoding


def _key(squad, tokenizer):
    """Checksum of all that the pieces depend on, for the file's name."""
    parts = [FORMAT, tokenizers.__version__, squad.checksum, squad.is_training]
    parts += [len(squad.questions), type(tokenizer).__name__]
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(tokenizer.save_pretrained(folder)):
            parts += [os.path.basename(path), sha256_of(path)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _load(path, squad):
    """The encoding that a file holds, or None if there is no file or a damaged one."""
    if not os.path.exists(path):
        return None
    try:
        with ArrayArchive(path) as file:
            encoding = SquadEncoding(*(file.read(name) for name in SquadEncoding._fields))
        if encoding.spans.shape[:1] == (len(squad.questions),):
            return encoding
    except CheckpointError:
        pass
    logger.warning('%s is damaged and will be made again', path)
    return None


def _chunks(squad):
    """The set in parts: each a list of paragraphs and a list, for each, of its questions."""
    asked = [[] for _ in squad.paragraphs]
    for question in squad.questions:
        asked[question.paragraph].append(question)
    for start in range(0, len(asked), CHUNK):
        yield squad.paragraphs[start : start + CHUNK], asked[start : start + CHUNK]


def _encode_all(chunks, tokenizer, processes):
    """Encodings of the chunks, in order, each as soon as it is there."""
    done, encode = 0, functools.partial(_encode_chunk, tokenizer=tokenizer)
    try:
        with Processes(encode, processes if processes > 1 else 0) as pool:
            for part in pool.map((chunk,) for chunk in chunks):
                done += 1
                yield part
    except LostProcessError:
        logger.warning('the processes cannot be started or have died; continuing without them')
        yield from map(encode, chunks[done:])


def _encode_chunk(chunk, tokenizer):
    """Of some paragraphs the pieces and their words; of their questions the pieces and spans."""
    paragraphs, asked = chunk
    questions = [question for group in asked for question in group]

    def encode(texts):
        # a length is given, or those over the model's are warned of: windows cut them to it
        pairs = [(text, None) for text in texts]
        return list(tokenizer.encode_pairs(pairs, UNLIMITED, add_special_tokens=False))

    def ids_of(texts):
        return [row.input_ids for row in encode(texts)]

    rows = encode(paragraphs)
    docs = [row.input_ids for row in rows]
    queries = ids_of([question.text for question in questions])
    learnt = [question for question in questions if question.start is not None]
    answers = [question.answers[0] for question in learnt]
    forms = [ids_of(answers)]
    if tokenizer.word_prefix:
        forms.append(ids_of([tokenizer.word_prefix + answer for answer in answers]))
    answers = zip(*forms)
    words, spans = [], []
    for text, group, row, ids in zip(paragraphs, asked, rows, docs):
        _, starts = split_words(text)
        pieces = np.array([start for start, _ in row.offsets], dtype=np.int64)
        words.append(np.searchsorted(starts, pieces, side='right') - 1)
        for question in group:
            span = -1, -1
            if question.start is not None:
                ends = question.start, question.start + len(question.answers[0]) - 1
                first, last = np.maximum(np.searchsorted(starts, ends, side='right') - 1, 0)
                span = _answer_span(ids, words[-1], first, last, next(answers))
            spans.append(span)
    return docs, words, queries, spans


def _answer_span(ids, words, first_word, last_word, forms):
    """First and last piece of an answer that is in the words from the first to the last."""
    first = np.searchsorted(words, first_word, side='left')
    last = np.searchsorted(words, last_word, side='right') - 1
    for answer in forms:  # the ids of the answer alone, and behind another word
        size = len(answer)
        for start in range(first, last - size + 2 if size else first):
            if np.array_equal(ids[start : start + size], answer):
                return start, start + size - 1
    return first, last


def _bounds(lists):
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)


def _flat(lists):
    return np.concatenate([np.zeros(0, np.int32), *lists]).astype(np.int32)


class SquadFeatures(collections.abc.Sequence):
    """A sequence of windows as samples, which are made on access.

    A sample is ``[CLS] question [SEP] window [SEP]``. In training sets its label is the first and
    last position of the answer. Both are 0 (the position of ``[CLS]``) if the window doesn't have
    the whole answer or there is none. Windows and labels are those of pytorch-pretrained-bert
    0.6.2's ``run_squad.py``.

    Parameters
    ----------
    max_seq_length : int
        Maximum number of tokens, including special tokens.
    doc_stride : int
        Pieces from the start of a window to the start of the next one.
    max_query_length : int
        In tokens; longer questions are truncated.
    """

    def __init__(
        self, squad, encoding, tokenizer, max_seq_length=384, doc_stride=128, max_query_length=64
    ):
        if max_seq_length <= max_query_length + 3:
            raise InputError(
                f'max_seq_length {max_seq_length}: give more than max_query_length + 3, which is '
                f'{max_query_length + 3}, so that there is room for the paragraph'
            )
        check_positive(doc_stride=doc_stride, max_query_length=max_query_length)
        self.squad = squad
        self.encoding = encoding
        self.tokenizer = tokenizer
        self._max_query_length = max_query_length
        rows, bounds = [], [0]
        for number, question in enumerate(squad.questions):
            room = max_seq_length - len(self.query(number)) - tokenizer.pair_size()
            size = np.diff(encoding.paragraph_bounds[question.paragraph : question.paragraph + 2])
            windows = split_windows(int(size[0]), room, doc_stride)
            if len(windows) > 1 and doc_stride > room:
                raise InputError(
                    f'doc_stride {doc_stride}: with max_seq_length {max_seq_length} there is room '
                    f'for {room} tokens of a paragraph beside the question {question.id!r}, and '
                    'what lies between two windows would not be read; give a smaller doc_stride'
                )
            rows += [(number, *window) for window in windows]
            bounds.append(len(rows))
        #: question, first piece and number of pieces of each window
        self.rows = np.array(rows, dtype=np.int32).reshape(-1, 3)
        self._bounds = bounds

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        question, start, length = self.rows[number]
        query = self.query(question)
        ids, _ = self.encoding.paragraph(self.squad.questions[question].paragraph)
        part = ids[start : start + length]
        input_ids, token_types, head = self.tokenizer.with_special_tokens(query, part)
        label = None
        if self.squad.is_training:
            first, last = self.encoding.spans[question]
            label = np.zeros(2, np.float32)
            if first >= start and last < start + length:  # without an answer first is -1
                label[:] = np.array([first, last]) - start + head
        return Sample(input_ids, token_types, label)

    def query(self, question):
        """Ids of question number `question`, cut to `max_query_length`."""
        return self.encoding.question(question)[: self._max_query_length]

    def windows_of(self, question):
        """The numbers of the windows of question number `question`, a range."""
        return range(self._bounds[question], self._bounds[question + 1])


NOTHING = ('empty', 0.0, 0.0)  # the originals' answer where no span can be one


class Answers(NamedTuple):
    """The answers to each question.

    Parameters
    ----------
    predictions : dict
        Question's id -> text, '' for no answer.
    nbest : dict
        Question's id -> list of dicts with ``text``, ``probability``, ``start_logit`` and
        ``end_logit``, the best first.
    null_odds : dict
        Question's id -> score of no answer minus the best answer's; empty without `version_2`.
    """

    predictions: dict[str, str]
    nbest: dict[str, list[dict]]
    null_odds: dict[str, float]


def find_answers(
    features,
    scores,
    n_best_size=20,
    max_answer_length=30,
    version_2=False,
    null_score_diff_threshold=0.0,
):
    """The best answers to the questions of a set.

    Parameters
    ----------
    scores : sequence of (numpy.ndarray, numpy.ndarray)
        The scores of starts and of ends of each feature: one per token, and optionally more for
        padding. Padding is never an answer, but as in the originals its scores count among the
        `n_best_size` best.
    n_best_size : int
        Number of starts and of ends to consider per window, and of answers to keep.
    max_answer_length : int
        In pieces.
    null_score_diff_threshold : float
        The result is "no answer" if its score exceeds the best answer's by more than this.
    """
    if len(scores) != len(features):
        raise InputError(f'{len(scores)} pairs of scores for {len(features)} windows')
    finder = _Finder(features, n_best_size, max_answer_length, version_2)
    answers = Answers({}, {}, {})
    for number, question in enumerate(features.squad.questions):
        best, null_score = finder.find(number, scores)
        answers.nbest[question.id] = _with_probabilities(best)
        answers.predictions[question.id] = best[0][0]
        if version_2:
            text, start, end = next((span for span in best if span[0]), NOTHING)
            difference = null_score - start - end
            answers.null_odds[question.id] = difference
            is_null = difference > null_score_diff_threshold
            answers.predictions[question.id] = '' if is_null else text
    return answers


def write_answers(folder, answers):
    """Write ``predictions.json``, ``nbest_predictions.json`` and, if any, ``null_odds.json``."""
    files = {'predictions.json': answers.predictions, 'nbest_predictions.json': answers.nbest}
    if answers.null_odds:
        files['null_odds.json'] = answers.null_odds
    for name, content in files.items():
        write_json(os.path.join(folder, name), content)
    return list(files)


def _with_probabilities(best):
    probabilities = softmax(np.array([start + end for _, start, end in best]))
    return [
        {'text': text, 'probability': float(share), 'start_logit': start, 'end_logit': end}
        for (text, start, end), share in zip(best, probabilities)
    ]


class _Finder:
    """Finds the best answers to one question after the other."""

    def __init__(self, features, n_best_size, max_answer_length, version_2):
        self._features = features
        self._size, self._longest = n_best_size, max_answer_length
        self._version_2 = version_2
        self._words = functools.lru_cache(maxsize=1)(split_words)
        self._normalized = functools.lru_cache(maxsize=None)(features.tokenizer.normalized)

    def find(self, question, scores):
        """The best (text, start score, end score), at least one, and the score of no answer."""
        windows = self._features.windows_of(question)
        rows = [[np.asarray(row, np.float64) for row in scores[number]] for number in windows]
        for starts, ends in rows:
            check_finite(starts + ends)
        spans = self._spans(question, windows, rows)
        nulls = [(float(s[0] + e[0]), float(s[0]), float(e[0])) for s, e in rows]
        null = min([(NO_WINDOW, 0.0, 0.0), *nulls], key=lambda scores: scores[0])
        if self._version_2:
            spans.append((-1, -1, *null[1:]))
        spans.sort(key=lambda span: span[2] + span[3], reverse=True)
        return self._best(question, spans, null), null[0]

    def _spans(self, question, windows, rows):
        """(first piece, last piece, start score, end score) of the spans that may be answers."""
        spans = []
        parts = self._features.rows[windows.start : windows.stop, 1:]
        query = self._features.query(question)
        _, _, head = self._features.tokenizer.with_special_tokens(query, [])
        size = parts[-1].sum() if len(parts) else 0
        best = best_windows(parts, size) if len(parts) else None
        for number, ((first, length), (start_scores, end_scores)) in enumerate(zip(parts, rows)):
            starts, ends = (
                np.argsort(-row, kind='stable')[: self._size] - head
                for row in (start_scores, end_scores)
            )
            starts, ends = (pieces[(pieces >= 0) & (pieces < length)] for pieces in (starts, ends))
            starts = starts[best[first + starts] == number]
            for start, end in zip(*spans_within(starts, ends, self._longest)):
                values = float(start_scores[start + head]), float(end_scores[end + head])
                spans.append((int(first + start), int(first + end), *values))
        return spans

    def _best(self, question, spans, null):
        """The best spans with different texts."""
        best, seen = [], set()
        for first, last, *values in spans:
            if len(best) >= self._size:
                break
            text = '' if first < 0 else self._text(question, first, last)
            if first >= 0 and text in seen:
                continue
            seen.add(text)
            best.append((text, *values))
        if self._version_2:
            if '' not in seen:
                best.append(('', *null[1:]))
            if len(best) == 1:
                best.insert(0, NOTHING)
        return best or [NOTHING]

    def _text(self, question, first, last):
        """The text of a span of pieces of a question's paragraph."""
        number = self._features.squad.questions[question].paragraph
        words, _ = self._words(self._features.squad.paragraphs[number])
        ids, word_numbers = self._features.encoding.paragraph(number)
        words = words[word_numbers[first] : word_numbers[last] + 1]
        normalized = ' '.join(filter(None, map(self._normalized, words)))
        part = self._features.tokenizer.spell(ids[first : last + 1])
        return map_to_text(part, ' '.join(words), normalized)


def map_to_text(part, text, normalized):
    """Find the span of a text that corresponds to a part of its normalized form.

    Normalizing lower-cases, strips accents and sets spaces around punctuation. Where it has left
    the number of characters other than spaces as it was, they are taken to correspond one to one.
    """
    start = normalized.find(part)
    letters = [number for number, char in enumerate(text) if char != ' ']
    if not part or start < 0 or len(letters) != len(normalized) - normalized.count(' '):
        return text
    first, last = (
        letters[end - normalized.count(' ', 0, end)] for end in (start, start + len(part) - 1)
    )
    return text[first : last + 1]


_ARTICLES = re.compile(r'\b(a|an|the)\b')
_PUNCTUATION = str.maketrans('', '', string.punctuation)
_QUOTES = str.maketrans(dict.fromkeys('\'"()<>〈〉《》‘’', ' '))


def normalize_answer(text, characters=False):
    """The text in lower case, without ASCII punctuation, articles and superfluous white space.

    With `characters` as KorQuAD's own script does it: without quotes and brackets, with articles.
    """
    if characters:
        return ' '.join(text.translate(_QUOTES).lower().translate(_PUNCTUATION).split())
    return ' '.join(_ARTICLES.sub(' ', text.lower().translate(_PUNCTUATION)).split())


def _overlap_f1(words, answer, version_2):
    """F1 of two lists of words; if both are empty, SQuAD 2.0 counts 1, and 1.1 counts 0."""
    common = sum((collections.Counter(words) & collections.Counter(answer)).values())
    if not common:
        return float(version_2 and words == answer)
    precision, recall = common / len(words), common / len(answer)
    return 2 * precision * recall / (precision + recall)


def _check(questions, predictions):
    """Raise InputError unless there are right answers and predictions for all questions."""
    if not questions:
        raise InputError('no questions to evaluate predictions on')
    for question in questions:
        if question.answers is None:
            raise InputError(f'there are no right answers to question {question.id!r}')
        if question.id not in predictions:
            raise InputError(f'there is no prediction for question {question.id!r}')


def score_v1(questions, predictions, characters=False):
    """Metrics of SQuAD 1.1.

    Parameters
    ----------
    characters : bool
        Whether F1 is over characters, as for KorQuAD and DRCD, not over words.

    Returns
    -------
    dict
        ``exact_match`` and ``f1``: means over the questions, with the best of the right answers
        for each.
    """
    exact, f1 = _scores(questions, predictions, False, characters)
    return {'exact_match': _percent(exact, questions), 'f1': _percent(f1, questions)}


def _scores(questions, predictions, version_2=True, characters=False):
    """Id -> 0 or 1 for an exact match, and id -> F1, with the best of the right answers."""
    _check(questions, predictions)
    exact, f1 = {}, {}
    parts = _characters if characters else str.split
    for question in questions:
        predicted = normalize_answer(predictions[question.id], characters)
        answers = [normalize_answer(answer, characters) for answer in question.answers]
        if version_2:
            answers = [answer for answer in answers if answer] or ['']
        elif not answers:
            raise InputError(f'question {question.id!r} has no answer: SQuAD 1.1 has none of these')
        exact[question.id] = int(predicted in answers)
        f1[question.id] = max(
            _overlap_f1(parts(predicted), parts(answer), version_2) for answer in answers
        )
    return exact, f1


def _characters(text):
    return [*text.replace(' ', '')]


def _percent(scores, questions):
    return 100 * sum(scores[question.id] for question in questions) / len(questions)


def score_v2(questions, predictions, characters=False):
    """Metrics of SQuAD 2.0.

    Parameters
    ----------
    predictions : dict
        Question's id -> text, '' for no answer.
    characters : bool
        As of `score_v1`.

    Returns
    -------
    dict
        ``exact``, ``f1`` and ``total``, the number of questions; the same with ``HasAns_`` and
        ``NoAns_`` before for the questions with and without an answer, where there are any.
    """
    exact, f1 = _scores(questions, predictions, True, characters)
    groups = {
        '': questions,
        'HasAns_': [question for question in questions if question.answers],
        'NoAns_': [question for question in questions if not question.answers],
    }
    metrics = {}
    for prefix, group in groups.items():
        if group:
            metrics[f'{prefix}exact'] = _percent(exact, group)
            metrics[f'{prefix}f1'] = _percent(f1, group)
            metrics[f'{prefix}total'] = len(group)
    return metrics


def best_thresholds(questions, predictions, null_odds, characters=False):
    """The best metrics that another threshold for no answer would give to the same predictions."""
    metrics = {}
    answers = {question.id: question.answers for question in questions}
    scored = _scores(questions, predictions, True, characters)
    for name, scores in zip(('exact', 'f1'), scored):
        # From a threshold below all, with which only the questions without an answer are right,
        # upwards: each question in turn gets its prediction.
        total = best = sum(not right for right in answers.values())
        threshold = 0.0
        for key in sorted(null_odds, key=null_odds.get):
            if answers[key]:
                total += scores[key]
            elif predictions[key]:
                total -= 1
            if total > best:
                best, threshold = total, null_odds[key]
        metrics[f'best_{name}'] = 100 * best / len(questions)
        metrics[f'best_{name}_thresh'] = threshold
    return metrics


DEBUG_SIZES = {'train': 10000, 'dev': 100}  # GluonNLP's


class SquadTask(Task):
    """Questions about paragraphs; epochs are compared by F1 with the threshold given.

    Rows in memory are SQuAD's dicts, or (question, context, answer, start), with None for no
    answer; they may be dicts with these names, or with `answers` as on the hub.
    """

    settings_class, name, trained_for = SquadSettings, 'squad', None
    head, use, unit, metric = 'question_answering', 'question-answering', 'questions', 'f1'
    title, most_lost = 'SQuAD', 0.5
    predicted = ('dev',)

    lowers = property(lambda self: self.settings.do_lower_case)

    def locate(self, given=None):
        settings, files = self.settings, {}
        check_files(settings, 'train_file', 'predict_file', 'sentencepiece')
        if given is not None:
            return given
        # with a training file of one's own nothing is downloaded that wasn't asked for
        if settings.predict_file or settings.only_inference or not settings.train_file:
            files['dev'] = settings.predict_file or find_squad('dev', settings.version_2)
        if not settings.only_inference:
            files['train'] = settings.train_file or find_squad('train', settings.version_2)
        return files

    def read(self, source, segment):
        settings, training = self.settings, segment == 'train'
        rows = read_squad(source, settings.version_2, training, settings.strict, settings.encoding)
        return rows.first(DEBUG_SIZES.get(segment, 100)) if self.settings.debug else rows

    def split(self, rows, share):
        parts = super().split(rows.questions, share)
        return [rows._replace(questions=part) for part in parts]

    def size(self, data):
        return len(data.rows.questions)

    def is_labelled(self, rows):
        return rows.questions[0].answers is not None

    def encode(self, rows, tokenizer):
        settings = self.settings
        if settings.uncased and not tokenizer.do_lower_case:
            raise InputError("is set, but the model's vocabulary is cased", field='uncased')
        cache_dir = settings.cache_dir
        if cache_dir is None and settings.output_dir is not None:
            cache_dir = os.path.join(settings.output_dir, 'cache')
        with self.workers.first_alone():  # it fills the cache
            encoding = encode_squad(rows, tokenizer, cache_dir)
        samples = SquadFeatures(
            rows,
            encoding,
            tokenizer,
            settings.max_seq_length,
            settings.doc_stride,
            settings.max_query_length,
        )
        if not len(samples):
            raise InputError(f'{rows.path}: there is no paragraph with a word in it')
        return samples

    def describe(self, data):
        squad = data.rows
        return f'{len(squad.questions)} questions of a file with checksum {squad.checksum[:16]}'

    def loss(self, model, batch):
        return model(*batch.inputs, batch.labels[:, 0], batch.labels[:, 1])

    def predict(self, forward, data, guard=None):
        """The `Answers`, from all windows of a question together."""
        scores, settings = [None] * data.loader.num_samples, self.settings
        for batch, outputs in outputs_of(forward, data.loader, guard):
            starts, ends = (array.astype('float32').asnumpy() for array in outputs)
            sizes = batch.valid_length.asnumpy().astype(int)
            for index, start, end, size in zip(batch.indices, starts, ends, sizes):
                scores[index] = start[:size], end[:size]
        return find_answers(
            data.samples,
            scores,
            version_2=settings.version_2,
            n_best_size=settings.n_best_size,
            max_answer_length=settings.max_answer_length,
            null_score_diff_threshold=settings.null_score_diff_threshold,
        )

    def decode(self, data, outputs):
        return [outputs.predictions[question.id] for question in data.rows.questions]

    def score(self, data, outputs):
        """The official metrics."""
        questions = data.rows.questions
        by_characters = self._by_characters(data)
        scores = self._score(questions, outputs.predictions, by_characters)
        if self.settings.version_2:
            scores.update(
                best_thresholds(questions, outputs.predictions, outputs.null_odds, by_characters)
            )
        return scores

    def _score(self, questions, predictions, by_characters):
        score = score_v2 if self.settings.version_2 else score_v1
        return score(questions, predictions, by_characters)

    def _by_characters(self, data):
        given = self.settings.f1_characters
        name = os.path.basename(data.rows.path).lower()
        return name.startswith(('korquad', 'drcd')) if given is None else given

    def write(self, folder, segment, data, outputs):
        return write_answers(folder, outputs)

    def examine(self, segment, data, outputs):
        """A question's loss is -log of the probability of its correct answers."""
        questions, paragraphs = data.rows.questions, data.rows.paragraphs
        by_characters = self._by_characters(data)
        normalize = functools.partial(normalize_answer, characters=by_characters)
        correct = [set(map(normalize, q.answers)) or {''} for q in questions]
        labels = [next(iter(question.answers), '') for question in questions]
        return Examination(
            segment,
            [f'{question.text} — {paragraphs[question.paragraph]}' for question in questions],
            labels,
            # another correct answer is none of the mistakes
            [
                label if normalize(answer) in answers else answer
                for label, answer, answers in zip(labels, self.decode(data, outputs), correct)
            ],
            [
                _loss(outputs.nbest[q.id], answers, normalize)
                for q, answers in zip(questions, correct)
            ],
            self._score(questions, {question.id: '' for question in questions}, by_characters),
            'no answer',
        )

    def exported_outputs(self, words, outputs):
        if not isinstance(outputs, list) and outputs.shape == (*words.shape, 2):  # GluonNLP's form
            outputs = outputs.split(2, axis=2, squeeze_axis=True)
        shapes = [array.shape for array in (outputs if isinstance(outputs, list) else [outputs])]
        if shapes != [words.shape] * 2:
            raise InputError(
                f'outputs of shapes {shapes} for words of shape {words.shape}; scores of starts '
                'and of ends are needed'
            )
        return outputs

    def results(self):
        return {'task': f'SQuAD {2.0 if self.settings.version_2 else 1.1}'}


def _loss(nbest, answers, normalize):
    total = sum(answer['probability'] for answer in nbest if normalize(answer['text']) in answers)
    return -math.log(min(max(total, 1e-6), 1))
