"""Labels of tokens, entities, and words for masks."""

import itertools
from typing import NamedTuple

import numpy as np

from ..batches.windows import split_windows
from ..errors import InputError, UnknownNameError
from ..tokenization.encoding import UNLIMITED
from ..util.arrays import softmax
from .pipeline import ALL, COUNT, NUMBER, TEXT, Pipeline, Row, a_list, one_of

__all__ = [
    'FillMask',
    'TokenClassification',
]

#: how labels of tokens become entities; see `TokenClassification`
STRATEGIES = ('none', 'simple', 'first', 'average', 'max')


class _Token(NamedTuple):
    """A token or a word with the probabilities of its labels."""

    parts: list
    scores: np.ndarray
    start: int
    end: int
    index: int
    word: int


class TokenClassification(Pipeline):
    """Labels of a text's tokens, such as named entities.

    The result is a list of dicts in the order of the text, depending on `aggregation_strategy`:

    - 'none': one for each token, with ``entity`` (the label), ``score``, ``index``, ``word``,
      ``start`` and ``end``;
    - 'simple': neighbouring tokens of one label are an entity, with ``entity_group``, ``score``,
      ``word``, ``start`` and ``end``; a label B-X begins a new one;
    - 'first', 'average', 'max': the same, but all tokens of a word have one label: that of its
      first token, of the mean of the probabilities, or of the surest token.

    Labels in `ignore_labels` are left out. A text that exceeds the model's maximum length is read
    in windows that overlap by `stride` tokens, by default a quarter of a window. Of overlapping
    entities the longest is kept, then the most probable.
    """

    task = 'token-classification'
    block_tasks = ('tagging',)
    token_outputs = 1

    def _options(
        self,
        aggregation_strategy: one_of(*STRATEGIES) = 'none',
        ignore_labels: a_list(TEXT) = ('O',),
        stride: dict(COUNT, minimum=0) = None,
    ):
        special = len(self.tokenizer.with_special_tokens([])[0])
        room = None if self.max_length is None else self.max_length - special
        if stride is None:
            stride = 0 if room is None else room // 4
        if room is not None and stride >= room:
            raise InputError(f'stride is {stride}; it must be from 0 to {room - 1}')
        return {
            'strategy': aggregation_strategy,
            'ignored': set(ignore_labels),
            'special': special,
            'room': room,
            'stride': stride,
        }

    def _rows(self, items, options, meter):
        texts = [(self._text(item), None) for item in items]
        encodings = self.tokenizer.encode_pairs(texts, UNLIMITED, add_special_tokens=False)
        return [self._windows(encoding, options, meter) for encoding in encodings]

    def _windows(self, encoding, options, meter):
        """Rows of a text, each `about` its pieces, the first that the row sees, and where it is."""
        ids, room = encoding.input_ids, options['room']
        windows = [(0, len(ids))]
        if room is not None and len(ids) > room:
            windows = split_windows(len(ids), room, room - options['stride'])
        meter.add('rows', len(windows))
        meter.add('tokens', sum(length + options['special'] for _, length in windows))
        pieces, rows = list(zip(encoding, encoding.offsets, encoding.word_ids)), []
        for first, length in windows:
            seen, types, head = self.tokenizer.with_special_tokens(ids[first : first + length])
            rows.append(Row(seen, types, (pieces[first : first + length], first, head)))
        return rows

    def _answer_size(self, item, rows, options):
        return 6 * NUMBER * sum(len(row.input_ids) for row in rows)

    def _finish(self, item, rows, outputs, options):
        entities, labels = [], self.labels
        for row, (scores,) in zip(rows, outputs):
            tokens = self._tokens(row, softmax(scores), item)
            if options['strategy'] not in ('none', 'simple'):
                tokens = [
                    self._one_word(list(group), options['strategy'])
                    for _, group in itertools.groupby(tokens, key=lambda token: token.word)
                ]
            found = [self._entity(token, labels) for token in tokens]
            if options['strategy'] != 'none':
                found = [self._group(group) for group in _neighbours(found)]
            entities += [
                each for each in found
                if each.get('entity', each.get('entity_group')) not in options['ignored']
            ]
        if len(rows) > 1:
            entities = _without_overlaps(entities)
        for each in entities:
            del each['parts']
        return entities

    def _tokens(self, row, scores, text):
        """The tokens of a window, special ones left out."""
        pieces, first, head = row.about
        tokens = []
        for place, (token, (start, end), word) in enumerate(pieces, head):
            parts = [(token, text[start:end])]
            tokens.append(_Token(parts, scores[place], start, end, place + first, word))
        return tokens

    def _one_word(self, tokens, strategy):
        """A word's tokens as one."""
        if strategy == 'first':
            scores = tokens[0].scores
        elif strategy == 'max':
            scores = max(tokens, key=lambda token: token.scores.max()).scores
        else:
            scores = np.mean([token.scores for token in tokens], axis=0)
        parts = [each for token in tokens for each in token.parts]
        return tokens[0]._replace(parts=parts, scores=scores, end=tokens[-1].end)

    def _entity(self, token, labels):
        best = int(token.scores.argmax())
        return {
            'entity': labels[best],
            'score': float(token.scores[best]),
            'index': token.index,
            'word': self._words(token.parts),
            'start': token.start,
            'end': token.end,
            'parts': token.parts,
        }

    def _group(self, group):
        parts = [each for entity in group for each in entity['parts']]
        return {
            'entity_group': _tag(group[0]['entity'])[1],
            'score': float(np.mean([each['score'] for each in group])),
            'word': self._words(parts, joined=True),
            'start': group[0]['start'],
            'end': group[-1]['end'],
            'parts': parts,
        }

    def _words(self, parts, joined=False):
        """The words of tokens; where one isn't in the vocabulary, its text."""
        unknown = self.tokenizer.unk_token_id
        if len(parts) == 1 and not joined:
            ((place, text),) = parts
            return text if place == unknown else self.tokenizer.convert_ids_to_tokens(place)
        runs = []
        for is_unknown, run in itertools.groupby(parts, key=lambda part: part[0] == unknown):
            ids, texts = zip(*run)
            runs += texts if is_unknown else [self.tokenizer.decode(ids)]
        return ' '.join(runs)


