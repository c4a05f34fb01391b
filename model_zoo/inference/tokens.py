"""Pipelines that look at tokens: labels and entities, words for masks."""

import itertools
import re
import warnings
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ..batches.windows import text_windows
from ..errors import InputError
from ..tokenization.basic import _is_punctuation
from ..tokenization.encoding import UNLIMITED
from ..util.arrays import softmax
from ..util.choices import STRATEGIES
from ..util.fields import Count, Size, Text
from .entities import groups_of_entities
from .pipeline_base import NUMBER, Pipeline, PipelineOptions, Row

__all__ = ['FillMask', 'TokenClassification']


#: strategy -> a word's probabilities, from its tokens'
_OF_WORD = {
    'first': lambda scores: scores[0],
    'average': lambda scores: np.mean(scores, axis=0),
    'max': lambda scores: max(scores, key=np.max),
}


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
        windows = text_windows(len(encoding), room, None if stride is None else room - stride)
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
    Learned words end at punctuation, too, as in word pieces.
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
        special, stride = len(self.tokenizer.with_special_tokens([])[0]), given.stride
        room = self.max_length - special
        if stride is None and not self.knows_words:
            stride = room // 4
        if stride is not None and stride >= room:
            raise InputError(f'stride is {stride}; it must be from 0 to {room - 1}')
        strategy = given.aggregation_strategy or ('first' if self.knows_words else 'none')
        return {'strategy': strategy, 'ignored': set(given.ignore_labels), 'stride': stride}

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
        (row,), (best,) = rows, outputs
        is_single, masks = len(row.about) == 1, []  # with several masks the others stay visible
        for position, words, scores in zip(row.about, *best):
            masks.append([])
            for word, score in zip(words.tolist(), scores.tolist()):
                ids = row.input_ids.copy()
                ids[position] = word
                found = {'score': score, 'token': word, 'token_str': self.tokenizer.decode([word])}
                found['sequence'] = self.tokenizer.decode(ids, skip_special_tokens=is_single)
                masks[-1].append(found)
        return masks[0] if is_single else masks
