"""From scores of starts and ends to answers, as the text spells them.

Source: ``write_predictions`` and ``get_final_text`` in pytorch-pretrained-bert 0.6.2's
``run_squad.py``, which gives the same answers on the same scores.
"""

import os
from typing import Dict, List, NamedTuple

import numpy as np

from ...batches.windows import best_windows
from ...errors import InputError
from ...util.files import write_json
from .encode import split_words

__all__ = ['Answers', 'find_answers', 'map_to_text', 'write_answers']

NO_WINDOW = 1000000.0  # score of no answer where there is no window to give one
NOTHING = ('empty', 0.0, 0.0)  # the originals' answer where no span can be one


class Answers(NamedTuple):
    """What was found for each question.

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

    predictions: Dict[str, str]
    nbest: Dict[str, List[dict]]
    null_odds: Dict[str, float]


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
    features : SquadFeatures
    scores : sequence of (numpy.ndarray, numpy.ndarray)
        The scores of starts and of ends of each feature: one per token, and optionally more for
        padding. Padding is never an answer, but as in the originals its scores count among the
        `n_best_size` best.
    n_best_size : int
        Number of starts and of ends to consider per window, and of answers to keep.
    max_answer_length : int
        In pieces.
    version_2 : bool
        Whether there may be no answer.
    null_score_diff_threshold : float
        There is no answer if the score of no answer exceeds the best answer's by more than this.

    Returns
    -------
    Answers
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
            text, start, end = next((each for each in best if each[0]), NOTHING)
            difference = null_score - start - end
            answers.null_odds[question.id] = difference
            is_null = difference > null_score_diff_threshold
            answers.predictions[question.id] = '' if is_null else text
    return answers


def write_answers(folder, answers):
    """Write ``predictions.json``, ``nbest_predictions.json`` and, if any, ``null_odds.json``.

    Parameters
    ----------
    folder : str
    answers : Answers

    Returns
    -------
    list of str
        The files' names.
    """
    files = {'predictions.json': answers.predictions, 'nbest_predictions.json': answers.nbest}
    if answers.null_odds:
        files['null_odds.json'] = answers.null_odds
    for name, content in files.items():
        write_json(os.path.join(folder, name), content)
    return list(files)


def _with_probabilities(best):
    from scipy.special import softmax

    probabilities = softmax([start + end for _, start, end in best])
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
        self._texts = _Texts(features.tokenizer)
        self._paragraph = None, None

    def find(self, question, scores):
        """The best (text, start score, end score), at least one, and the score of no answer."""
        windows = self._features.windows_of(question)
        rows = [
            [np.asarray(row, np.float64) for row in scores[number]] for number in windows
        ]
        if not all(np.isfinite(row).all() for pair in rows for row in pair):
            raise InputError(
                "the model's scores are not finite: training has diverged; try a lower learning "
                'rate'
            )
        spans = self._spans(question, windows, rows)
        null = NO_WINDOW, 0.0, 0.0
        for start, end in rows:
            if start[0] + end[0] < null[0]:
                null = float(start[0] + end[0]), float(start[0]), float(end[0])
        if self._version_2:
            spans.append((-1, -1, *null[1:]))
        spans.sort(key=lambda span: span[2] + span[3], reverse=True)
        return self._best(question, spans, null), null[0]

    def _spans(self, question, windows, rows):
        """(first piece, last piece, start score, end score) of the spans that may be answers."""
        found = []
        parts = self._features.rows[windows.start : windows.stop, 1:]
        _, _, head = self._features.tokenizer.join_pair(self._features.query(question), [])
        size = parts[-1].sum() if len(parts) else 0
        best = best_windows(parts, size) if len(parts) else None
        for number, ((first, length), (start_scores, end_scores)) in enumerate(zip(parts, rows)):
            starts, ends = (
                np.argsort(-row, kind='stable')[: self._size] - head
                for row in (start_scores, end_scores)
            )
            starts, ends = (each[(each >= 0) & (each < length)] for each in (starts, ends))
            starts = starts[best[first + starts] == number]
            lengths = ends - starts[:, None] + 1
            for i, j in zip(*np.nonzero((lengths >= 1) & (lengths <= self._longest))):
                start, end = starts[i], ends[j]
                values = float(start_scores[start + head]), float(end_scores[end + head])
                found.append((int(first + start), int(first + end), *values))
        return found

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
        if self._paragraph[0] != number:
            words, _ = split_words(self._features.squad.paragraphs[number])
            self._paragraph = number, words
        ids, places = self._features.encoding.paragraph(number)
        words = self._paragraph[1][places[first] : places[last] + 1]
        return self._texts.find(ids[first : last + 1], words)


class _Texts:
    """Texts of pieces, with a cache of normalized words."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._normalized = {}

    def find(self, ids, words):
        """The part of the words that some of their pieces stand for, see `map_to_text`."""
        for word in words:
            if word not in self._normalized:
                self._normalized[word] = self._tokenizer.normalized(word)
        normalized = ' '.join(filter(None, (self._normalized[word] for word in words)))
        return map_to_text(self._tokenizer.spell(ids), ' '.join(words), normalized)


def map_to_text(part, text, normalized):
    """Find the span of a text that corresponds to a part of its normalized form.

    Normalizing lower-cases, strips accents and sets spaces around punctuation. Where it has left
    the number of characters other than spaces as it was, they are taken to correspond one to one.

    Parameters
    ----------
    part : str
        Normally occurs in `normalized`.
    text : str
    normalized : str
        Words of the text by the basic tokenizer, with single spaces between.

    Returns
    -------
    str
        The whole text where the part can't be found in it.
    """
    start = normalized.find(part)
    places = [place for place, char in enumerate(text) if char != ' ']
    if not part or start < 0 or len(places) != len(normalized) - normalized.count(' '):
        return text
    first, last = (
        places[place - normalized.count(' ', 0, place)] for place in (start, start + len(part) - 1)
    )
    return text[first : last + 1]
