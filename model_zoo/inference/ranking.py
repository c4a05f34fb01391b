"""Texts in the order in which they answer a query."""

import numpy as np

from ..errors import InputError
from .classification import TextPairs, count_of, sigmoid

__all__ = ['Reranking']

#: classes of torch that a model of sentence-transformers may name for its scores
ACTIVATIONS = {
    'Identity': lambda outputs: outputs.astype(np.float64),
    'Sigmoid': sigmoid,
    'Tanh': lambda outputs: np.tanh(outputs.astype(np.float64)),
}


class Reranking(TextPairs):
    """The order in which texts answer a query, by a model that reads each text with the query.

    An item is a dict of ``query``, a str, and ``documents``, a list of str. The result is a list of
    dicts, the best first, as sentence-transformers' ``CrossEncoder.rank`` gives it: ``corpus_id``,
    the place of the text, and ``score``; with `return_documents` also ``text``. `top_k` is how many
    there are, by default all. A pair ``(query, text)`` gives its score, a float.

    The model is a classifier with one output. Its score is the sigmoid of that, or what the
    model's configuration names in the place of the sigmoid.
    """

    task = 'rerank'
    block_tasks = ('classification',)

    def __init__(self, opened, **options):
        super().__init__(opened, **options)
        if self.block.num_labels != 1:
            raise InputError(
                f'{self.task} needs a model with one output, a score; this one has '
                f'{self.block.num_labels}: {", ".join(self.labels)}'
            )
        self._activate = self._activation()

    def _activation(self):
        extras = self.block.config.extras
        settings = extras.get('sentence_transformers') or {}
        path = settings.get('activation_fn') or extras.get('sbert_ce_default_activation_function')
        name = str(path or 'Sigmoid').rpartition('.')[2]
        if name not in ACTIVATIONS:
            raise InputError(
                f'the configuration names the activation {path!r}; supported are '
                f'{", ".join(ACTIVATIONS)}'
            )
        return ACTIVATIONS[name]

    def _options(self, top_k=None, return_documents=False):
        return {'top_k': count_of('top_k', top_k), 'documents': return_documents}

    def _rows(self, items, options):
        pairs = [self._query_pairs(item) for item in items]
        rows = iter(self._encode([pair for of_item in pairs for pair in of_item]))
        return [[next(rows) for _ in of_item] for of_item in pairs]

    def _query_pairs(self, item):
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return [tuple(map(self._text, item))]
        if isinstance(item, dict) and set(item) == {'query', 'documents'}:
            query, documents = self._text(item['query']), item['documents']
            if isinstance(documents, (list, tuple)):
                return [(query, self._text(document)) for document in documents]
        raise InputError(
            f'{self.task} takes dicts of "query" and "documents", a list of str, or pairs of a '
            f'query and a text; not {item!r:.80}'
        )

    def _finish(self, item, rows, outputs, options):
        logits = np.array([each.reshape(()) for (each,) in outputs], np.float32)
        scores = self._activate(logits).tolist()
        if not isinstance(item, dict):
            return scores[0]
        order = sorted(range(len(scores)), key=lambda place: -scores[place])[: options['top_k']]
        ranked = [{'corpus_id': place, 'score': scores[place]} for place in order]
        if options['documents']:
            for each in ranked:
                each['text'] = item['documents'][each['corpus_id']]
        return ranked
