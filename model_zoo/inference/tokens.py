"""Pipelines that look at tokens: labels and entities, answers to questions, words for masks."""

import itertools
import re
import warnings
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field

from ..batches.windows import NO_WINDOW, Window, even_windows, spans_within, split_windows
from ..errors import InputError
from ..tokenization.basic import _is_punctuation
from ..tokenization.encoding import UNLIMITED
from ..util.arrays import softmax
from ..util.choices import STRATEGIES
from ..util.fields import AnyText, Count, Fields, Flag, Size, Text
from .entities import groups_of_entities
from .pipeline_base import NUMBER, Pipeline, PipelineOptions, Row

__all__ = ['FillMask', 'QuestionAnswering', 'TokenClassification']


#: strategy -> a word's probabilities, from its tokens'
_OF_WORD = {
    'first': lambda scores: scores[0],
    'average': lambda scores: np.mean(scores, axis=0),
    'max': lambda scores: max(scores, key=np.max),
}


class _Windowed(Pipeline):
    """A pipeline that reads a long text in windows."""

    def _windows(self, asked, ids, room, stride, extra, meter):
        """Yield the row of each window of at most `room` ids, and what it sees.

        That is the number of ids before the window in the row, the window's first id, and how many
        it has. The texts `asked` are before it, which with special tokens are `extra` ids.
        """
        windows = split_windows(len(ids), room, room - stride) or [(0, 0)]
        if meter is not None:
            meter.add('max_rows', len(windows))
            meter.add('max_tokens', sum(extra + length for _, length in windows))
        for first, length in windows:
            part = ids[first : first + length]
            seen, types, head = self.tokenizer.with_special_tokens(*asked, part)
            yield Row(seen, types), (head, first, length)


def token_rows(tokenizer, texts, max_length, stride=None, learned=False, meter=None):
    """Yield the list of the rows of each text, in use and in training.

    A text of more than `max_length` tokens, special ones included, is read in windows. They
    overlap by `stride` tokens. Without it they overlap more, and each token counts in one window
    alone, where it has the most context. The words are `learned` ones or a foreign model's.

    `about` a row are the tokens that count in it, as (id, place in the text, number of the word),
    and the position of the first one among the text's, after special ones, and in the row.
    """
    special, pairs = len(tokenizer.with_special_tokens([])[0]), [(text, None) for text in texts]
    for text in texts if meter is not None else ():
        meter.add_text(text, tokenizer)
    encodings, room = tokenizer.encode_pairs(pairs, UNLIMITED, False), max_length - special
    for (text, _), encoding in zip(pairs, encodings):
        if stride is None:
            windows = even_windows(len(encoding), room)
        else:
            windows = split_windows(len(encoding), room, room - stride) or [(0, 0)]
            windows = [Window(n, n + length, n, n + length) for n, length in windows]
        if meter is not None:
            meter.add('max_rows', len(windows))
            meter.add('max_tokens', sum(special + each.stop - each.start for each in windows))
        pieces, rows = _pieces(tokenizer, text, encoding, learned), []
        for start, stop, first, last in windows:
            seen, types, head = tokenizer.with_special_tokens(encoding[start:stop])
            about = pieces[first:last], first + head, first + head - start
            rows.append(Row(seen, types, about))
        yield rows


def _pieces(tokenizer, text, encoding, learned):
    """Return (id, place, number of the word) of each token; blanks before words aren't in places.

    Words are the tokenizer's; in a foreign model of bytes what blanks part, as in transformers.
    Learned words end at punctuation, too, as those of word pieces do.
    """
    pieces, number, before, place = [], 0, None, 0
    by_blanks = tokenizer.has_bytes and not learned
    for token, (start, end), word in zip(encoding, encoding.offsets, encoding.word_ids):
        if text[start:end].startswith(' '):  # a lone blank belongs to the next character
            start, end = start + 1, max(end, min(start + 2, len(text)))
        edge = text[max(start - 1, 0) : start + 1]
        if by_blanks:
            number += not start or edge.strip() != edge
        elif word != before or (learned and start > place and any(map(_is_punctuation, edge))):
            number += 1
        before, place = word, start
        pieces.append((token, (start, end), number))
    return pieces