def _tag(label):
    """Whether a label begins an entity, and the entity's kind."""
    if label[:2] in ('B-', 'I-'):
        return label[0] == 'B', label[2:]
    return False, label


def _neighbours(entities):
    """Groups of entities of one kind that follow one another."""
    groups = []
    for entity in entities:
        begins, kind = _tag(entity['entity'])
        if groups and not begins and kind == _tag(groups[-1][-1]['entity'])[1]:
            groups[-1].append(entity)
        else:
            groups.append([entity])
    return groups


def _without_overlaps(entities):
    """Of entities that overlap the longest, then the surest."""
    kept = []
    for entity in sorted(entities, key=lambda each: each['start']):
        if not kept or entity['start'] >= kept[-1]['end']:
            kept.append(entity)
            continue
        old = kept[-1]
        if (entity['end'] - entity['start'], entity['score']) > (
            old['end'] - old['start'], old['score']
        ):  # fmt: skip
            kept[-1] = entity
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

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.tokenizer.mask_token is None:
            raise InputError(f'{self.task}: the vocabulary of this model has no [MASK]')

    def _options(self, top_k: ALL = 5, targets: a_list(TEXT, or_one=True) = None):
        if isinstance(targets, str):
            targets = [targets]
        ids = None
        if targets is not None:
            known = self.tokenizer.vocab.token_to_idx
            missing = [each for each in targets if each not in known]
            if missing or not targets:
                raise UnknownNameError.of('token in targets', missing[0] if missing else '', known)
            ids = np.array(sorted({known[each] for each in targets}))
        return {'top_k': top_k, 'targets': ids}

    def _pairs(self, item, options):
        text, mask = self._text(item), self.tokenizer.mask_token
        return [(text if self.tokenizer.finds_marks else text.replace(mask, f' {mask} '), None)]

    def _rows(self, items, options, meter):
        rows = []
        for (row,) in super()._rows(items, options, meter):
            places = np.flatnonzero(row.input_ids == self.tokenizer.mask_token_id)
            if not len(places):
                mask = self.tokenizer.mask_token
                raise InputError(f'{self.task}: a text has no {mask}: {items[len(rows)]!r:.80}')
            rows.append([row._replace(about=places)])
        return rows

    def _answer_size(self, item, rows, options):
        known = self.tokenizer.vocab if options['targets'] is None else options['targets']
        words = len(rows[0].about) * min(options['top_k'] or len(known), len(known))
        return words * (len(item) + 4 * NUMBER)

    def _reduced(self, row, outputs, options):
        """For each mask the places of the best words, and their scores."""
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
        (row,), ((words, scores),) = rows, outputs
        found = [
            [self._word(row, place, int(word), float(score)) for word, score in zip(*of_mask)]
            for place, *of_mask in zip(row.about, words, scores)
        ]
        return found[0] if len(found) == 1 else found

    def _word(self, row, place, word, score):
        ids = row.input_ids.copy()
        ids[place] = word
        # with several masks the others stay visible
        is_single = len(row.about) == 1
        return {
            'score': score,
            'token': word,
            'token_str': self.tokenizer.decode([word]),
            'sequence': self.tokenizer.decode(ids, skip_special_tokens=is_single),
        }
