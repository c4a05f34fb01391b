"""Answers to questions, extracted from texts."""

import itertools
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field

from ..batches.windows import NO_WINDOW, spans_within
from ..errors import InputError
from ..util.arrays import softmax
from ..util.fields import AnyText, Count, Fields, Flag, Number, Size
from .passages import SpanRanker, chosen, encode_whole, read_passages, windows_over
from .pipeline_base import NUMBER, Pipeline, PipelineOptions, Row

__all__ = ['QuestionAnswering']


def _not_blank(text):
    if not text.strip():
        raise InputError('it must not be blank')
    return text


class ReaderSettings(Fields):
    """Windows and thresholds of a trained reader: an entry of its configuration.

    The names are BERT's: `doc_stride` is from the start of a window to the start of the next one,
    and `null_score_diff_threshold` by how much "no answer" must be better than the best answer.
    """

    model_config = ConfigDict(extra='ignore')
    max_length: Count
    doc_stride: Count
    max_query_length: Count
    n_best_size: Count
    max_answer_length: Count
    version_2: Flag
    null_score_diff_threshold: Number


#: the entry's name
READER = 'question_answering'


class QuestionAnswering(Pipeline):
    """Answers to questions, extracted from a text.

    ``qa(question='...', context='...')`` is a dict of ``score``, ``start``, ``end`` (in the
    context) and ``answer``; items of a list are dicts of ``question`` and ``context``. With `top_k`
    over 1 there is a list of the best answers, and with `handle_impossible_answer` an empty
    answer is possible.

    A question is cut to `max_question_len` tokens, by default not at all. A long context is read in
    windows of `max_seq_len` tokens, including the question, which overlap by `doc_stride`. Answers
    have at most `max_answer_len` tokens; with `align_to_words` they begin and end with whole words.

    A model that this project trained has its own defaults for all of these, and answers as its
    training's evaluation does: the score is the answer's share of the probability among the best
    ones, white space in the answer is a single space, and no answer, if the model knows that, is
    the first one where its score is better than the others' by the model's threshold. The scores of
    other models are as in transformers.
    """

    task = 'question-answering'
    block_tasks = ('question_answering',)
    token_outputs = 2

    def __init__(self, opened, **options):
        super().__init__(opened, **options)
        own = self.block.config.extras.get(READER)
        self._own = own and ReaderSettings.read(own)
        self._ranker = SpanRanker(self.tokenizer)

    def __call__(self, inputs=None, context=None, *, question=None, **options):
        """Results of one question or of several; see `Pipeline`.

        Parameters
        ----------
        inputs : dict, list of dict, or iterable of dict
            Or a question, and `context` the text.
        question, context : str or list of str
            Used instead of `inputs`. Several questions may share one context.
        """
        if context is not None or question is not None:
            asked = inputs if question is None else question
            if isinstance(asked, str):
                inputs = {'question': asked, 'context': context}
            else:
                texts = [context] * len(asked) if isinstance(context, str) else context
                pairs = zip(asked, texts, strict=True)
                inputs = [{'question': question, 'context': text} for question, text in pairs]
        return super().__call__(inputs, **options)

    class Item(Fields):
        model_config = ConfigDict(extra='ignore')
        question: Annotated[AnyText, AfterValidator(_not_blank)]
        context: Annotated[AnyText, AfterValidator(_not_blank)]

    class Options(PipelineOptions):
        top_k: Annotated[Count, Field(le=1000)] | None = 1
        handle_impossible_answer: Flag = False
        max_answer_len: Count | None = 15
        max_question_len: Count | None = None
        max_seq_len: Count | None = None
        doc_stride: Size | None = None
        align_to_words: Flag = True

    def _options(self, given):
        own, most, step = self._own, self.max_length or 384, None
        if own:
            usual = {
                'handle_impossible_answer': own.version_2,
                'max_answer_len': own.max_answer_length,
                'max_question_len': own.max_query_length,
                'max_seq_len': min(own.max_length, most),
                'align_to_words': False,
            }
            step = own.doc_stride if given.doc_stride is None else None
            usual = {k: v for k, v in usual.items() if k not in given.model_fields_set}
            given = given.model_copy(update=usual)
        length, top_k = given.max_seq_len or min(most, 384), given.top_k or 20
        if self.max_length is not None and not 8 <= length <= self.max_length:
            raise InputError(f'max_seq_len is {length}; it must be from 8 to {self.max_length}')
        overlap = min(length // 2, 128) if given.doc_stride is None else given.doc_stride
        if overlap >= length:
            raise InputError(f'doc_stride is {overlap}; it must be from 0 to max_seq_len, {length}')
        # of a window; aligning to words can merge some
        candidates = 2 * top_k + 10 if given.align_to_words else top_k
        return {
            'top_k': top_k,
            'may_be_empty': given.handle_impossible_answer,
            'question': given.max_question_len,
            'longest': min(given.max_answer_len or length, length),
            'windows': (length, step, overlap),
            'align': given.align_to_words,
            'candidates': max(top_k, own.n_best_size) if own else candidates,
        }

    def _rows(self, items, options, meter=None):
        items, rows = [self.Item.read(item) for item in items], []
        for text in (text for _, text in itertools.chain(*items) if meter is not None):
            meter.add_text(text, self.tokenizer)
        contexts = list(dict.fromkeys(item.context for item in items))
        passages = read_passages(self.tokenizer, contexts, options['align'])
        passages = dict(zip(contexts, passages))
        questions = encode_whole(self.tokenizer, [item.question for item in items])
        for item, question in zip(items, questions):
            asked = question[: options['question']], passages[item.context]
            windows = windows_over(self.tokenizer, *asked, *options['windows'])
            if meter is not None:
                meter.add('max_rows', len(windows))
                meter.add('max_tokens', sum(each.head + 1 + each.length for each in windows))
            rows.append([Row(*each.encode(self.tokenizer), each) for each in windows])
        return rows

    def _answer_size(self, item, rows, options):
        return 4 * NUMBER * len(rows) * options['candidates']

    def _finish(self, item, rows, outputs, options):
        windows = [row.about for row in rows]
        find = _transformers_answers if self._own is None else self._own_answers
        ranked = find(windows, outputs, options)[: options['top_k']]
        return ranked[0] if len(ranked) == 1 else ranked

    def _own_answers(self, windows, outputs, options):
        """The answers of a model that this project trained, the chosen one first."""
        limits = options['candidates'], options['longest'], options['may_be_empty']
        answers, null_odds = self._ranker.rank(windows, outputs, *limits)
        texts = [answer.text for answer in answers]
        best = answers.pop(chosen(texts, null_odds, self._own.null_score_diff_threshold))
        passage, found = windows[0].passage, {}
        for answer in [best, *answers][: options['top_k']]:
            text, start, end = '', 0, 0
            if answer.first >= 0:
                pieces = answer[1:3]
                if options['align']:
                    pieces = list(map(_word_edge, [passage] * 2, pieces, (-1, 1)))
                text, start, end = self._ranker.find(passage, *pieces)
            result = {'score': answer.probability, 'start': start, 'end': end, 'answer': text}
            found.setdefault(text, result)
        return list(found.values())


def _transformers_answers(windows, outputs, options):
    """The answers as transformers' pipeline finds them."""
    answers, null_score = {}, NO_WINDOW
    for window, (starts, ends) in zip(windows, outputs):
        spans, null = _best_spans(window, starts, ends, options)
        null_score = min(null_score, null)
        for start, end, score in spans:
            answer = _answer(window, start, end, options['align'])
            # windows that overlap find the same answer
            known = answers.setdefault(answer['answer'].lower(), answer)
            known['score'] += score
    ranked = list(answers.values())
    if options['may_be_empty']:
        ranked.append({'score': float(null_score), 'start': 0, 'end': 0, 'answer': ''})
    return sorted(ranked, key=lambda answer: -answer['score'])


def _answer(window, start, end, align):
    """A span of a row's tokens as an answer."""
    passage, edges = window.passage, [0, 0]
    for side, place in enumerate((start, end)):
        # the tokens before the context are the first one, where a model points that finds no answer
        if place >= window.head:
            piece = place - window.head + window.first
            piece = _word_edge(passage, piece, (-1, 1)[side]) if align else piece
            edges[side] = int(passage.offsets[piece, side])
    begin, stop = edges
    return {'score': 0.0, 'start': begin, 'end': stop, 'answer': passage.text[begin:stop]}


def _word_edge(passage, piece, step):
    """The first piece of a piece's word for a step of -1, the last one for 1."""
    words = passage.word_ids
    while 0 <= piece + step < len(words) and words[piece + step] == words[piece]:
        piece += step
    return piece


def _best_spans(window, starts, ends, options):
    """(first token, last token, score) of a window's best answers, and the score of no answer."""
    # the first token, where a model points that finds no answer, and the context
    places = np.r_[0, window.head : window.head + window.length]
    shares = np.zeros((2, len(starts)))
    shares[:, places] = softmax(np.stack([starts[places], ends[places]]))
    starts, ends = shares
    null_score = starts[0] * ends[0]
    starts[0] = ends[0] = 0.0
    first, last = spans_within(places, places, options['longest'])
    scores = starts[first] * ends[last]
    order = np.argsort(-scores, kind='stable')[: options['candidates']]
    return zip(*(array[order].tolist() for array in (first, last, scores))), null_score
