"""SQuAD: question answering by a span of a text, from JSON to answers and their scores.

``read_squad`` -> ``encode_squad`` -> ``SquadFeatures`` -> the model -> ``find_answers`` ->
``score_v1`` or ``score_v2``.

Sources: ``write_predictions`` and ``get_final_text`` in pytorch-pretrained-bert 0.6.2's
``run_squad.py``, which gives the same answers on the same scores; the web site's
``evaluate-v1.1.py`` and ``evaluate-v2.0.py``, whose metrics, in percent, are equal.
"""

import collections
import collections.abc
import contextlib
import functools
import hashlib
import itertools
import json
import logging
import math
import os
import re
import string
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ..batches import Sample
from ..batches.windows import NO_WINDOW, best_windows, spans_within, split_windows
from ..errors import InputError, Where, reporting
from ..records import is_path, read_records
from ..tokenization.encoding import UNLIMITED
from ..training.objective import outputs_of
from ..util.arrays import softmax
from ..util.fields import AnyText, Whole
from ..util.files import write_json
from ..util.reading import check_json, read_json
from .scores import check_finite, error_analysis
from .settings import SquadSettings
from .tables import check_files, downloading
from .task import Task, warn_if_cut

__all__ = [
    'Answers',
    'SquadFeatures',
    'SquadSet',
    'SquadTask',
    'encode_squad',
    'find_answers',
    'read_squad',
    'score_v1',
    'score_v2',
]

logger = logging.getLogger(__name__)


class Question(NamedTuple):
    """A question about a paragraph."""

    id: str
    text: str
    paragraph: int
    answers: tuple[str, ...] | None
    start: int | None

    @property
    def label(self):
        """The answers, as other tasks' rows have a label."""
        return self.answers


class SquadSet(list):
    """A file of SQuAD: a list of its questions, with the paragraphs that they are about."""

    def __init__(self, path, paragraphs, questions, is_training=False, checksum=''):
        super().__init__(questions)
        self.path, self.paragraphs = path, paragraphs
        self.is_training, self.checksum = is_training, checksum

    @property
    def questions(self):
        """The questions, which are the set itself."""
        return self


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
        found = name, entry['question'], len(paragraphs) - 1, answers, start
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
        counts = len(skipped), len(ids)
        logger.warning('%s: skipped %d of %d questions: %s', path, *counts, shown)
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


# The white space at which the originals part words; more kinds separate words for the tokenizer.
_WORD = re.compile('[^ \t\r\n\u202f]+')


@functools.lru_cache(maxsize=1)
def split_words(text):
    """Return the words of a text between white space, and the places where they begin."""
    matches = list(_WORD.finditer(text))
    starts = np.array([match.start() for match in matches], dtype=np.int64)
    return [match.group() for match in matches], starts


class SquadEncoding(NamedTuple):
    """The pieces of a `SquadSet`.

    Parameters
    ----------
    paragraphs, questions : list of numpy.ndarray, int32
        Ids of each paragraph and of each question.
    words : list of numpy.ndarray
        The numbers of the words of each paragraph's pieces.
    spans : numpy.ndarray, shape (questions, 2), int32
        First and last piece of each answer that is learned, or -1.
    """

    paragraphs: list[np.ndarray]
    words: list[np.ndarray]
    questions: list[np.ndarray]
    spans: np.ndarray


def encode_squad(squad, tokenizer):
    """Encode a set: return its `SquadEncoding`."""

    def encode(texts, unit=''):
        # without a length, texts over the model's would be warned of: windows cut them
        pairs = [(text, None) for text in texts]
        rows = tokenizer.encode_pairs(pairs, UNLIMITED, add_special_tokens=False)
        name = os.path.basename(squad.path)
        return tqdm(rows, name, len(pairs), unit=f' {unit}', disable=None, leave=False)

    paragraphs, words, spans = [], [], np.full((len(squad), 2), -1, np.int32)
    starts = []  # of each paragraph's words
    for text, row in zip(squad.paragraphs, encode(squad.paragraphs, 'paragraphs')):
        starts.append(split_words(text)[1])
        places = np.array([start for start, _ in row.offsets], np.int64)
        paragraphs.append(row.input_ids)
        words.append(np.searchsorted(starts[-1], places, side='right') - 1)
    questions = [row.input_ids for row in encode([q.text for q in squad], 'questions')]
    learned = [number for number, question in enumerate(squad) if question.start is not None]
    answers = [squad[number].answers[0] for number in learned]
    prefixes = dict.fromkeys(('', tokenizer.word_prefix or ''))
    # the ids of each answer alone, and behind another word
    forms = [[row.input_ids for row in encode([p + a for a in answers])] for p in prefixes]
    for number, answer, *ids in zip(learned, answers, *forms):
        _, _, paragraph, _, start = squad[number]
        ends = np.searchsorted(starts[paragraph], [start, start + len(answer) - 1], side='right')
        first, last = np.maximum(ends - 1, 0)  # words
        first = np.searchsorted(words[paragraph], first, side='left')
        last = np.searchsorted(words[paragraph], last, side='right') - 1
        spans[number] = _answer_span(paragraphs[paragraph], first, last, ids)
    return SquadEncoding(paragraphs, words, questions, spans)


