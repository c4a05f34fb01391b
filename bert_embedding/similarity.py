"""How similar texts are, by the vectors of a class that gives them."""

import itertools

import numpy as np

from model_zoo.inference.vectors import nearest, unit_vectors

__all__ = ['Similarity']

_SEARCHED_TOGETHER = 4096  # texts of a corpus whose vectors are in memory


class Similarity:
    """What a class with ``sentence_vectors`` and ``iter_sentence_vectors`` inherits."""

    def similarity(self, a, b):
        """Cosines of the vectors of texts.

        Parameters
        ----------
        a, b : list of str, str, or np.ndarray of shape (count, units)
            Texts; or vectors that `sentence_vectors` has given, with a prompt for instance.

        Returns
        -------
        np.ndarray, float32
            Shape (texts of `a`, texts of `b`); a single str has no axis.
        """
        cosines = unit_vectors(self._vectors(a)) @ unit_vectors(self._vectors(b)).T
        return cosines[tuple(0 if isinstance(each, str) else slice(None) for each in (a, b))]

    def search(self, queries, corpus, k=10, index='exact'):
        """The texts of a corpus that are most similar to queries.

        The corpus is read in blocks, so that any number of texts takes the same memory.

        Parameters
        ----------
        queries : list of str, str, or np.ndarray of shape (queries, units)
        corpus : iterable of str, or np.ndarray of shape (texts, units)
            The array may be memory-mapped.
        k : int
        index : {'exact', 'faiss'}
            See `model_zoo.inference.nearest`.

        Returns
        -------
        list of list of dict
            For each query its `k` best texts, the best first: ``corpus_id``, the place in the
            corpus, and ``score``, the cosine. Of a single str the one list.
        """
        if not isinstance(corpus, np.ndarray):
            vectors = self.iter_sentence_vectors(corpus)
            corpus = iter(lambda: list(itertools.islice(vectors, _SEARCHED_TOGETHER)), [])
        numbers, cosines = nearest(self._vectors(queries), corpus, k, index)
        found = [
            [{'corpus_id': number, 'score': score} for number, score in zip(*each)]
            for each in zip(numbers.tolist(), cosines.tolist())
        ]
        return found[0] if isinstance(queries, str) else found

    def _vectors(self, texts):
        if isinstance(texts, np.ndarray):
            return texts
        return self.sentence_vectors([texts] if isinstance(texts, str) else texts)
