"""Vectors of texts, and how similar texts are."""

import numpy as np

from ..errors import InputError
from ..util.pooling import pool
from .pipeline import FLAG, NUMBER, Pipeline, one_of

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
        as to the `vector` of the model's own `model_zoo.tasks.sentences.modules.SentenceModules`.
    """

    task = 'feature-extraction'
    block_tasks = (None,)
    token_outputs = 1

    @staticmethod
    def sentence_vector(states):
        """The mean of the tokens' vectors."""
        return pool(states, 'mean')

    def _options(
        self,
        return_tensors: FLAG = False,
        pooling: one_of(*POOLINGS, 'model') = None,
        normalize: FLAG = False,
    ):
        return {'arrays': return_tensors, 'pooling': pooling, 'normalize': normalize}

    def _answer_size(self, item, rows, options):
        vectors = len(rows[0].input_ids) if options['pooling'] is None else 1
        return vectors * self.block.config.units * (8 if options['arrays'] else NUMBER)

    def _reduced(self, row, outputs, options):
        (states,), pooling = outputs, options['pooling']
        if pooling == 'model':
            result = self.sentence_vector(states)
        else:
            result = states[None] if pooling is None else pool(states, pooling)
        return [unit_vectors(result) if options['normalize'] else result]

    def _finish(self, item, rows, outputs, options):
        ((result,),) = outputs
        return result if options['arrays'] else result.tolist()


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
    token_outputs = 1

    def _options(self, pooling: one_of(*POOLINGS) = 'mean'):
        return {'pooling': pooling}

    def _is_item(self, inputs):
        is_pair = isinstance(inputs, tuple) and len(inputs) == 2
        return isinstance(inputs, dict) or (is_pair and all(isinstance(i, str) for i in inputs))

    def _pairs(self, item, options):
        return ((self._text(sentence), None) for sentence in self._sentences(item))

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

    def _reduced(self, row, outputs, options):
        return [pool(outputs[0], options['pooling'])]

    def _finish(self, item, rows, outputs, options):
        vectors = unit_vectors(np.stack([each for (each,) in outputs]))
        similarities = (vectors[1:] @ vectors[0]).tolist()
        return similarities if isinstance(item, dict) else similarities[0]
