"""Words for the masked places of a text."""

import numpy as np

from ..errors import InputError, UnknownNameError
from ..tasks.evaluate import softmax
from .pipeline import ALL, NUMBER, TEXT, Pipeline, a_list

__all__ = ['FillMask']


class FillMask(Pipeline):
    """Words for the masked places of a text.

    ``unmasker('Paris is the [MASK] of France.')`` is a list of dicts, the best first, with
    ``score``, ``token`` (its id), ``token_str`` and ``sequence`` (the text with the word in it). A
    text with several masks has a list of such lists.

    `top_k` is the number of words, and `targets` a word or a list of words that alone are
    considered.
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