class TokenClassification(Pipeline):
    """Labels of a text's tokens, such as named entities.

    The result is a list of dicts in the order of the text, depending on `aggregation_strategy`:

    - 'none': one for each token, with ``entity`` (the label), ``score``, ``index``, ``word``,
      ``start`` and ``end``;
    - 'simple': neighbouring tokens of one label are an entity, with ``entity_group``, ``score``,
      ``word``, ``start`` and ``end``; a label B-X begins a new one. Labels of IOBES and BILOU work
      the same way if all labels follow the scheme; the group of B and I without a type is ``_``;
    - 'first', 'average', 'max': the same, but all tokens of a word have one label: the label of
      its first token, of the mean of the probabilities, or of the surest token.

    For models that this project trained on words, the default is 'first', punctuation parts words,
    and an entity's ``word`` is its part of the text. For others all is as in transformers.

    Labels in `ignore_labels` are left out. A text that exceeds the model's maximum length is read
    in windows that overlap by `stride` tokens, by default a quarter of a window. Of overlapping
    entities the longest is kept, then the most probable. For models that this project trained,
    each token's label is by default the one of the window in which it has the most context, as in
    training.
    """

    task = 'token-classification'
    block_tasks = ('tagging',)
    token_outputs = 1

    @property
    def knows_words(self):
        """Whether the model learned labels of words, by their first tokens."""
        return self.block.config.extras.get('finetuning_task') == 'tagging'

    class Options(PipelineOptions):
        aggregation_strategy: Literal[STRATEGIES] | None = None
        ignore_labels: Annotated[list[Text], Field(max_length=10_000)] = ['O']
        stride: Size | None = None

    def _options(self, given):
        room, stride = (
            self.max_length - len(self.tokenizer.with_special_tokens([])[0]),
            given.stride,
        )
        if stride is None and not self.knows_words:
            stride = room // 4
        if stride is not None and stride >= room:
            raise InputError(f'stride is {stride}; it must be from 0 to {room - 1}')
        return {
            'strategy': given.aggregation_strategy or ('first' if self.knows_words else 'none'),
            'ignored': set(given.ignore_labels),
            'stride': stride,
        }

    def _rows(self, items, options, meter=None):
        limits = self.max_length, options['stride'], self.knows_words, meter
        return list(token_rows(self.tokenizer, map(self._text, items), *limits))

    def _finish(self, item, rows, outputs, options):
        entities, strategy = [], options['strategy']
        kind = 'entity' if strategy == 'none' else 'entity_group'
        seen = [
            list(zip(pieces, softmax(scores)[position:], itertools.count(index)))
            for (_, _, (pieces, index, position), *_), (scores,) in zip(rows, outputs)
        ]
        if options['stride'] is None:
            seen = [list(itertools.chain.from_iterable(seen))]
        for tokens in seen:
            found = self._entities(tokens, item, strategy)
            if strategy != 'none':
                found = [self._group(*group) for group in groups_of_entities(found, self.labels)]
            entities += [each for each in found if each[kind] not in options['ignored']]
        if len(seen) > 1:
            entities = _without_overlaps(entities)
        for entity in entities:
            del entity['parts']
            if self.knows_words and strategy != 'none':
                entity['word'] = item[entity['start'] : entity['end']]
        return entities

    def _entities(self, tokens, text, strategy):
        """A dict for each token; with a strategy for words, for each word."""
        by_word, entities = strategy in _OF_WORD, []
        for _, group in itertools.groupby(tokens, lambda each: each[0][2] if by_word else each[2]):
            word = list(group)
            parts = [(piece, text[start:end]) for (piece, (start, end), _), *_ in word]
            shares = _OF_WORD.get(strategy, _OF_WORD['first'])([shares for _, shares, _ in word])
            best = int(shares.argmax())
            entities.append(
                {
                    'entity': self.labels[best],
                    'score': float(shares[best]),
                    'index': word[0][2],
                    'word': self._words(parts),
                    'start': word[0][0][1][0],
                    'end': word[-1][0][1][1],
                    'parts': parts,
                }
            )
        return entities

    def _group(self, entity_type, group):
        parts = [part for entity in group for part in entity['parts']]
        return {
            'entity_group': entity_type,
            'score': float(np.mean([entity['score'] for entity in group])),
            'word': self._words(parts, joined=True),
            'start': group[0]['start'],
            'end': group[-1]['end'],
            'parts': parts,
        }

    def _words(self, parts, joined=False):
        """The words of tokens; where one isn't in the vocabulary, its text."""
        unknown = self.tokenizer.unk_token_id
        if len(parts) == 1 and not joined:
            ((token_id, text),) = parts
            return text if token_id == unknown else self.tokenizer.convert_ids_to_tokens(token_id)
        ids, _texts = zip(*parts)
        replaced = iter([text for token_id, text in parts if token_id == unknown])
        mark = re.escape(str(self.tokenizer.unk_token))
        return re.sub(mark, lambda match: next(replaced, match.group()), self.tokenizer.decode(ids))


