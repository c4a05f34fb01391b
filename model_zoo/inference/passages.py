"""Questions about texts of any length: their windows, and the spans of a text that answer best.

Training, evaluation and the pipeline of question answering use this. `SpanRanker` does what
``write_predictions`` and ``get_final_text`` do in pytorch-pretrained-bert 0.6.2's ``run_squad.py``,
and finds the same answers for the same scores.
"""

import functools
import re
from typing import NamedTuple

import numpy as np

from ..batches.windows import NO_WINDOW, best_windows, spans_within, text_windows
from ..errors import InputError
from ..tokenization.encoding import UNLIMITED
from ..util.arrays import softmax

__all__ = ['SpanRanker']


class Passage(NamedTuple):
    """A text that questions are about, as the model reads it.

    Parameters
    ----------
    ids : numpy.ndarray, shape (pieces,), int32
    offsets : numpy.ndarray, shape (pieces, 2), int32
        Start and end of each piece in the text.
    word_ids : list of int, optional
        The number of each piece's word.
    """

    text: str
    ids: np.ndarray
    offsets: np.ndarray
    word_ids: list | None = None


class Window(NamedTuple):
    """A part of a passage that the model sees behind a question.

    Parameters
    ----------
    question : sequence of int
        Its ids.
    first, length : int
        The part's first piece, and how many it has.
    head : int
        Number of the model's ids before the part.
    """

    question: list
    passage: Passage
    first: int
    length: int
    head: int

    def encode(self, tokenizer):
        """Return the ids and token types, int32, (tokens,)."""
        part = self.passage.ids[self.first : self.first + self.length]
        return tokenizer.with_special_tokens(self.question, part)[:2]


def encode_whole(tokenizer, texts):
    """Yield the encodings of texts of any length, without special tokens."""
    # without a length, texts over the model's would be warned of: windows cut them
    pairs = [(text, None) for text in texts]
    return tokenizer.encode_pairs(pairs, UNLIMITED, add_special_tokens=False)


def read_passages(tokenizer, texts, has_words=False):
    """Yield the `Passage` of each text."""
    for text, row in zip(texts, encode_whole(tokenizer, texts)):
        offsets = np.array(row.offsets, np.int32).reshape(-1, 2)
        yield Passage(text, row.input_ids, offsets, row.word_ids if has_words else None)


def windows_over(tokenizer, question, passage, length, step=None, overlap=0):
    """Return the windows over a passage.

    Parameters
    ----------
    question : sequence of int
    length : int
        Most ids of a window, with the question and special tokens.
    step, overlap : int
        From the start of a window to the start of the next one; by default `overlap` less than its
        length.
    """
    room = length - len(question) - tokenizer.pair_size()
    step = room - overlap if step is None else step
    if min(room, step) < 1:
        raise InputError(f'there is no room for the {len(question)} tokens of the question')
    head = tokenizer.with_special_tokens(question, [])[2]
    parts = text_windows(len(passage.ids), room, step)
    return [Window(question, passage, p.start, p.stop - p.start, head) for p in parts]


class Answer(NamedTuple):
    """An answer: its text, and its first and last piece in the passage; -1 for no answer."""

    text: str
    first: int
    last: int
    start_logit: float
    end_logit: float
    probability: float = 0.0


#: the originals' answer where no span can be one
NOTHING = Answer('empty', -1, -1, 0.0, 0.0)


def chosen(texts, null_odds, threshold=0.0):
    """Return the number of the answer among the texts of the best ones, where '' is no answer.

    `null_odds` is the score of no answer minus the best answer's; None if there must be an answer.
    """
    if null_odds is None:
        return 0
    return next(n for n, text in enumerate(texts) if bool(text) != (null_odds > threshold))


# The white space at which the originals part words; more kinds separate words for the tokenizer.
_WORD = re.compile('[^ \t\r\n\u202f]+')


@functools.lru_cache(maxsize=1)
def split_words(text):
    """Return the words of a text between white space, and the places where they begin."""
    matches = list(_WORD.finditer(text))
    starts = np.array([match.start() for match in matches], dtype=np.int64)
    return [match.group() for match in matches], starts


