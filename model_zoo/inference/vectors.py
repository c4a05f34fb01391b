"""Vectors of texts, and how similar texts are."""

import numpy as np

from ..errors import InputError
from ..util.pooling import pool
from .pipeline import Pipeline

__all__ = ['FeatureExtraction', 'SentenceSimilarity']

POOLINGS = ('mean', 'cls', 'max')


class FeatureExtraction(Pipeline):
    """Vectors of the tokens of a text: nested lists of shape (1, tokens, units).

    ``return_tensors=True`` gives float32 arrays instead, and `pooling` ('mean', 'cls' or 'max') one
    vector for each text, of shape (units,). The special tokens are counted in. With 'model' it is
    what `sentence_vector` makes of the tokens' vectors. ``normalize=True`` scales vectors to length
    1.

    Attributes
    ----------
    sentence_vector : callable
        ``sentence_vector(states) -> vector``, of (tokens, units); the mean unless it is set, such
        as to the `vector` of the model's own `bert_embedding.sentence_modules.SentenceModules`.
    """

    task = 'feature-extraction'
    block_tasks = (None,)
    per_token = True

    @staticmethod
    def sentence_vector(states):
        """The mean of the tokens' vectors."""
        return pool(states, 'mean')

    def _options(self, return_tensors=False, pooling=None, normalize=False):
        if pooling not in (None, 'model'):
            check_pooling(pooling)
        return {'arrays': return_tensors, 'pooling': pooling, 'normalize': normalize}

    def _finish(self, item, rows, outputs, options):
        ((states,),) = outputs
        pooling = options['pooling']
        if pooling == 'model':
            result = self.sentence_vector(states)
        else:
            result = states[None] if pooling is None else pool(states, pooling)
        if options['normalize']:
            result = unit_vectors(result)
        return result if options['arrays'] else result.tolist()


def check_pooling(pooling):
    """Raise InputError unless pipelines have it."""
    if pooling not in POOLINGS:
        raise InputError(f'pooling is {pooling!r}; it must be one of: {", ".join(POOLINGS)}')


def unit_vectors(vectors):
    """Vectors, in the last axis, scaled to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


class SentenceSimilarity(Pipeline):
    """Cosine similarity of a sentence and others.

    An item is a dict of ``source_sentence``, a str, and ``sentences``, a list of str; the result is
    a list of floats, one for each sentence. A pair of texts gives one float.
    """

    task = 'sentence-similarity'
    block_tasks = (None,)
    per_token = True

    def _options(self, pooling='mean'):
        check_pooling(pooling)
        return {'pooling': pooling}

    def _is_item(self, inputs):
        is_pair = isinstance(inputs, tuple) and len(inputs) == 2
        return isinstance(inputs, dict) or (is_pair and all(isinstance(i, str) for i in inputs))

    def _rows(self, items, options):
        texts = [self._sentences(item) for item in items]
        rows = iter(super()._rows([text for of_item in texts for text in of_item], options))
        return [[next(rows)[0] for _ in of_item] for of_item in texts]

    def _sentences(self, item):
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return list(item)
        if isinstance(item, dict) and set(item) == {'source_sentence', 'sentences'}:
            sentences = item['sentences']
            if isinstance(sentences, (list, tuple)) and sentences:
                return [item['source_sentence'], *sentences]
        raise InputError(
            f'{self.task} takes dicts of "source_sentence" and "sentences", a list of at least '
            f'one str, or pairs of str; not {item!r:.80}'
        )

    def _finish(self, item, rows, outputs, options):
        vectors = unit_vectors(np.stack([pool(each, options['pooling']) for (each,) in outputs]))
        similarities = (vectors[1:] @ vectors[0]).tolist()
        return similarities if isinstance(item, dict) else similarities[0]