def _answer_span(ids, first, last, forms):
    """Return the first and last piece of an answer in the pieces from `first` to `last`."""
    for answer in forms:
        size = len(answer)
        for start in range(first, last - size + 2 if size else first):
            if np.array_equal(ids[start : start + size], answer):
                return start, start + size - 1
    return first, last


class SquadFeatures(collections.abc.Sequence):
    """A sequence of windows as samples, which are made on access.

    A sample is ``[CLS] question [SEP] window [SEP]``. In training sets its label is the first and
    last position of the answer; both are 0, the position of ``[CLS]``, without a whole answer in
    the window. Windows and labels are the same as in pytorch-pretrained-bert 0.6.2's
    ``run_squad.py``.

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
            problem = f'{max_seq_length} must be more than `max_query_length` + 3'
            raise InputError(problem, field='max_length')
        self.squad, self.encoding, self.tokenizer = squad, encoding, tokenizer
        self.normalized = functools.cache(tokenizer.normalized)
        self._max_query_length = max_query_length
        cut = sum(len(ids) > max_query_length for ids in encoding.questions)
        warn_if_cut(cut, len(encoding.questions), 'questions', max_query_length)
        rows, self._bounds = [], [0]
        for number, question in enumerate(squad):
            room = max_seq_length - len(self.query(number)) - tokenizer.pair_size()
            size = len(encoding.paragraphs[question.paragraph])
            windows = split_windows(size, room, doc_stride)
            if len(windows) > 1 and doc_stride > room:
                problem = f'{doc_stride} must be at most {room}, the room beside {question.id!r}'
                raise InputError(problem, field='doc_stride')
            rows += [(number, *window) for window in windows]
            self._bounds.append(len(rows))
        #: question, first piece and number of pieces of each window
        self.rows = np.array(rows, dtype=np.int32).reshape(-1, 3)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        question, start, length = self.rows[number]
        part = self.encoding.paragraphs[self.squad[question].paragraph][start : start + length]
        ids, types, head = self.tokenizer.with_special_tokens(self.query(question), part)
        label = None
        if self.squad.is_training:
            first, last = self.encoding.spans[question]
            label = np.zeros(2, np.float32)
            if first >= start and last < start + length:  # without an answer first is -1
                label[:] = np.array([first, last]) - start + head
        return Sample(ids, types, label)

    def query(self, question):
        """Return the ids of question number `question`, cut to `max_query_length`."""
        return self.encoding.questions[question][: self._max_query_length]

    def windows_of(self, question):
        """Return the numbers of the windows of question number `question`, a range."""
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
    """Find the best answers to the questions of a set.

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
    answers = Answers({}, {}, {})
    for number, question in enumerate(features.squad):
        own = [np.asarray(scores[window], np.float64) for window in features.windows_of(number)]
        for rows in own:
            check_finite(rows)
        nulls = [(float(rows[:, 0].sum()), *rows[:, 0].tolist()) for rows in own]
        null = min([(NO_WINDOW, 0.0, 0.0), *nulls], key=lambda each: each[0])
        spans = _spans(features, number, own, n_best_size, max_answer_length)
        if version_2:
            spans.append((-1, -1, *null[1:]))
        spans.sort(key=lambda span: span[2] + span[3], reverse=True)
        best = {}  # text -> the scores of its best span
        for first, last, *values in spans:
            if len(best) >= n_best_size:
                break
            best.setdefault('' if first < 0 else _text_of(features, number, first, last), values)
        if version_2:
            best.setdefault('', null[1:])
        best = [(text, *values) for text, values in best.items()]
        if not best or (version_2 and len(best) == 1):
            best.insert(0, NOTHING)
        shares = softmax(np.array([start + end for _, start, end in best])).tolist()
        answers.nbest[question.id] = [
            {'text': text, 'probability': share, 'start_logit': start, 'end_logit': end}
            for (text, start, end), share in zip(best, shares)
        ]
        answers.predictions[question.id] = best[0][0]
        if version_2:
            text, start, end = next((span for span in best if span[0]), NOTHING)
            difference = null[0] - start - end
            answers.null_odds[question.id] = difference
            is_null = difference > null_score_diff_threshold
            answers.predictions[question.id] = '' if is_null else text
    return answers