class SpanRanker:
    """Ranks the answers to questions as BERT's run_squad.py does."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._normalized = functools.lru_cache(2**18)(tokenizer.normalized)

    def rank(self, windows, scores, n_best, longest, may_be_empty=False):
        """Return the best answers to a question, and the `null_odds` of `chosen`.

        Parameters
        ----------
        windows : list of Window
            All windows of the question.
        scores : sequence of (numpy.ndarray, numpy.ndarray)
            The scores of starts and of ends of each window: one per token, and optionally more for
            padding. Padding is never an answer, but as in the originals its scores count among the
            `n_best` best.
        n_best : int
            Number of starts and of ends to consider per window, and of answers to keep.
        longest : int
            Most pieces of an answer.
        """
        scores = [np.asarray(rows, np.float64) for rows in scores]
        nulls = [(float(rows[:, 0].sum()), *rows[:, 0].tolist()) for rows in scores]
        null = min([(NO_WINDOW, 0.0, 0.0), *nulls], key=lambda each: each[0])
        no_answer = Answer('', -1, -1, *null[1:])
        spans = _spans(windows, scores, n_best, longest)
        spans = sorted(spans + [no_answer[1:5]] * may_be_empty, key=lambda s: -s[2] - s[3])
        best = {}  # text -> its best span
        for first, last, *values in spans:
            if len(best) >= n_best:
                break
            text = '' if first < 0 else self.find(windows[0].passage, first, last)[0]
            best.setdefault(text, Answer(text, first, last, *values))
        if may_be_empty:
            best.setdefault('', no_answer)
        answers = list(best.values())
        if not answers or (may_be_empty and len(answers) == 1):
            answers.insert(0, NOTHING)
        sums = [answer.start_logit + answer.end_logit for answer in answers]
        shares = softmax(np.array(sums)).tolist()
        answers = [a._replace(probability=share) for a, share in zip(answers, shares)]
        if not may_be_empty:
            return answers, None
        number = chosen([answer.text for answer in answers], 0.0)
        return answers, null[0] - sums[number]

    def find(self, passage, first, last):
        """Return the text from a first to a last piece, and its start and end in the passage.

        There are single spaces between the words of the text.
        """
        words, starts = split_words(passage.text)
        begin, end = np.searchsorted(starts, passage.offsets[[first, last], 0], side='right')
        words = words[begin - 1 : end]
        part = self._tokenizer.spell(passage.ids[first : last + 1])
        normalized, text = ' '.join(filter(None, map(self._normalized, words))), ' '.join(words)
        start, end = map_to_text(part, text, normalized)

        def place(number):
            word = begin - 1 + text.count(' ', 0, number)
            return int(starts[word]) + number - (text.rfind(' ', 0, number) + 1)

        return text[start:end], place(start), place(end - 1) + 1


def _spans(windows, scores, n_best, longest):
    """Return (first piece, last piece, start score, end score) of possible answers."""
    spans, parts = [], [(window.first, window.length) for window in windows]
    best = best_windows(parts, sum(parts[-1])) if parts else ()
    for number, ((first, length), rows) in enumerate(zip(parts, scores)):
        head = windows[number].head
        starts, ends = (np.argsort(-row, kind='stable')[:n_best] - head for row in rows)
        starts, ends = (pieces[(pieces >= 0) & (pieces < length)] for pieces in (starts, ends))
        starts = starts[best[first + starts] == number]
        for start, end in zip(*spans_within(starts, ends, longest)):
            values = float(rows[0][start + head]), float(rows[1][end + head])
            spans.append((int(first + start), int(first + end), *values))
    return spans


def map_to_text(part, text, normalized):
    """Return the start and end, in a text, of what corresponds to a part of its normalized form.

    Normalizing lower-cases, strips accents and sets spaces around punctuation. Where it has left
    the number of characters other than spaces as it was, they are taken to correspond one to one.
    Otherwise the whole text is returned.
    """
    start = normalized.find(part)
    letters = [number for number, char in enumerate(text) if char != ' ']
    if not part or start < 0 or len(letters) != len(normalized) - normalized.count(' '):
        return 0, len(text)
    end = start + len(part) - 1
    first, last = (letters[place - normalized.count(' ', 0, place)] for place in (start, end))
    return first, last + 1