def _without_overlaps(entities):
    """The entities without overlaps: the longest one is kept, then the most probable."""
    kept = []
    for entity in sorted(entities, key=lambda entity: entity['start']):
        if not kept or entity['start'] >= kept[-1]['end']:
            kept.append(entity)
        else:
            kept[-1] = max(kept[-1], entity, key=lambda e: (e['end'] - e['start'], e['score']))
    return kept


class FillMask(Pipeline):
    """Words for the masks of a text.

    ``unmasker('Paris is the [MASK] of France.')`` is a list of dicts, best first, with
    ``score``, ``token`` (its id), ``token_str`` and ``sequence`` (the text with the word in it). A
    text with several masks has a list of such lists.

    `top_k` is the number of words, and `targets` restricts them to a word or a list of words.
    """

    task = 'fill-mask'
    block_tasks = ('masked_lm', 'pretraining')
    token_outputs = 1

    class Options(PipelineOptions):
        top_k: Count | None = 5
        targets: Text | Annotated[list[Text], Field(max_length=10_000)] | None = None

    def _options(self, given):
        targets = [given.targets] if isinstance(given.targets, str) else given.targets
        ids = None
        if targets is not None:
            ids = np.array(sorted({*map(self._id_of, targets)} - {None}))
            if not len(ids):
                raise InputError(f'targets {targets!r:.80}: none is a token of this model')
        return {'top_k': given.top_k, 'targets': ids}

    def _id_of(self, word):
        """The id of a word, or of its first piece; None if it has none."""
        known = self.tokenizer.vocab.token_to_idx
        if word in known:
            return known[word]
        ids = self.tokenizer.encode(word, add_special_tokens=False).input_ids
        problem = f'{word!r:.80} of targets is not in the vocabulary: its first piece is used'
        warnings.warn(problem, stacklevel=2)
        return int(ids[0]) if len(ids) else None

    def _pairs(self, item, options):
        text, mask = self._text(item), self.tokenizer.mask_token
        return [(text if self.tokenizer.finds_marks else text.replace(mask, f' {mask} '), None)]

    def _rows(self, items, options, meter=None):
        rows = []
        for (row,) in super()._rows(items, options, meter):
            positions = np.flatnonzero(row.input_ids == self.tokenizer.mask_token_id)
            if not len(positions):
                mask = self.tokenizer.mask_token
                raise InputError(f'{self.task}: a text has no {mask}: {items[len(rows)]!r:.80}')
            rows.append([row._replace(about=positions)])
        return rows

    def _answer_size(self, item, rows, options):
        known = self.tokenizer.vocab if options['targets'] is None else options['targets']
        words = len(rows[0].about) * min(options['top_k'] or len(known), len(known))
        return words * (len(item) + 4 * NUMBER)

    def _reduced(self, row, outputs, options):
        """For each mask the ids of the best words, and their scores."""
        targets, top_k = options['targets'], options['top_k']
        words, scores = [], []
        for values in outputs[0][row.about]:  # one by one: a vocabulary is large
            values = softmax(values)
            if targets is not None:
                values = values[targets]
            order = np.argsort(-values, kind='stable')[:top_k]
            words.append(order if targets is None else targets[order])
            scores.append(values[order])
        return [np.stack(words), np.stack(scores)]

    def _finish(self, item, rows, outputs, options):
        (row,), (found,) = rows, outputs
        is_single, masks = len(row.about) == 1, []  # with several masks the others stay visible
        for position, words, scores in zip(row.about, *found):
            masks.append([])
            for word, score in zip(words.tolist(), scores.tolist()):
                ids = row.input_ids.copy()
                ids[position] = word
                masks[-1].append(
                    {
                        'score': score,
                        'token': word,
                        'token_str': self.tokenizer.decode([word]),
                        'sequence': self.tokenizer.decode(ids, skip_special_tokens=is_single),
                    }
                )
        return masks[0] if is_single else masks