def _spans(features, question, scores, n_best_size, longest):
    """Return (first piece, last piece, start score, end score) of possible answers."""
    spans, windows = [], features.windows_of(question)
    if not windows:
        return []
    parts = features.rows[windows.start : windows.stop, 1:]
    _, _, head = features.tokenizer.with_special_tokens(features.query(question), [])
    best = best_windows(parts, parts[-1].sum())
    for number, ((first, length), rows) in enumerate(zip(parts, scores)):
        starts, ends = (np.argsort(-row, kind='stable')[:n_best_size] - head for row in rows)
        starts, ends = (pieces[(pieces >= 0) & (pieces < length)] for pieces in (starts, ends))
        starts = starts[best[first + starts] == number]
        for start, end in zip(*spans_within(starts, ends, longest)):
            values = float(rows[0][start + head]), float(rows[1][end + head])
            spans.append((int(first + start), int(first + end), *values))
    return spans


def _text_of(features, question, first, last):
    """Return the text of a question's paragraph from a first to a last piece."""
    squad, encoding, tokenizer = features.squad, features.encoding, features.tokenizer
    number = squad[question].paragraph
    places = encoding.words[number]
    words = split_words(squad.paragraphs[number])[0][places[first] : places[last] + 1]
    part = tokenizer.spell(encoding.paragraphs[number][first : last + 1])
    normalized = ' '.join(filter(None, map(features.normalized, words)))
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
    end = start + len(part) - 1
    first, last = (letters[place - normalized.count(' ', 0, place)] for place in (start, end))
    return text[first : last + 1]


_ARTICLES = re.compile(r'\b(a|an|the)\b')
_PUNCTUATION = str.maketrans('', '', string.punctuation)
_QUOTES = str.maketrans(dict.fromkeys('\'"()<>〈〉《》‘’', ' '))


def normalize_answer(text, characters=False):
    """Return the text in lower case, without ASCII punctuation, articles and extra white space.

    With `characters` as in KorQuAD's script: without quotes and brackets, with articles.
    """
    if characters:
        return ' '.join(text.translate(_QUOTES).lower().translate(_PUNCTUATION).split())
    return ' '.join(_ARTICLES.sub(' ', text.lower().translate(_PUNCTUATION)).split())


