"""Question answering by a span of a text, as in SQuAD: from files to answers and their scores.

``read_squad`` -> ``encode_squad`` -> ``SquadFeatures`` -> the model -> ``find_answers`` ->
``score_v1`` or ``score_v2``. Windows and answers come from `model_zoo.inference.passages`, as the
pipeline's do.
"""

import bisect
import collections.abc
import itertools
import logging
import math
import os
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ..batches import Sample
from ..errors import InputError
from ..inference.passages import (
    SpanRanker,
    chosen,
    encode_whole,
    read_passages,
    split_words,
    windows_over,
)
from ..inference.questions import READER, ReaderSettings
from ..training.objective import outputs_of
from ..util.files import write_json
from .rows import warn_if_cut
from .scores import check_finite, error_analysis
from .settings import SquadSettings
from .squad_files import SquadSet, find_squad, read_squad
from .squad_scores import normalize_answer, score_v1, score_v2
from .tables import given_files
from .task import Task

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

#: questions of the dev set with, and without, an answer that can choose a threshold: with fewer,
#: one of them decides on a tenth of all
ENOUGH = 10


def encode_squad(squad, tokenizer):
    """Encode a set.

    Returns
    -------
    passages : list of Passage
        Of each paragraph.
    questions : list of numpy.ndarray
        Ids of each question.
    spans : numpy.ndarray, shape (questions, 2), int32
        First and last piece of each answer that is learned, or -1.
    """
    shown = {'unit': ' paragraphs', 'disable': None, 'leave': False}
    passages = read_passages(tokenizer, squad.paragraphs)
    name, count = os.path.basename(squad.path), len(squad.paragraphs)
    passages = list(tqdm(passages, name, count, **shown))
    questions = encode_whole(tokenizer, [question.text for question in squad])
    questions = [row.input_ids for row in questions]
    spans = np.full((len(squad), 2), -1, np.int32)
    learned = [number for number, question in enumerate(squad) if question.start is not None]
    answers = [squad[number].answers[0] for number in learned]
    # the ids of each answer alone, and behind another word
    forms = [
        [row.input_ids for row in encode_whole(tokenizer, [prefix + each for each in answers])]
        for prefix in dict.fromkeys(('', tokenizer.word_prefix or ''))
    ]
    for number, answer, *ids in zip(learned, answers, *forms):
        passage, start = passages[squad[number].paragraph], squad[number].start
        _, starts = split_words(passage.text)
        words = np.searchsorted(starts, passage.offsets[:, 0], side='right')  # of the pieces
        first, last = np.searchsorted(starts, [start, start + len(answer) - 1], side='right')
        first = np.searchsorted(words, max(first, 1), side='left')
        last = np.searchsorted(words, max(last, 1), side='right') - 1
        spans[number] = _answer_span(passage.ids, first, last, ids)
    return passages, questions, spans


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

    Attributes
    ----------
    windows : list of Window
        Of all questions, in their order.
    """

    def __init__(
        self, squad, encoding, tokenizer, max_seq_length=384, doc_stride=128, max_query_length=64
    ):
        if max_seq_length <= max_query_length + 3:
            problem = f'{max_seq_length} must be more than `max_query_length` + 3'
            raise InputError(problem, field='max_length')
        self.squad, self.encoding, self.tokenizer = squad, encoding, tokenizer
        passages, questions, self._spans = encoding
        cut = sum(len(ids) > max_query_length for ids in questions)
        warn_if_cut(cut, len(questions), 'questions', max_query_length)
        self.ranker, self.windows, self._bounds = SpanRanker(tokenizer), [], [0]
        for question, ids in zip(squad, questions):
            asked, passage = ids[:max_query_length], passages[question.paragraph]
            windows = windows_over(tokenizer, asked, passage, max_seq_length, doc_stride)
            windows = windows if len(passage.ids) else []
            if len(windows) > 1 and doc_stride > windows[0].length:
                room = f'{windows[0].length}, the room beside {question.id!r}'
                raise InputError(f'{doc_stride} must be at most {room}', field='doc_stride')
            self.windows += windows
            self._bounds.append(len(self.windows))

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, number):
        window, label = self.windows[number], None
        if self.squad.is_training:
            question = bisect.bisect(self._bounds, number) - 1
            first, last = self._spans[question] - window.first
            label = np.zeros(2, np.float32)
            if first >= 0 and last < window.length:  # without an answer first is below 0
                label[:] = first + window.head, last + window.head
        return Sample(*window.encode(self.tokenizer), label)

    def windows_of(self, question):
        """Return the numbers of the windows of question number `question`, a range."""
        return range(self._bounds[question], self._bounds[question + 1])


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

    def at(self, threshold):
        """Return the predictions with another threshold for "no answer"."""
        texts = {name: [each['text'] for each in best] for name, best in self.nbest.items()}
        odds = self.null_odds
        return {name: row[chosen(row, odds.get(name), threshold)] for name, row in texts.items()}


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
    found, fields = Answers({}, {}, {}), ('text', 'probability', 'start_logit', 'end_logit')
    for number, question in enumerate(features.squad):
        windows = features.windows_of(number)
        rows = [np.asarray(scores[window]) for window in windows]
        for row in rows:
            check_finite(row)
        windows = [features.windows[window] for window in windows]
        limits = n_best_size, max_answer_length, version_2
        answers, null_odds = features.ranker.rank(windows, rows, *limits)
        found.nbest[question.id] = [{name: getattr(e, name) for name in fields} for e in answers]
        if version_2:
            found.null_odds[question.id] = null_odds
    return found._replace(predictions=found.at(null_score_diff_threshold))


class SquadTask(Task):
    """Questions about paragraphs; epochs are compared by F1.

    Unless the threshold for "no answer" is given, it is what suits the dev set best, if that has
    `ENOUGH` questions with and without an answer; the trained model keeps it.

    Rows in memory are SQuAD's dicts, or (question, context, answer, start), with None for no
    answer; they may be dicts with these names, or with `answers` as on the hub.
    """

    settings_class, name, trained_for = SquadSettings, 'squad', None
    head, use, unit, metric = 'question_answering', 'question-answering', 'questions', 'f1'
    title, _threshold, _chooses = 'SQuAD', 0.0, False
    unlogged = [f'{group}_{name}' for group in ('HasAns', 'NoAns') for name in ('exact', 'total')]
    unlogged += ['total', 'best_exact', 'best_exact_thresh', 'best_f1', 'best_f1_thresh']
    command = "zoo ask {folder} --text 'The film was red.' 'What colour was it?'"
    call = "{'question': 'What colour was it?', 'context': 'The film was red.'}"

    def locate(self, given=None):
        settings = self.settings
        files = {**given_files(settings, self.files, self.dev_share), **(given or {})}
        if settings.only_inference:
            files.pop('train', None)
        # with the user's own files nothing is downloaded that wasn't asked for
        own = 'test' if settings.only_inference else 'train'
        if not (self.dev_share or {'dev', own} & files.keys()):
            files['dev'] = find_squad('dev', settings.version_2)
        if 'train' not in files and not settings.only_inference:
            files['train'] = find_squad('train', settings.version_2)
        return files

    def configure(self, located):
        if located is not None and READER in located.fields and not self.trains:
            # the folder says what isn't given, except for what the data is
            own, known = ReaderSettings.read(located.fields[READER]), {'version_2'}
            known |= self.settings.given
            own = {name: value for name, value in own if name not in known}
            self.assume(**own)
        self._threshold = self.settings.null_score_diff_threshold or 0.0
        self.own_length = self.settings.max_length

    def read(self, source, segment):
        settings, training = self.settings, segment == 'train'
        rows = read_squad(source, settings.version_2, training, settings.strict, settings.encoding)
        rows.is_test = segment == 'test'
        if settings.debug:
            del rows[10000 if segment == 'train' else 100 :]  # as GluonNLP's script
            del rows.paragraphs[rows[-1].paragraph + 1 :]
        return rows

    def prepare(self, rows):
        """Find out whether the dev set can say which threshold suits it."""
        settings, dev = self.settings, rows.get('dev', ())
        counts = [sum(bool(row.answers) is known for row in dev) for known in (True, False)]
        is_open = settings.version_2 and settings.null_score_diff_threshold is None and self.trains
        self._chooses = is_open and min(counts) >= ENOUGH
        text = 'the dev set has %d questions with and %d without an answer: '
        if self._chooses:
            logger.info(text + 'they choose the threshold for "no answer"', *counts)
        elif is_open and min(counts):
            text += 'too few to choose a threshold for "no answer", which stays 0; '
            logger.warning(text + '`null_score_diff_threshold` sets it', *counts)

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
        limits = settings.n_best_size, settings.max_answer_length, settings.version_2
        return find_answers(data.samples, scores, *limits)

    def decode(self, data, outputs):
        return list(outputs.at(self._threshold).values())

    def score(self, data, outputs):
        """Compute the official metrics; of a dev set with the threshold that suits it best."""
        odds = outputs.null_odds
        if self._chooses and not data.rows.is_test:
            best = self._scores(data, outputs.at(math.inf), odds)['best_f1_thresh']
            # between two questions, so that the last bits of the odds decide none
            above = min(filter(best.__lt__, odds.values()), default=best)
            self._threshold = (best + above) / 2
        scores = self._scores(data, outputs.at(self._threshold), odds)
        return {**scores, 'threshold': self._threshold} if odds else scores

    def finalize(self, model, report):
        self._threshold = report.get('dev', {}).get('threshold', self._threshold)

    def _scores(self, data, predictions, null_odds=None):
        by_characters = self._by_characters(data)
        if self.settings.version_2:
            return score_v2(data.rows, predictions, by_characters, null_odds)
        return score_v1(data.rows, predictions, by_characters)

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
        answers = outputs._replace(predictions=outputs.at(self._threshold))
        files = {name: content for name, content in zip(names, answers) if content}
        for name, content in files.items():
            write_json(os.path.join(folder, name), content)
        return list(files)

    def analyze(self, data, outputs):
        """Return the analysis; a loss is -log of the probability of the correct answers."""
        by_characters, rows = self._by_characters(data), []
        for question, answer in zip(data.rows, self.decode(data, outputs)):
            label, nbest = next(iter(question.answers), ''), outputs.nbest[question.id]
            correct = {normalize_answer(each, by_characters) for each in question.answers} or {''}
            if normalize_answer(answer, by_characters) in correct:
                answer = label  # another correct answer is no mistake
            right = (normalize_answer(each['text'], by_characters) in correct for each in nbest)
            share = sum(each['probability'] for each in itertools.compress(nbest, right))
            text = f'{question.text} — {question.context}'
            rows.append((text, label, answer, -math.log(min(max(share, 1e-6), 1))))
        scores = self._scores(data, dict.fromkeys(outputs.predictions, ''))
        baseline = {name: scores[name] for name in scores if name in ('f1', 'exact_match', 'exact')}
        return error_analysis(*map(list, zip(*rows)), baseline, 'no answer')

    def save(self, folder, model, tokenizer, **options):
        own = {name: vars(self.settings)[name] for name in ReaderSettings.model_fields}
        model.config.extras[READER] = {**own, 'null_score_diff_threshold': self._threshold}
        super().save(folder, model, tokenizer, **options)

    def results(self):
        return {'task': f'SQuAD {2.0 if self.settings.version_2 else 1.1}'}