def _not_blank(text):
    if not text.strip():
        raise InputError('it must not be blank')
    return text


class QuestionAnswering(_Windowed):
    """Answers to questions, extracted from a text.

    ``qa(question='...', context='...')`` is a dict of ``score``, ``start``, ``end`` (in the
    context) and ``answer``; items of a list are dicts of ``question`` and ``context``. With `top_k`
    over 1 there is a list of the best answers, and with `handle_impossible_answer` an empty
    answer is possible.

    A question is cut to `max_question_len` tokens, by default not at all. A long context is read in
    windows of `max_seq_len` tokens, including the question, which overlap by `doc_stride`. Answers
    have at most `max_answer_len` tokens; with `align_to_words` they begin and end with whole words.
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
        length = given.max_seq_len or min(self.max_length or 384, 384)
        if self.max_length is not None and not 8 <= length <= self.max_length:
            raise InputError(f'max_seq_len is {length}; it must be from 8 to {self.max_length}')
        stride = min(length // 2, 128) if given.doc_stride is None else given.doc_stride
        top_k = given.top_k or 20
        if stride >= length:
            raise InputError(f'doc_stride is {stride}; it must be from 0 to max_seq_len, {length}')
        return {
            'top_k': top_k,
            'may_be_empty': given.handle_impossible_answer,
            'question': given.max_question_len,
            'longest': min(given.max_answer_len or length, length),
            'length': length,
            'stride': stride,
            'align': given.align_to_words,
            # of a window; aligning to words can merge some
            'candidates': 2 * top_k + 10 if given.align_to_words else top_k,
        }

    def _rows(self, items, options, meter=None):
        return [self._rows_of(self.Item.read(item), options, meter) for item in items]

    def _rows_of(self, item, options, meter):
        """Rows of a question; `about` has the context's offsets and word ids, and the window."""
        texts = [(item.question, None), (item.context, None)]
        asked, seen = self.tokenizer.encode_pairs(texts, UNLIMITED, add_special_tokens=False)
        asked, length, stride = asked[: options['question']], options['length'], options['stride']
        extra = self.tokenizer.pair_size() + len(asked)
        if length - extra <= stride:
            raise InputError(f'{self.task}: no room for the {len(asked)} tokens of the question')
        spans = seen.offsets, seen.word_ids  # computed at each access
        windows = self._windows((asked,), seen, length - extra, stride, extra, meter)
        return [row._replace(about=(spans, *place)) for row, place in windows]

    def _answer_size(self, item, rows, options):
        return 4 * NUMBER * len(rows) * options['candidates']

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
        ranked = list(answers.values())
        if options['may_be_empty']:
            ranked.append({'score': float(null_score), 'start': 0, 'end': 0, 'answer': ''})
        ranked.sort(key=lambda answer: -answer['score'])
        ranked = ranked[: options['top_k']]
        return ranked[0] if len(ranked) == 1 else ranked

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


def _best_spans(row, starts, ends, options):
    """(first token, last token, score) of a window's best answers, and the score of no answer."""
    _, head, _, length = row.about
    # the first token, where a model points that finds no answer, and the context
    places = np.r_[0, head : head + length]
    shares = np.zeros((2, len(row.input_ids)))
    shares[:, places] = softmax(np.stack([starts[places], ends[places]]))
    starts, ends = shares
    null_score = starts[0] * ends[0]
    starts[0] = ends[0] = 0.0
    first, last = spans_within(places, places, options['longest'])
    scores = starts[first] * ends[last]
    order = np.argsort(-scores, kind='stable')[: options['candidates']]
    spans = zip(*(array[order].tolist() for array in (first, last, scores)))
    return spans, null_score