def score_v1(questions, predictions, characters=False):
    """Compute the metrics of SQuAD 1.1.

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
    """Return id -> 0 or 1 for an exact match, and id -> F1; the best right answer counts."""
    exact, f1 = {}, {}

    def overlap(predicted, answer):
        texts = predicted, answer
        parts = [[*text.replace(' ', '')] if characters else text.split() for text in texts]
        common = (collections.Counter(parts[0]) & collections.Counter(parts[1])).total()
        if not common:  # of two empty ones 1 in SQuAD 2.0, and 0 in 1.1
            return float(version_2 and parts[0] == parts[1])
        precision, recall = (common / len(part) for part in parts)
        return 2 * precision * recall / (precision + recall)

    for question in questions:
        predicted = normalize_answer(predictions[question.id], characters)
        answers = [normalize_answer(answer, characters) for answer in question.answers]
        if version_2:
            answers = [answer for answer in answers if answer] or ['']
        exact[question.id] = int(predicted in answers)
        f1[question.id] = max(overlap(predicted, answer) for answer in answers)
    return exact, f1


def _percent(scores, questions):
    return 100 * sum(scores[question.id] for question in questions) / len(questions)


def score_v2(questions, predictions, characters=False, null_odds=None):
    """Compute the metrics of SQuAD 2.0.

    Parameters
    ----------
    predictions : dict
        Question's id -> text, '' for no answer.
    characters : bool
        As of `score_v1`.
    null_odds : dict, optional
        Question's id -> score of no answer minus the best answer's.

    Returns
    -------
    dict
        ``exact``, ``f1`` and ``total``, the number of questions; the same with ``HasAns_`` and
        ``NoAns_`` before for the questions with and without an answer, if there are any. With
        `null_odds`, ``best_exact`` and ``best_f1`` of the same predictions with other thresholds
        for no answer, and ``best_exact_thresh`` and ``best_f1_thresh``.
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
    for name, scores in (('exact', exact), ('f1', f1)) if null_odds is not None else ():
        # From a threshold below all, with which only the questions without an answer are right,
        # upwards: each question in turn gets its prediction.
        total = best = len(groups['NoAns_'])
        threshold, known = 0.0, {question.id for question in groups['HasAns_']}
        for key in sorted(null_odds, key=null_odds.get):
            if key in known:
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
    title, predicted = 'SQuAD', ('dev', 'test')
    command = "zoo ask {folder} --text 'The film was red.' 'What colour was it?'"
    call = "{'question': 'What colour was it?', 'context': 'The film was red.'}"

    lowers = property(lambda self: self.settings.do_lower_case)

    def locate(self, given=None):
        settings, files = self.settings, {}
        check_files(settings, 'train_file', 'dev_file', 'test_file')
        if given is not None:
            return given
        # with the user's own files nothing is downloaded that wasn't asked for
        own = settings.test_file if settings.only_inference else settings.train_file
        if settings.dev_file or not (own or settings.dev_split):
            files['dev'] = settings.dev_file or find_squad('dev', settings.version_2)
        if settings.test_file:
            files['test'] = settings.test_file
        if not settings.only_inference:
            files['train'] = settings.train_file or find_squad('train', settings.version_2)
        return files

    def read(self, source, segment):
        settings, training = self.settings, segment == 'train'
        rows = read_squad(source, settings.version_2, training, settings.strict, settings.encoding)
        if settings.debug:
            del rows[DEBUG_SIZES.get(segment, 100) :]
            del rows.paragraphs[rows[-1].paragraph + 1 :]
        return rows

    def example(self, rows):
        question = rows[0]
        return {'text': question.text, 'context': rows.paragraphs[question.paragraph]}

    def encode(self, rows, tokenizer):
        settings = self.settings
        if settings.uncased and not tokenizer.do_lower_case:
            raise InputError("is set, but the model's vocabulary is cased", field='uncased')
        sizes = settings.max_length, settings.doc_stride, settings.max_query_length
        return SquadFeatures(rows, encode_squad(rows, tokenizer), tokenizer, *sizes)

    def describe(self, data):
        squad = data.rows
        return f'{len(squad)} questions of a file with checksum {squad.checksum[:16]}'

    def loss(self, model, batch):
        return model(*batch.inputs, batch.labels[:, 0], batch.labels[:, 1])

    def forward(self, model, batch):
        outputs = model(*batch.inputs)
        if isinstance(outputs, list):
            return outputs
        return outputs.split(2, axis=2, squeeze_axis=True)  # an exported model of GluonNLP's form

    def predict(self, forward, data, guard=None):
        """Return the `Answers`, from all windows of a question together."""
        scores, settings = [None] * data.loader.num_samples, self.settings
        for batch, outputs in outputs_of(forward, data.loader, guard):
            starts, ends = (array.astype('float32').asnumpy() for array in outputs)
            sizes = batch.valid_length.asnumpy().astype(int)
            for index, start, end, size in zip(batch.indices, starts, ends, sizes):
                scores[index] = start[:size], end[:size]
        options = settings.n_best_size, settings.max_answer_length, settings.version_2
        threshold = settings.null_score_diff_threshold
        return find_answers(data.samples, scores, *options, threshold)

    def decode(self, data, outputs):
        return [outputs.predictions[question.id] for question in data.rows]

    def score(self, data, outputs):
        """Compute the official metrics."""
        return self._scores(data, outputs.predictions, outputs.null_odds)

    def _scores(self, data, predictions, null_odds=None):
        if self.settings.version_2:
            return score_v2(data.rows, predictions, self._by_characters(data), null_odds)
        return score_v1(data.rows, predictions, self._by_characters(data))

    def _by_characters(self, data):
        given = self.settings.f1_characters
        name = os.path.basename(data.rows.path).lower()
        return name.startswith(('korquad', 'drcd')) if given is None else given

    def write(self, folder, segment, data, outputs):
        """Write ``predictions.json``, ``nbest_predictions.json`` and, if any, ``null_odds.json``.

        For the test set the names begin with ``test_``.
        """
        names = ('predictions', 'nbest_predictions', 'null_odds')
        names = (f'{"test_" * (segment == "test")}{name}.json' for name in names)
        files = {name: content for name, content in zip(names, outputs) if content}
        for name, content in files.items():
            write_json(os.path.join(folder, name), content)
        return list(files)

    def analyze(self, data, outputs):
        """Return the analysis; a loss is -log of the probability of the correct answers."""
        by_characters, rows = self._by_characters(data), []
        for question in data.rows:
            label = next(iter(question.answers), '')
            answer, nbest = outputs.predictions[question.id], outputs.nbest[question.id]
            correct = {normalize_answer(each, by_characters) for each in question.answers} or {''}
            if normalize_answer(answer, by_characters) in correct:
                answer = label  # another correct answer is no mistake
            right = (normalize_answer(each['text'], by_characters) in correct for each in nbest)
            share = sum(each['probability'] for each in itertools.compress(nbest, right))
            text = f'{question.text} — {data.rows.paragraphs[question.paragraph]}'
            rows.append((text, label, answer, -math.log(min(max(share, 1e-6), 1))))
        baseline = self._scores(data, dict.fromkeys(outputs.predictions, ''))
        return error_analysis(*map(list, zip(*rows)), baseline, 'no answer')

    def results(self):
        return {'task': f'SQuAD {2.0 if self.settings.version_2 else 1.1}'}
