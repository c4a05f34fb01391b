"""Embedding of many files, a task for each."""

from .embedding import BertEmbedding
from .writers import open_writer

__all__ = ['FileEmbedder']

_model = None  # of this process: (options, BertEmbedding)


class FileEmbedder:
    """Writes the vectors of a file's texts; for a worker.

    Parameters
    ----------
    options : dict
        Of `BertEmbedding`.
    sentences : tuple, optional
        The further arguments of ``iter_sentence_vectors``, for vectors of sentences instead of
        words.
    oov_way : str
        See `BertEmbedding.embedding`.
    """

    def __init__(self, options, sentences=None, oov_way='avg'):
        self._options, self._sentences, self._oov_way = options, sentences, oov_way

    def __call__(self, task):
        global _model
        if _model is None or _model[0] != self._options:
            _model = self._options, BertEmbedding(**self._options)
        embedding, count = _model[1], 0
        sentences = (line.strip() for line in task.lines())
        with open_writer(task.output) as writer:
            if self._sentences is None:
                for tokens, vectors in embedding.iter_embedding(sentences, self._oov_way):
                    writer.words(tokens, vectors)
                    count += 1
            else:
                for vector in embedding.iter_sentence_vectors(sentences, *self._sentences):
                    writer.sentence(vector)
                    count += 1
        return count
