"""Answers to questions, extracted from a text."""

import numpy as np

from ..batches.windows import split_windows
from ..errors import InputError
from ..tokenization.encoding import UNLIMITED
from ..util.arrays import softmax
from .pipeline import ALL, COUNT, FLAG, NUMBER, Pipeline, Row

__all__ = ['QuestionAnswering']

HIDDEN = -10000.0  # score of a token that no answer begins or ends with
NO_WINDOW = 1000000.0  # score of no answer before a window has been looked at


class QuestionAnswering(Pipeline):
    """Answers to questions, extracted from a text.

    ``qa(question='...', context='...')`` is a dict of ``score``, ``start``, ``end`` (in the
    context) and ``answer``; items of a list are dicts of ``question`` and ``context``. With `top_k`
    over 1 there is a list of the best answers, and with `handle_impossible_answer` an empty
    answer is possible.

    A long context is read in windows of `max_seq_len` tokens, including the question, which overlap
    by `doc_stride`. Answers have at most `max_answer_len` tokens; with `align_to_words` they begin
    and end with whole words.
    """

    task = 'question-answering'
    block_tasks = ('question_answering',)
    token_outputs = 2

    def __call__(self, inputs=None, context=None, *, question=None, **options):
        """Results of one question or of several; see `Pipeline`.

        Parameters
        ----------
        inputs : dict, list of dict, or iterable of dict
            Or a question, and `context` the text.
        question, context : str or list of str
            Used instead of `inputs`. Several questions may share one context.
        """
        if inputs is not None and question is not None:
            raise InputError(f'{self.task}: give inputs, or question and context')
        if context is not None or question is not None:
            inputs = _items(inputs if question is None else question, context)
        return super().__call__(inputs, **options)

    def _options(
        self,
        top_k: dict(ALL, maximum=1000) = 1,
        handle_impossible_answer: FLAG = False,
        max_answer_len: ALL = 15,
        max_seq_len: COUNT = None,
        doc_stride: dict(COUNT, minimum=0) = None,
        align_to_words: FLAG = True,
    ):
        length = max_seq_len or min(self.max_length or 384, 384)
        if self.max_length is not None and not 8 <= length <= self.max_length:
            raise InputError(f'max_seq_len is {length}; it must be from 8 to {self.max_length}')
        stride = min(length // 2, 128) if doc_stride is None else doc_stride
        if stride >= length:
            raise InputError(f'doc_stride is {stride}; it must be from 0 to max_seq_len, {length}')
        return {
            'top_k': top_k or 20,
            'may_be_empty': handle_impossible_answer,
            'longest': min(max_answer_len or length, length),
            'length': length,
            'stride': stride,
            'align': align_to_words,
        }

    def _rows(self, items, options, meter):
        return [self._windows(item, options, meter) for item in items]

    def _windows(self, item, options, meter):
        """Rows of a question, each `about` its window.

        These are offsets and word ids of the whole context, the row's pieces before the context,
        the context's first piece that the window sees, and how many it sees.
        """
        texts = [(text, None) for text in self._question(item)]
        asked, seen = self.tokenizer.encode_pairs(texts, UNLIMITED, add_special_tokens=False)
        room = options['length'] - self.tokenizer.pair_size()
        if len(asked) >= room - options['stride']:
            raise InputError(
                f'{self.task}: the question has {len(asked)} tokens, and max_seq_len '
                f'{options["length"]} with doc_stride {options["stride"]} leaves room for '
                f'{room - options["stride"] - 1}'
            )
        room -= len(asked)
        windows = split_windows(len(seen), room, room - options['stride'])
        overhead = options['length'] - room
        meter.add('rows', len(windows))
        meter.add('tokens', sum(overhead + length for _, length in windows))
        places, rows = (seen.offsets, seen.word_ids), []  # each reading makes them anew
        for first, length in windows:
            ids, types, head = self.tokenizer.with_special_tokens(
                asked, seen[first : first + length]
            )
            rows.append(Row(ids, types, (places, head, first, length)))
        return rows

    def _answer_size(self, item, rows, options):
        return 4 * NUMBER * len(rows) * _candidates(options)

    def _question(self, item):
        if not isinstance(item, dict) or not {'question', 'context'} <= set(item):
            raise InputError(
                f'{self.task} takes dicts of "question" and "context", not {item!r:.80}'
            )
        texts = self._text(item['question']), self._text(item['context'])
        for name, text in zip(('question', 'context'), texts):
            if not text.strip():
                raise InputError(f'{self.task}: the {name} is empty')
        return texts

    def _finish(self, item, rows, outputs, options):
        answers, null_score = {}, NO_WINDOW
        for row, (starts, ends) in zip(rows, outputs):
            spans, null = _best_spans(row, starts, ends, options)
            null_score = min(null_score, null)
            for start, end, score in spans:
                answer = self._answer(row, start, end, item['context'], options['align'])
                # windows that overlap find the same answer
                known = answers.setdefault(answer['answer'].lower(), answer)
                known['score'] += score
        found = list(answers.values())
        if options['may_be_empty']:
            found.append({'score': float(null_score), 'start': 0, 'end': 0, 'answer': ''})
        found.sort(key=lambda answer: -answer['score'])
        found = found[: options['top_k']]
        return found[0] if len(found) == 1 else found

    def _answer(self, row, start, end, context, align):
        (offsets, words), head, first, _ = row.about
        begin = stop = 0  # of the row's first token, where a model points that finds no answer
        if start >= head:
            start += first - head
            while align and start > 0 and words[start - 1] == words[start]:
                start -= 1
            begin = offsets[start][0]
        if end >= head:
            end += first - head
            while align and end + 1 < len(words) and words[end + 1] == words[end]:
                end += 1
            stop = offsets[end][1]
        return {'score': 0.0, 'start': begin, 'end': stop, 'answer': context[begin:stop]}


def _items(questions, contexts):
    """The items of questions and of contexts, each one str or a list."""
    if isinstance(questions, str) and isinstance(contexts, str):
        return {'question': questions, 'context': contexts}
    if isinstance(questions, (list, tuple)) and isinstance(contexts, str):
        contexts = [contexts] * len(questions)
    if not isinstance(questions, (list, tuple)) or not isinstance(contexts, (list, tuple)):
        raise InputError('question and context must be str or lists of str')
    if len(questions) != len(contexts):
        raise InputError(f'there are {len(questions)} questions and {len(contexts)} contexts')
    return [{'question': q, 'context': c} for q, c in zip(questions, contexts)]


def _candidates(options):
    """How many answers of a window are looked at: aligning to words can make several one."""
    return 2 * options['top_k'] + 10 if options['align'] else options['top_k']


def _best_spans(row, starts, ends, options):
    """(first token, last token, score) of a window's best answers, and the score of none."""
    _, head, _, length = row.about
    size, longest = len(row.input_ids), options['longest']
    allowed = np.zeros(size, bool)
    allowed[0] = True  # where a model points that finds no answer
    allowed[head : head + length] = True
    starts, ends = (softmax(np.where(allowed, each, HIDDEN)) for each in (starts, ends))
    null_score = starts[0] * ends[0]
    starts[0] = ends[0] = 0.0
    # (first token, tokens behind it)
    last = np.lib.stride_tricks.sliding_window_view(np.pad(ends, (0, longest - 1)), longest)
    scores = (starts[:, None] * last).ravel()
    order = np.argsort(-scores, kind='stable')[: _candidates(options)]
    firsts, behind = np.divmod(order, longest)
    allowed = np.pad(allowed, (0, longest - 1))
    good = allowed[firsts] & allowed[firsts + behind]
    spans = zip(firsts[good].tolist(), (firsts + behind)[good].tolist(), scores[order][good])
    return [(first, end, float(score)) for first, end, score in spans], null_score
