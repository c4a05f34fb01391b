"""Words for the masked places of a text."""

import numpy as np

from ..errors import InputError, UnknownNameError
from ..tasks.evaluate import softmax
from .classification import count_of
from .pipeline import Pipeline, Row

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

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.tokenizer.mask_token is None:
            raise InputError(f'{self.task}: the vocabulary of this model has no [MASK]')

    def _options(self, top_k=5, targets=None):
        if isinstance(targets, str):
            targets = [targets]
        ids = None
        if targets is not None:
            known = self.tokenizer.vocab.token_to_idx
            missing = [each for each in targets if each not in known]
            if missing or not targets:
                raise UnknownNameError.of('token in targets', missing[0] if missing else '', known)
            ids = np.array(sorted({known[each] for each in targets}))
        return {'top_k': count_of('top_k', top_k), 'targets': ids}

    def _rows(self, items, options):
        mask, texts = self.tokenizer.mask_token, list(map(self._text, items))
        if not self.tokenizer.finds_marks:
            texts = [text.replace(mask, f' {mask} ') for text in texts]
        rows = []
        for (row,) in super()._rows(texts, options):
            places = np.flatnonzero(row.input_ids == self.tokenizer.mask_token_id)
            if not len(places):
                raise InputError(f'{self.task}: a text has no {mask}: {items[len(rows)]!r:.80}')
            rows.append([Row(row.input_ids, row.token_types, places)])
        return rows

    def _kept(self, row, outputs):
        return [outputs[0][row.about]]  # (masks, words)

    def _finish(self, item, rows, outputs, options):
        (row,), ((scores,),) = rows, outputs
        targets = options['targets']
        found = []
        for place, values in zip(row.about, softmax(scores)):
            if targets is not None:
                values = values[targets]
            order = np.argsort(-values, kind='stable')[: options['top_k']]
            words = order if targets is None else targets[order]
            found.append([
                self._word(row, place, int(word), float(values[number]))
                for number, word in zip(order, words)
            ])
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
